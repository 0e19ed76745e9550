#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <utility>

#include "host/queue/message.hpp"
#include "host/stores/core/transitions.hpp"
#include "tests/contract/store_contract.hpp"
#include "tests/support/state_changes.hpp"

// A random history: after each step every record that it touched is as host/stores/core says it is.
namespace sluice::test {

using queue::Change;
using queue::ChangeAction;
using queue::ChangeStatus;
using queue::Completion;
using queue::CompletionAction;
using queue::Half;
using queue::later;
using queue::QueueAddress;
using queue::SettleStatus;
using queue::StoredMessage;
namespace core = queue::core;

namespace {

/// What the rules say of each message. A second life of an id is another message.
struct Modelled {
  StoredMessage record;
  int life = 0;
};

struct Held {
  QueueAddress address;
  queue::Receipt receipt;
  int life = 0;
};

}  // namespace

/// Chooses the steps, plays them on the store and on the rules, and compares.
class History {
 public:
  struct Story {
    Desk& desk;
    FakeClock& clock;
    std::string queue;
    Duration grain;
  };
  History(Story story, unsigned seed) : story_(std::move(story)), dice_(seed) {}

  void step() {
    switch (below(10)) {
      case 0:
      case 1:
        return send();
      case 2:
      case 3:
        return claim();
      case 4:
      case 5:
        return settle();
      case 6:
        return extend();
      case 7:
        return edit();
      case 8:
        return change();
      default:
        story_.clock.advance(std::chrono::milliseconds(below(20'000)));
    }
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return dice_() % bound; }
  std::string id() { return "id" + std::to_string(below(20)); }
  QueueAddress address() { return {story_.queue, below(3) == 0 ? Half::dlq : Half::standard}; }
  Duration delay() { return below(2) == 0 ? Duration::zero() : Duration(std::chrono::milliseconds(below(15'000))); }
  std::string group() { return below(2) == 0 ? "" : "g" + std::to_string(below(5)); }
  queue::Failure failure() {
    return below(2) == 0 ? queue::Failure{} : queue::Failure{.error = "error " + std::to_string(below(100))};
  }
  std::optional<queue::Marks> marks() {
    const auto drawn = below(5);
    return drawn == 0 ? std::nullopt : std::optional<queue::Marks>(drawn == 1 ? core::kSuspect : 0);
  }
  WallTime now() { return story_.clock.wall_now(); }
  Deadline soon() { return Deadline::after(story_.clock, 60s); }
  StoredMessage* find(const std::string& id) {
    const auto found = model_.find(id);
    return found == model_.end() ? nullptr : &found->second.record;
  }

  void send() {
    queue::NewMessage message;
    message.id = id();
    message.body = "body";
    message.delay = delay();
    message.group = group();
    if (story_.desk.source({story_.queue}).traits().priorities) {
      message.priority = static_cast<queue::Priority>(below(queue::kPriorities));
    }
    const auto sent = story_.desk.send(story_.queue, std::span(&message, 1), soon()).at(0);
    const bool taken = find(message.id) != nullptr;
    ASSERT_EQ(sent.status, taken ? queue::SendStatus::duplicate_id : queue::SendStatus::sent) << sent.error.message();
    if (!taken) {
      StoredMessage& record = (model_[message.id] = {.record = {}, .life = ++lives_}).record;
      core::sent(message, now()).put_into(record);
      record.created_at = now();
    }
    compare(message.id);
    story_.clock.advance(1ms);
  }

  void claim() {
    const QueueAddress from = address();
    const queue::ClaimRequest request{.max = 1 + below(4),
                                      .visibility = std::chrono::milliseconds(1000 + below(20'000)),
                                      .suspects = below(4) != 0,
                                      .counts = below(3) == 0};
    const auto claimed = story_.desk.source(from).claim(request, soon());
    ASSERT_TRUE(claimed) << claimed.error().message();
    for (const queue::Delivery& delivery : claimed->deliveries) {
      StoredMessage* record = find(delivery.message.id);
      ASSERT_NE(record, nullptr) << delivery.message.id;
      EXPECT_EQ(record->half, from.half);
      // At the very instant that a delay ends stores may differ.
      EXPECT_EQ(record->state(now() + 1ns), queue::MessageState::ready) << delivery.message.id;
      const auto before = core::MessageState::of(*record);
      EXPECT_EQ(delivery.suspect, before.is_suspect());
      EXPECT_TRUE(!delivery.suspect || (request.suspects && claimed->deliveries.size() == 1));
      test::apply(core::claim(before, {now(), later(now(), request.visibility), request.counts}), now(), *record);
      EXPECT_EQ(delivery.message.attempt, record->message.attempt);
      EXPECT_EQ(delivery.receipt.version, record->version);
      held_.push_back({from, delivery.receipt, model_[delivery.message.id].life});
      compare(delivery.message.id);
    }
    story_.clock.advance(1ms);
  }

  // An old receipt is as good as a new one for trying, and must not do.
  StoredMessage* holds(const Held& held) {
    const auto found = model_.find(held.receipt.id);
    const bool same = found != model_.end() && found->second.life == held.life &&
                      found->second.record.half == held.address.half &&
                      found->second.record.version == held.receipt.version;
    return same ? &found->second.record : nullptr;
  }

  void settle() {
    if (held_.empty()) {
      return;
    }
    Held& held = held_[held_.size() - 1 - below(std::min<std::size_t>(held_.size(), 8))];
    const Completion completion{.receipt = held.receipt,
                                .action = static_cast<CompletionAction>(below(5)),
                                .delay = delay(),
                                .failure = failure(),
                                .marks = marks(),
                                .checkpoint = below(4) == 0 ? "" : "checkpoint " + std::to_string(below(100))};
    const auto result = story_.desk.settle(held.address, std::span(&completion, 1), soon()).at(0);
    StoredMessage* record = holds(held);
    ASSERT_EQ(result.status, record != nullptr ? SettleStatus::applied : SettleStatus::lost)
        << held.receipt.id << ": " << result.error.message();
    if (record != nullptr) {
      const core::StateChange end = core::end(completion, core::MessageState::of(*record), now());
      const bool again_dead = record->half == Half::dlq && completion.action == CompletionAction::dead_letter;
      make(held.receipt.id, end, again_dead);
    }
    if (record != nullptr && completion.action == CompletionAction::keep) {
      EXPECT_EQ(result.version, record->version);
      held.receipt.version = result.version;
    }
    compare(held.receipt.id);
    story_.clock.advance(1ms);
  }

  void extend() {
    if (held_.empty()) {
      return;
    }
    Held& held = held_[held_.size() - 1 - below(std::min<std::size_t>(held_.size(), 8))];
    const Duration visibility = std::chrono::milliseconds(1000 + below(20'000));
    const auto result = story_.desk.extend(held.address, std::span(&held.receipt, 1), visibility, soon()).at(0);
    StoredMessage* record = holds(held);
    ASSERT_EQ(result.status, record != nullptr ? SettleStatus::applied : SettleStatus::lost) << held.receipt.id;
    if (record != nullptr) {
      make(held.receipt.id, core::extension(later(now(), visibility)));
      held.receipt = result.receipt;
    }
    compare(held.receipt.id);
    story_.clock.advance(1ms);
  }

  void edit() {
    const std::string which = id();
    StoredMessage* record = find(which);
    if (record == nullptr) {
      return;
    }
    const std::int64_t version = record->version + (below(4) == 0 ? 1 : 0);
    queue::Message content;
    content.group = group();
    std::vector<queue::ContentEdit> edits{{.path = {"attributes", "k"}, .json = R"("v")"},
                                          {.path = {"group"}, .json = '"' + content.group + '"'}};
    if (story_.desk.source({story_.queue}).traits().priorities) {
      content.priority = static_cast<queue::Priority>(below(queue::kPriorities));
      edits.push_back({.path = {"priority"}, .json = '"' + std::string(to_string(content.priority)) + '"'});
    }
    const auto edited = story_.desk.edit(story_.queue, which, version, edits, soon());
    ASSERT_EQ(edited.has_value(), version == record->version);
    if (edited) {
      test::apply(core::edit(content), now(), *record);
    }
    compare(which);
  }

  void change() {
    Change change{.id = id(),
                  .action = static_cast<ChangeAction>(below(7)),
                  .after = delay() - std::chrono::milliseconds(below(3)),
                  .failure = failure()};
    StoredMessage* record = find(change.id);
    if (record != nullptr && below(2) == 0) {
      change.version = record->version + (below(4) == 0 ? 1 : 0);
    }
    const auto result = story_.desk.change(story_.queue, std::span(&change, 1), soon()).at(0);
    if (record == nullptr) {
      EXPECT_EQ(result.status, ChangeStatus::not_found) << change.id;
      return;
    }
    const auto before = core::MessageState::of(*record);
    const auto foregone = core::foregone(change, before, story_.queue, now());
    ASSERT_EQ(result.status, foregone ? foregone->status : ChangeStatus::applied)
        << change.id << ", action " << static_cast<int>(change.action) << ": " << result.error.message();
    if (foregone) {
      EXPECT_EQ(result.error.message(), foregone->error.message());
    } else {
      make(change.id, core::change(change, before, now()), change.action == ChangeAction::move_to_front);
    }
    compare(change.id);
    story_.clock.advance(1ms);
  }

  /// `own_place`: where it lies afterwards is the store's own business.
  void make(const std::string& which, const core::StateChange& change, bool own_place = false) {
    if (change.removes) {
      model_.erase(which);
      return;
    }
    StoredMessage& record = model_[which].record;
    test::apply(change, now(), record);
    if (const auto stored = story_.desk.get(story_.queue, which, soon()); own_place && stored) {
      record.message.sent_at = stored->message.sent_at;
    }
  }

  std::optional<WallTime> kept(std::optional<WallTime> time) const {
    return time ? std::optional(*time - time->time_since_epoch() % story_.grain) : std::nullopt;
  }

  /// Until when nobody is given it. Of a time that has passed a store may keep nothing.
  std::optional<WallTime> hidden(const StoredMessage& record) {
    const WallTime until = std::max(record.message.sent_at, record.invisible_until.value_or(WallTime{}));
    return until > now() ? kept(until) : std::nullopt;
  }

  void compare(const std::string& which) {
    SCOPED_TRACE(which);
    const auto stored = story_.desk.get(story_.queue, which, soon());
    const StoredMessage* record = find(which);
    ASSERT_EQ(stored.has_value(), record != nullptr);
    if (record == nullptr) {
      return;
    }
    EXPECT_EQ(stored->half, record->half);
    EXPECT_EQ(stored->message.sent_at, kept(record->message.sent_at));
    EXPECT_EQ(stored->message.group, record->message.group);
    EXPECT_EQ(stored->message.priority, record->message.priority);
    EXPECT_EQ(stored->message.attempt, record->message.attempt);
    EXPECT_EQ(stored->state(now()), record->state(now()));
    EXPECT_EQ(hidden(*stored), hidden(*record));
    EXPECT_EQ(stored->received_at, kept(record->received_at));
    EXPECT_EQ(stored->marks, record->marks);
    EXPECT_EQ(stored->version, record->version);
    EXPECT_EQ(stored->created_at, kept(record->created_at));
    EXPECT_EQ(stored->failure.error, record->failure.error);
    EXPECT_EQ(stored->failure.earlier, record->failure.earlier);
    EXPECT_EQ(stored->message.checkpoint, record->message.checkpoint);
  }

  Story story_;
  std::mt19937 dice_;
  std::map<std::string, Modelled> model_;
  std::vector<Held> held_;
  int lives_ = 0;
};

TEST_P(StoreContract, AnyHistoryAgreesWithTheRules) {
  const char* wanted = std::getenv("SLUICE_HISTORY_SEED");
  const unsigned seed = wanted == nullptr ? 7 : static_cast<unsigned>(std::stoul(wanted));
  History history({desk(), clock(), queue_name(), traits().grain}, seed);
  for (std::size_t step = 0; step < traits().history && !HasFailure(); ++step) {
    SCOPED_TRACE("step " + std::to_string(step));
    history.step();
  }
}

}  // namespace sluice::test
