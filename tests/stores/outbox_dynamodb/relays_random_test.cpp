// Relays over one table whose rows have keys of two parts: they read, publish, fail, freeze, die and share anew in an
// order that chance decides, with clocks that step, while rows land late and operators redrive.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "host/stores/outbox/dynamodb/outbox_place.hpp"
#include "host/stores/outbox/row_scheduler.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/model.hpp"
#include "tests/support/dynamodb_model/transport.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::queue::outbox {
namespace {

using namespace std::chrono_literals;
using dynamo::AttributeValue;

constexpr std::uint32_t kRelayBuckets = 4;
constexpr std::uint32_t kGroups = 14;
constexpr std::size_t kRelays = 3;
constexpr std::size_t kRows = 250;

/// Nobody is late by a lease where nobody freezes.
Settings settings_of(bool calm) {
  Settings settings;
  settings.name = "orders";
  settings.config.table = "shop-outbox";
  settings.config.buckets = kRelayBuckets;
  settings.config.lease = calm ? Duration(5min) : Duration(12s);
  return settings;
}

/// What is true of the rows, whatever the relays think.
struct Truth {
  std::map<std::string, std::vector<RowKey>> landed;  ///< of each group, in the order of their ids and commits
  std::set<RowKey> rows;
  std::set<RowKey> sent;  ///< somebody was told that the mark is written
  std::set<RowKey> handed_out;
  std::set<RowKey> dead;        ///< with `hold` those that are, otherwise those that ever were
  std::map<RowKey, int> again;  ///< how often a row may be handed out once more: it failed, or its relay did
  bool hold = false;
  bool calm = false;  ///< no relay freezes or dies, so that nobody holds what another one has taken over
};

class Relay {
 public:
  Relay(const Settings& settings, RowScheduler::Settings line, Truth& truth, test::model::Model& model,
        SeededRandom& random)
      : settings_(settings), truth_(truth), random_(random), transport_(model, clock_), line_(std::move(line)) {}

  void advance(Duration time) { clock_.advance(time); }
  void step_wall() { clock_.set_wall(clock_.wall_now() + std::chrono::seconds(random_.below(7200)) - 1h); }

  void read() {
    if (answer_) {
      if (random_.below(3) == 0) {
        take_answer();  // others come first
      }
      return;
    }
    const ReadOrder order = line_.next_read(clock_.steady_now());
    if (order.kind == ReadOrder::Kind::none) {
      return;
    }
    answer_.emplace();
    answer_->order = order;
    if (order.kind == ReadOrder::Kind::page) {
      answer_->page = *reader_->fetch(order.request, soon());
    } else {
      answer_->groups = *reader_->fetch_groups(order.groups, order.request, soon());
    }
  }

  /// Joins, takes and gives up, as its share is.
  void share() {
    if (!locks_) {
      locks_ = *outbox_->open_locks(soon());
      if (!locks_->join({"relay", kRelayBuckets}, soon())) {
        lose();
      }
      return;
    }
    const auto members = locks_->beat(soon());
    if (!members) {
      lose();
      return;
    }
    const std::size_t fair = (kRelayBuckets + members->count - 1) / members->count;
    while (ours_.size() > fair) {
      leaving_.insert(*ours_.begin());
      const std::vector<std::uint32_t> left{*ours_.begin()};
      line_.leave_buckets(left);
      ours_.erase(ours_.begin());
    }
    give_up();
    if (!locks_) {
      return;
    }
    std::vector<std::uint32_t> wanted;
    const auto from = static_cast<std::uint32_t>(random_.below(kRelayBuckets));
    for (std::uint32_t i = 0; i < kRelayBuckets && ours_.size() + wanted.size() < fair; ++i) {
      const std::uint32_t bucket = (from + i) % kRelayBuckets;
      if (!ours_.contains(bucket) && !leaving_.contains(bucket)) {
        wanted.push_back(bucket);
      }
    }
    if (const auto locked = locks_->lock(wanted, soon())) {
      line_.take_buckets(*locked);
      ours_.insert(locked->begin(), locked->end());
    } else {
      lose();
    }
  }

  void hand_out() {
    for (Row& row : line_.take(random_.below(3) + 1, 1'000'000)) {
      const RowKey key = row.key();
      const bool first = truth_.handed_out.insert(key).second;
      EXPECT_TRUE(first || truth_.again[key]-- > 0 || !truth_.calm) << "twice: " << to_string(key);
      for (const RowKey& before : row.group.id.empty() ? std::vector<RowKey>() : truth_.landed[row.group.id]) {
        if (before == key) {
          break;
        }
        EXPECT_TRUE(truth_.sent.contains(before) || (!truth_.hold && truth_.dead.contains(before)))
            << to_string(key) << " before " << to_string(before) << " of " << row.group.id;
      }
      out_.push_back(std::move(row));
    }
  }

