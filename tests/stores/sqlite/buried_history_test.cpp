// Two files are put through the same random history, one with short bodies and one with long ones: what is done lies
// under a tombstone for a while in the first, and is deleted at once in the second. Both must answer the same. A
// failure prints its seed.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "host/queue/content_edit.hpp"
#include "host/queue/effects.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using queue::Completion;
using queue::Half;
using queue::QueueAddress;
using std::chrono_literals::operator""ms;

// Beyond what is buried.
constexpr std::size_t kLong = 2'000;

class TwoFiles {
 public:
  TwoFiles(unsigned seed, const queue::ClaimRules& rules) : dice_(seed), rules_(rules) {
    for (const Side& side : sides_) {
      raw_sql(side.file, "CREATE TABLE accounts (number INTEGER PRIMARY KEY)");
    }
  }

  void run(int steps) {
    for (int step = 0; step < steps && !::testing::Test::HasFailure(); ++step) {
      host_ = below(2);
      switch (below(13)) {
        case 0:
        case 1:
          send();
          break;
        case 2:
        case 3:
        case 4:
          claim();
          break;
        case 5:
        case 6:
        case 7:
          settle();
          break;
        case 8:
          extend();
          break;
        case 9:
          clock_.advance(std::chrono::milliseconds(below(3'000)));
          break;
        case 10:
          change();
          break;
        case 11:
          below(2) == 0 ? edit() : put();
          break;
        default:
          compare();
      }
    }
    compare();
    for (Side& side : sides_) {
      side.hosts = {};
      EXPECT_EQ(broken_invariants(side.file), std::vector<std::string>{}) << side.file;
    }
  }

 private:
  struct Side {
    Side(const std::string& name, const Clock& clock)
        : file(folder.file(name)), hosts{open_store(file, clock, random), open_store(file, clock, random)} {}
    TempFolder folder;
    std::string file;
    SeededRandom random{1};
    std::array<std::unique_ptr<StoreDesk>, 2> hosts;
  };
  struct Held {
    QueueAddress address;
    queue::Receipt receipt;
  };

  std::uint64_t below(std::uint64_t bound) { return dice_() % bound; }
  QueueAddress address() { return {below(5) == 0 ? "invoices" : "orders", below(5) == 0 ? Half::dlq : Half::standard}; }
  std::string id() { return "id" + std::to_string(below(30)); }
  std::string group() { return below(8) == 0 ? "" : "g" + std::to_string(below(4)); }
  Duration delay() { return below(3) != 0 ? Duration::zero() : Duration(std::chrono::milliseconds(below(2'000))); }
  StoreDesk& desk(std::size_t side) { return *sides_[side].hosts[host_]; }
  static std::string body(std::size_t side, std::size_t length) { return std::string(length + side * kLong, 'b'); }

  /// Both answers to one call.
  template <typename Call>
  auto both(Call call) {
    return std::array{call(desk(0), std::size_t{0}), call(desk(1), std::size_t{1})};
  }
  template <typename Result>
  static void expect_same(const std::array<std::vector<Result>, 2>& results, const std::string& what) {
    ASSERT_EQ(results[0].size(), results[1].size()) << what;
    for (std::size_t i = 0; i < results[0].size(); ++i) {
      EXPECT_EQ(results[0][i].status, results[1][i].status) << what << " " << i;
    }
  }

  queue::NewMessage message() {
    queue::NewMessage made{.id = id(), .group = group(), .delay = delay()};
    if (below(5) == 0) {
      made.priority = static_cast<queue::Priority>(below(4));
    }
    if (below(4) == 0) {
      made.unique_key = "key" + std::to_string(below(3));
      made.unique_until = below(2) == 0 ? queue::UniqueUntil::done : queue::UniqueUntil::claimed;
    }
    if (below(6) == 0) {
      made.dedup_id = "dedup" + std::to_string(below(5));
      made.dedup_window = std::chrono::seconds(2);
    }
    return made;
  }

  void send() {
    std::vector<queue::NewMessage> messages(1 + below(6));
    for (auto& one : messages) {
      one = message();
    }
    const std::string name = address().queue;
    expect_same(both([&](StoreDesk& store, std::size_t side) {
                  for (auto& one : messages) {
                    one.body = body(side, 10);
                  }
                  return store.send(name, messages, Deadline::never());
                }),
                "send");
    clock_.advance(below(2) * 1ms);
  }

  void claim() {
    const QueueAddress from = address();
    queue::ClaimRequest request{.max = 1 + below(6), .visibility = 3'000ms, .suspects = below(4) != 0, .rules = rules_};
    if (below(30) == 0) {
      request.rules = {.order = static_cast<queue::Order>(below(3)), .fair = below(2) == 0};
    }
    const auto claimed = both([&](StoreDesk& store, std::size_t /*side*/) {
      return store.source(from).claim(request, Deadline::never())->deliveries;
    });
    ASSERT_EQ(claimed[0].size(), claimed[1].size());
    for (std::size_t i = 0; i < claimed[0].size(); ++i) {
      ASSERT_EQ(claimed[0][i].message.id, claimed[1][i].message.id);
      EXPECT_EQ(claimed[0][i].receipt.version, claimed[1][i].receipt.version);
      EXPECT_EQ(claimed[0][i].receipt.locator, claimed[1][i].receipt.locator);
      EXPECT_EQ(claimed[0][i].message.attempt, claimed[1][i].message.attempt);
      EXPECT_EQ(claimed[0][i].message.body.size() + (claimed[1][i].message.body.empty() ? 0 : kLong),
                claimed[1][i].message.body.size());
      EXPECT_EQ(claimed[0][i].message.group, claimed[1][i].message.group);
      EXPECT_EQ(claimed[0][i].message.sent_at, claimed[1][i].message.sent_at);
      held_.push_back({from, claimed[0][i].receipt});
    }
  }

  std::shared_ptr<const queue::Effects> effects() {
    auto made = std::make_shared<queue::Effects>();
    if (below(2) == 0) {
      // One in three changes no row, though it says one.
      made->writes.push_back(
          {queue::SqlWrite{"INSERT INTO accounts SELECT NULL WHERE ?1 > 0", {static_cast<std::int64_t>(below(3))}, 1}});
    }
    if (below(3) == 0) {
      made->key = queue::KeyRecord{.job = "job", .key = "k" + std::to_string(below(20)), .ttl = 2'000ms};
    }
    if (below(3) == 0) {
      // Its body is short in both files.
      made->messages.push_back({address().queue, message(), false});
    }
    return made->empty() ? nullptr : made;
  }

  // Old receipts are used again and again, and twice in a batch: most are lost by then.
  void settle() {
    if (held_.empty()) {
      return;
    }
    const QueueAddress from = held_[held_.size() - 1 - below(std::min<std::size_t>(held_.size(), 5))].address;
    std::vector<Completion> batch;
    for (std::uint64_t i = 0, tries = 1 + below(8); i < tries; ++i) {
      const std::size_t recent = below(4) == 0 ? held_.size() : std::min<std::size_t>(held_.size(), 12);
      const Held& held = held_[held_.size() - 1 - below(recent)];
      batch.push_back(
          {.receipt = held.receipt,
           .action = below(3) != 0 ? queue::CompletionAction::remove : static_cast<queue::CompletionAction>(below(4)),
           .delay = delay(),
           .failure = {.error = "no"},
           .suspect = below(5) == 0,
           .effects = below(4) == 0 ? effects() : nullptr,
           .hold_group = below(3) == 0});
      if (below(20) == 0) {
        batch.back().receipt.id = id();
      }
    }
    expect_same(
        both([&](StoreDesk& store, std::size_t /*side*/) { return store.settle(from, batch, Deadline::never()); }),
        "settle");
  }

  void extend() {
    if (held_.empty()) {
      return;
    }
    Held& held = held_[held_.size() - 1 - below(std::min<std::size_t>(held_.size(), 6))];
    const auto extended = both([&](StoreDesk& store, std::size_t /*side*/) {
      return store.extend(held.address, std::span(&held.receipt, 1), 3'000ms, Deadline::never());
    });
    expect_same(extended, "extend");
    if (extended[0][0].status == queue::SettleStatus::applied) {
      held_.push_back({held.address, extended[0][0].receipt});
    }
  }

  void change() {
    const std::string name = address().queue;
    std::vector<queue::Change> changes(1 + below(3));
    for (auto& one : changes) {
      one = {.id = id(), .action = static_cast<queue::ChangeAction>(below(7)), .after = delay()};
    }
    expect_same(
        both([&](StoreDesk& store, std::size_t /*side*/) { return store.change(name, changes, Deadline::never()); }),
        "change");
    clock_.advance(1ms);
  }

  void edit() {
    const std::string name = address().queue;
    const std::string which = id();
    const auto found = desk(0).get(name, which, Deadline::never());
    const std::vector<queue::ContentEdit> edits{{.path = {"group"}, .json = "\"g" + std::to_string(below(4)) + "\""}};
    const auto edited = both([&](StoreDesk& store, std::size_t /*side*/) {
      return store.edit(name, which, found ? found->version : 1, edits, Deadline::never()).has_value();
    });
    EXPECT_EQ(edited[0], edited[1]) << which;
  }

  void put() {
    const std::string to = address().queue;
    const auto mode = below(2) == 0 ? queue::PutMode::insert : queue::PutMode::replace;
    queue::StoredMessage record;
    record.message.id = id();
    record.message.group = group();
    record.message.sent_at = clock_.wall_now();
    record.created_at = clock_.wall_now();
    record.updated_at = clock_.wall_now();
    record.version = 1 + static_cast<std::int64_t>(below(5));
    record.half = below(3) == 0 ? Half::dlq : Half::standard;
    expect_same(both([&](StoreDesk& store, std::size_t side) {
                  record.message.body = body(side, 10);
                  return store.put(to, std::span(&record, 1), mode, Deadline::never());
                }),
                "put");
  }

  void compare() {
    for (const std::string name : {"orders", "invoices"}) {
      for (const Half half : {Half::standard, Half::dlq}) {
        EXPECT_EQ(told(0, {name, half}), told(1, {name, half})) << name;
      }
    }
    EXPECT_EQ(raw_sql(sides_[0].file, "SELECT number FROM accounts"),
              raw_sql(sides_[1].file, "SELECT number FROM accounts"));
  }

  /// All that an operator sees.
  std::vector<std::string> told(std::size_t side, const QueueAddress& which) {
    std::vector<std::string> lines;
    const auto stats = desk(side).stats(which, Deadline::never());
    lines.push_back(std::to_string(stats->ready) + " " + std::to_string(stats->in_flight) + " " +
                    std::to_string(stats->delayed) + " " +
                    std::to_string(stats->oldest_ready.value_or(WallTime()).time_since_epoch().count()));
    for (const bool newest : {false, true}) {
      queue::ListRequest request{.half = which.half, .limit = 7, .cursor = {}, .newest_first = newest};
      do {
        const auto page = desk(side).list(which.queue, request, Deadline::never());
        for (const auto& stored : page->messages) {
          lines.push_back(stored.message.id + " " + stored.message.group + " " + std::to_string(stored.version) + " " +
                          std::to_string(stored.message.attempt) + " " +
                          std::to_string(stored.message.sent_at.time_since_epoch().count()) + " " +
                          stored.failure.error + std::to_string(static_cast<int>(stored.state(clock_.wall_now()))));
        }
        request.cursor = page->next;
      } while (!request.cursor.empty());
    }
    const auto seen = desk(side).overview(which.queue, {.half = which.half, .ids = 50, .errors = 5}, Deadline::never());
    lines.insert(lines.end(), seen->first_ids.begin(), seen->first_ids.end());
    lines.insert(lines.end(), seen->first_in_flight_ids.begin(), seen->first_in_flight_ids.end());
    for (int i = 0; i < 30; ++i) {
      const auto found = desk(side).get(which.queue, "id" + std::to_string(i), Deadline::never());
      lines.push_back(found ? "there" : "gone");
    }
    return lines;
  }

  std::mt19937 dice_;
  const queue::ClaimRules rules_;
  FakeClock clock_;
  std::array<Side, 2> sides_{Side{"short.db", clock_}, Side{"long.db", clock_}};
  std::size_t host_ = 0;
  std::vector<Held> held_;
};

TEST(BuriedHistory, AnswersAsWhereTheyAreDeletedAtOnce) {
  const std::vector<queue::ClaimRules> orders{
      {.order = queue::Order::group}, {.order = queue::Order::queue}, {.fair = true}};
  for (unsigned seed = 1; seed <= 12 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TwoFiles(seed, orders[seed % orders.size()]).run(200);
  }
}

}  // namespace
}  // namespace sluice::test