  /// One of the rows that are out comes to its end.
  void settle(bool well) {
    if (out_.empty()) {
      return;
    }
    const auto chosen = out_.begin() + static_cast<std::ptrdiff_t>(random_.below(out_.size()));
    const Row row = *chosen;
    out_.erase(chosen);
    if (random_.below(20) == 0) {
      step_wall();
    }
    RowEdit mark = sent_mark(row.key());
    Fate fate{Fate::Kind::sent};
    const auto fortune = well ? 100 : random_.below(100);
    const bool last = row.retries + 1 >= settings_.config.retry_limit;
    if (fortune < 10) {
      fate = {Fate::Kind::put_back, seconds_up_to(5)};
    } else if (fortune < 25 && !last) {
      fate = {Fate::Kind::put_back, seconds_up_to(5), true};
      mark = retry_mark(row.key(), row.retries + 1, fate.wait);
    } else if (fortune < 32) {
      fate = {Fate::Kind::dead, {}, true};
      mark = dead_mark(row.key(), settings_.config.retry_limit);
    }
    ++truth_.again[row.key()];
    if (fate.kind == Fate::Kind::put_back && !fate.stored) {
      line_.settled(row.key(), fate, clock_.steady_now());
      return;
    }
    const auto written = locks_->mark(std::span(&mark, 1), soon());
    if (written && written->front() == MarkStatus::written && (mark.sent || mark.gives_up)) {
      (mark.sent ? truth_.sent : truth_.dead).insert(row.key());
    }
    if (!written || (!well && random_.below(60) == 0)) {
      lose();  // also where it was written, and the answer did not come
      return;
    }
    line_.settled(row.key(), written->front() == MarkStatus::written ? fate : Fate{Fate::Kind::changed},
                  clock_.steady_now());
    give_up();
  }

  bool joined() const { return locks_ != nullptr; }

  void lose() {
    for (const auto& [key, out] : line_.lose_all()) {
      ++truth_.again[key];
    }
    out_.clear();
    ours_.clear();
    leaving_.clear();
    locks_.reset();
  }
  /// Without a word to anybody: what it holds is held until its lease ends.
  void die() {
    if (locks_) {
      dead_.push_back(std::move(locks_));
    }
    lose();
  }

 private:
  struct Answer {
    ReadOrder order;
    Page page;
    std::vector<Page> groups;
  };

  Deadline soon() { return Deadline::after(clock_, 60s); }
  Duration seconds_up_to(std::uint64_t most) { return std::chrono::seconds(random_.below(most) + 1); }

  void take_answer() {
    Answer answer = *std::exchange(answer_, std::nullopt);
    if (answer.order.kind == ReadOrder::Kind::page) {
      line_.page_read(answer.order, std::move(answer.page), clock_.steady_now());
    } else {
      line_.groups_read(answer.order, std::move(answer.groups), clock_.steady_now());
    }
  }

  void give_up() {
    for (auto bucket = leaving_.begin(); bucket != leaving_.end();) {
      const std::vector<std::uint32_t> left{*bucket};
      if (std::any_of(line_.out().begin(), line_.out().end(),
                      [&](const auto& out) { return out.second.bucket == *bucket; })) {
        ++bucket;
      } else if (locks_->unlock(left, soon())) {
        bucket = leaving_.erase(bucket);
      } else {
        lose();
        return;
      }
    }
  }

  const Settings settings_;
  Truth& truth_;
  SeededRandom& random_;
  test::FakeClock clock_;
  test::model::ModelTransport transport_;
  test::model::FixedCredentials credentials_;
  dynamo::Client client_{{{.region = "eu-west-1"}}, transport_, credentials_, clock_, random_};
  std::unique_ptr<Database> outbox_ = make_dynamodb_outbox(settings_, client_, clock_, random_);
  std::unique_ptr<ReadSession> reader_ = *outbox_->open_reader(soon());
  std::unique_ptr<LockSession> locks_;
  std::vector<std::unique_ptr<LockSession>> dead_;
  RowScheduler line_;
  std::set<std::uint32_t> ours_;
  std::set<std::uint32_t> leaving_;
  std::vector<Row> out_;
  std::optional<Answer> answer_;  ///< what the table said, which nobody has looked at yet
};

/// One run: what happens is made of its seed alone.
class Relays {
 public:
  explicit Relays(std::uint64_t seed) : random_(seed), settings_(settings_of(seed % 4 >= 2)) {
    truth_.hold = seed % 2 == 0;
    truth_.calm = seed % 4 >= 2;
    RowScheduler::Settings line{
        .filter = {.hold_dead = truth_.hold}, .fetch_limit = 10, .poll_interval = 1s, .per_group = 4};
    line.closed_groups = seed % 3 == 0 ? 3 : line.closed_groups;
    dynamo::CreateTableRequest request;
    request.name = settings_.config.table;
    request.attribute_types = {{"bucket", "S"}, {"id", "N"}};
    request.hash_key = "bucket";
    request.range_key = "id";
    EXPECT_TRUE(client_.create_table(request, soon()));
    for (std::size_t i = 0; i < kRelays; ++i) {
      relays_.push_back(std::make_unique<Relay>(settings_, line, truth_, model_, random_));
    }
    frozen_.resize(kRelays);
    desk_ = *outbox_->open_admin(soon());
  }

  void run() {
    while (truth_.rows.size() < kRows) {
      step(false);
    }
    for (int i = 0; i < 40'000 && (i == 0 || truth_.sent.size() < truth_.rows.size()); ++i) {
      if (i % 500 == 0) {
        land_all();
        redrive();
      }
      step(true);
    }
    std::string missing;
    for (const RowKey& key : truth_.rows) {
      missing += truth_.sent.contains(key) ? "" : to_string(key) + " ";
    }
    EXPECT_EQ(missing, "");
    EXPECT_TRUE(desk_->list({.half = Half::standard}, soon())->empty());
    EXPECT_TRUE(desk_->list({.half = Half::dlq}, soon())->empty());
  }

 private:
  struct Late {
    RowKey key;
    std::string group;
  };

  Deadline soon() { return Deadline::after(clock_, 60s); }

  void step(bool well) {
    const std::size_t chosen = random_.below(kRelays);
    Relay& relay = *relays_[chosen];
    const auto fortune = random_.below(1000);
    if (!well && fortune < 60) {
      write_rows();
    } else if (!well && fortune < 80) {
      land_all();
    } else if (!well && !truth_.calm && fortune < 83) {
      frozen_[chosen] = clock_.steady_now() + std::chrono::seconds(random_.below(40));
    } else if (!well && !truth_.calm && fortune < 85) {
      relay.die();
    } else if (!well && fortune < 90) {
      relay.step_wall();
    } else if (!well && fortune < 93) {
      redrive();
    } else if (fortune < 240) {
      pass_time(std::chrono::milliseconds(random_.below(1500)));
    } else if (frozen_[chosen] > clock_.steady_now()) {
      return;
    } else if (fortune < 400 || !relay.joined()) {
      relay.share();
    } else if (fortune < 700) {
      relay.read();
    } else if (fortune < 800) {
      relay.hand_out();
    } else {
      relay.settle(well);
    }
  }

  void pass_time(Duration time) {
    clock_.advance(time);
    for (const auto& relay : relays_) {
      relay->advance(time);
    }
  }

  /// Ids grow within a bucket; each has its own, and none of a group lands before its predecessor.
  void write_rows() {
    const auto group = random_.below(kGroups + 2);
    const std::uint32_t bucket = static_cast<std::uint32_t>(group) % kRelayBuckets;
    for (std::uint64_t i = random_.below(4) + 1; i > 0; --i) {
      const RowKey key{last_[bucket] += 1 + static_cast<std::int64_t>(random_.below(2)), bucket};
      late_.push_back({key, group < kGroups ? "g" + std::to_string(group) : ""});
    }
    if (random_.below(3) > 0) {
      land_all();
    }
  }

  void land_all() {
    // Groups in any order, each in its own.
    const std::string salt = std::to_string(random_.next());
    const auto place = [&salt](const Late& late) { return std::hash<std::string>()(late.group + salt); };
    std::stable_sort(late_.begin(), late_.end(), [&](const Late& a, const Late& b) { return place(a) < place(b); });
    for (const Late& late : late_) {
      dynamo::ItemWrite request;
      request.table = settings_.config.table;
      request.item = {{"bucket", partition_of(late.key.part)}, {"id", AttributeValue::number(late.key.id)}};
      request.item.insert({{"aggregate_type", "orders"}, {"event", "e"}, {"payload", "{}"}});
      if (!late.group.empty()) {
        request.item.insert({{"aggregate_id", late.group}});
      }
      EXPECT_TRUE(client_.write(request, soon()));
      truth_.rows.insert(late.key);
      truth_.landed[late.group].push_back(late.key);
    }
    late_.clear();
  }

  void redrive() {
    const auto dead = desk_->list({.half = Half::dlq}, soon());
    for (const StoredRow& row : *dead) {
      const RowEdit change = edit_of(RowKey{row.row.id, row.row.part}, {.action = ChangeAction::redrive}, 10);
      if (desk_->change(std::span(&change, 1), soon())->front() == ChangeStatus::applied) {
        if (truth_.hold) {
          truth_.dead.erase(row.row.key());
        }
        ++truth_.again[row.row.key()];
      }
    }
  }

  SeededRandom random_;
  test::FakeClock clock_;
  test::model::Model model_{clock_, 1};
  test::model::ModelTransport transport_{model_, clock_};
  test::model::FixedCredentials credentials_;
  dynamo::Client client_{{{.region = "eu-west-1"}}, transport_, credentials_, clock_, random_};
  const Settings settings_;
  std::unique_ptr<Database> outbox_ = make_dynamodb_outbox(settings_, client_, clock_, random_);
  std::unique_ptr<AdminSession> desk_;
  Truth truth_;
  std::vector<std::unique_ptr<Relay>> relays_;
  std::vector<SteadyTime> frozen_;
  std::map<std::uint32_t, std::int64_t> last_{{0, 0}, {1, 1000}, {2, 0}, {3, -50}};
  std::vector<Late> late_;
};

TEST(OutboxRelaysAtRandom, EachRowIsPublishedAndGroupsKeepTheirOrder) {
  for (std::uint64_t seed = 1; seed <= 60 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Relays(seed).run();
  }
}

}  // namespace
}  // namespace sluice::queue::outbox
