// Two hosts, Go programs and an operator on one table, in random order and with answers that get lost. A model of what
// they have been told says what may be claimed, settled and changed. A failure prints its seed.

#include <array>
#include <map>
#include <random>

#include "host/stores/core/outcomes.hpp"
#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using dynamo::AttributeValue;
using queue::ChangeAction;
using queue::ChangeStatus;
using queue::CompletionAction;
using queue::Half;
using queue::SettleStatus;

/// A message as everybody must agree it is.
struct Known {
  Half half = Half::standard;
  std::uint32_t attempts = 0;
  WallTime sent_at{};
  std::optional<WallTime> hidden_until;
  bool received = false;
  bool marked = false;
  std::optional<queue::Receipt> receipt;  ///< of the claim that may settle it

  bool hidden(WallTime now) const { return hidden_until && now <= *hidden_until; }
  bool due(WallTime now) const { return sent_at <= now && !hidden(now); }
};

class RandomHistory : public StoreOnEmulator {
 protected:
  struct Held {
    std::string id;
    Half half;
    queue::Receipt receipt;
  };

  void SetUp() override {
    StoreOnEmulator::SetUp();
    if (!IsSkipped()) {
      second_ = make_host("worker-b", 2);
    }
  }

  void run(unsigned seed, bool faults) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    dice_.seed(seed);
    held_.clear();
    if (faults) {
      host().faults().choose([this](const std::string& operation, const std::string&) { return fault(operation); });
      second_->faults().choose([this](const std::string& operation, const std::string&) { return fault(operation); });
    }
    for (int step = 0; step < 120 && !HasFailure(); ++step) {
      this->step();
    }
    host().faults().choose(nullptr);
    second_->faults().choose(nullptr);
    finish();
  }

 private:
  std::uint64_t below(std::uint64_t bound) { return dice_() % bound; }
  EmulatedHost& any_host() { return below(2) == 0 ? host() : *second_; }
  std::string id() { return "id" + std::to_string(below(25)); }
  Half any_half() { return below(3) == 0 ? Half::dlq : Half::standard; }
  Duration delay() { return below(2) == 0 ? Duration::zero() : Duration(std::chrono::milliseconds(below(15'000))); }
  WallTime now() { return clock().wall_now(); }

  // Never two in a row: before the third try the store pauses, on the machine's clock.
  HttpFault fault(const std::string& operation) {
    constexpr std::array kFaults{HttpFault::commit_then_500, HttpFault::commit_then_reset, HttpFault::commit_then_cut,
                                 HttpFault::error_500};
    const MutexLock lock(fault_mutex_);
    faulty_ = !faulty_ && operation == "BatchExecuteStatement" && fault_dice_() % 4 == 0;
    return faulty_ ? kFaults[fault_dice_() % kFaults.size()] : HttpFault::none;
  }

  void step() {
    switch (below(12)) {
      case 0:
      case 1:
        return send();
      case 2:
      case 3:
      case 4:
        return claim_some();
      case 5:
      case 6:
        return settle_some();
      case 7:
        return extend_one();
      case 8:
        return change_one();
      case 9:
        return go_program();
      case 10:
        return clock().advance(std::chrono::milliseconds(below(12'000)));
      default:
        return look();
    }
  }

  void send() {
    queue::NewMessage message{.id = id(), .body = std::string(below(40), 'b')};
    message.delay = delay();
    const auto sent = any_host().desk().send("orders", std::span(&message, 1), soon())[0];
    if (sent.status == queue::SendStatus::failed) {
      return learn(message.id);
    }
    ASSERT_EQ(sent.status == queue::SendStatus::duplicate_id, known_.count(message.id) > 0) << message.id;
    if (sent.status == queue::SendStatus::sent) {
      Known fresh;
      fresh.sent_at = now() + message.delay;
      fresh.hidden_until = message.delay > Duration::zero() ? std::optional(fresh.sent_at) : std::nullopt;
      known_[message.id] = fresh;
    }
  }

  void claim_some() {
    const Half half = any_half();
    const Duration visibility = std::chrono::milliseconds(1 + below(20'000));
    take(any_host(), half, 1 + below(8), visibility, true);
  }

  std::size_t take(EmulatedHost& by, Half half, std::size_t max, Duration visibility, bool keep) {
    const auto claims = by.desk().claim({"orders", half}, max, visibility, soon());
    if (!claims) {
      return 0;
    }
    for (const auto& claim : *claims) {
      const std::string& id = claim.message.id;
      const auto found = known_.find(id);
      if (found == known_.end()) {
        ADD_FAILURE() << id << " is not there";
        continue;
      }
      Known& known = found->second;
      EXPECT_EQ(known.half, half) << id;
      EXPECT_TRUE(known.due(now())) << id << " is somebody else's, or not due";
      const bool suspect = known.marked || (known.received && known.hidden_until);
      const bool stands_in = suspect && !known.marked && known.attempts > 0;
      EXPECT_EQ(claim.suspect, suspect) << id;
      EXPECT_TRUE(!suspect || claims->size() == 1) << id << " is not alone";
      EXPECT_EQ(claim.message.attempt, known.attempts + (stands_in ? 0 : 1)) << id;
      EXPECT_EQ(claim.invisible_until, now() + visibility) << id;
      known.attempts = claim.message.attempt;
      known.hidden_until = claim.invisible_until;
      known.received = true;
      known.marked = suspect;
      known.receipt = claim.receipt;
      if (keep) {
        held_.push_back({id, half, claim.receipt});
      }
    }
    return claims->size();
  }

  void settle_some() {
    if (held_.empty()) {
      return;
    }
    const Held held = held_[below(held_.size())];  // old receipts too: they must be void
    const auto found = known_.find(held.id);
    const bool valid = found != known_.end() && found->second.receipt == held.receipt;
    const auto action = static_cast<CompletionAction>(below(4));
    const queue::Completion completion{.receipt = held.receipt,
                                       .action = action,
                                       .delay = delay(),
                                       .failure = {},
                                       .marks = below(4) == 0 ? queue::core::kSuspect : 0};
    const auto result = any_host().desk().settle({"orders", held.half}, std::span(&completion, 1), soon())[0];
    if (result.status == SettleStatus::failed) {
      return learn(held.id);
    }
    const bool gone =
        found == known_.end() && action == CompletionAction::remove;  // a repeat cannot tell who removed it
    ASSERT_TRUE((result.status == SettleStatus::applied) == valid || gone)
        << held.id << ": " << static_cast<int>(action) << " with a receipt that is " << (valid ? "valid" : "void");
    if (!valid) {
      return;
    }
    Known& known = found->second;
    known.receipt.reset();
    known.received = false;
    known.marked = completion.marks != 0;
    switch (action) {
      case CompletionAction::remove:
        known_.erase(found);
        return;
      case CompletionAction::dead_letter:
        known = {.half = Half::dlq, .sent_at = now(), .hidden_until = {}, .receipt = {}};
        return;
      case CompletionAction::release:
        --known.attempts;
        [[fallthrough]];
      case CompletionAction::retry:
        known.hidden_until.reset();
        if (completion.delay > Duration::zero()) {
          known.hidden_until = now() + completion.delay;
        }
        return;
      case CompletionAction::keep:
        break;
    }
  }

  void extend_one() {
    if (held_.empty()) {
      return;
    }
    Held& held = held_[below(held_.size())];
    const auto found = known_.find(held.id);
    const bool valid = found != known_.end() && found->second.receipt == held.receipt;
    const Duration visibility = std::chrono::milliseconds(1 + below(20'000));
    const auto result =
        any_host().desk().extend({"orders", held.half}, std::span(&held.receipt, 1), visibility, soon())[0];
    if (result.status == SettleStatus::failed) {
      return learn(held.id);
    }
    ASSERT_EQ(result.status == SettleStatus::applied, valid) << held.id;
    if (valid) {
      held.receipt = result.receipt;
      found->second.receipt = result.receipt;
      found->second.hidden_until = now() + visibility;
    }
  }

  void change_one() {
    const queue::Change change{.id = id(),
                               .action = static_cast<ChangeAction>(below(7)),
                               .version = std::nullopt,
                               .after = delay(),
                               .failure = {}};
    const auto result = any_host().desk().change("orders", std::span(&change, 1), soon())[0];
    const auto found = known_.find(change.id);
    if (result.status == ChangeStatus::failed) {
      return learn(change.id);
    }
    if (found == known_.end()) {
      const bool removal = change.action == ChangeAction::remove;  // a repeat cannot tell who removed it
      ASSERT_TRUE(result.status == ChangeStatus::not_found || removal) << change.id;
      return;
    }
    Known& known = found->second;
    const bool refused =
        change.action == ChangeAction::redrive && (known.half != Half::dlq || (known.received && known.hidden(now())));
    ASSERT_EQ(result.status, refused ? ChangeStatus::conflict : ChangeStatus::applied) << change.id;
    const bool stays = change.action == ChangeAction::dead_letter && known.half == Half::dlq;
    if (!refused && !stays) {
      learn(change.id);
    }
  }

  // What DynamoMQ v0.11.0's client does, with its spelling of times.
  void go_program() {
    const std::string which = id();
    dynamo::Item item = raw(which);
    if (item.empty()) {
      return;
    }
    const auto number = [&item](const char* name, int plus) {
      return AttributeValue::number(std::stoll(item.at(name).get<dynamo::Number>()->text) + plus);
    };
    const auto trimmed = [](WallTime time) {
      std::string text = format_timestamp(time);
      text.pop_back();
      text.erase(text.find_last_not_of('0') + 1);
      text.erase(text.back() == '.' ? text.size() - 1 : text.size());
      return text + 'Z';
    };
    item["version"] = number("version", 1);
    item["updated_at"] = trimmed(now());
    switch (below(3)) {
      case 0:
        if (known_.at(which).hidden(now())) {
          return;
        }
        item["receive_count"] = number("receive_count", 1);
        item["received_at"] = trimmed(now());
        item["invisible_until_at"] = trimmed(now() + std::chrono::seconds(below(20)));
        break;
      case 1:
        item["invisible_until_at"] = trimmed(now() + std::chrono::seconds(below(20)) - 5s);
        break;
      default:
        item["receive_count"] = AttributeValue::number(0);
        item["queue_type"] = "DLQ";
        item["sent_at"] = trimmed(now());
        item["received_at"] = "";
        item["invisible_until_at"] = "";
    }
    put(item);
    learn(which);
  }

  /// Where the answer leaves it open, the record itself says what is; every receipt is void then, unless it still fits.
  void learn(const std::string& id) {
    const dynamo::Item item = raw(id);
    if (item.empty()) {
      known_.erase(id);
      return;
    }
    const auto record = queue::dynamomq::decode_record(item);
    Known& known = known_[id];
    known.half = record.half;
    known.attempts = record.message.attempt;
    known.sent_at = record.message.sent_at;
    known.hidden_until = record.invisible_until;
    known.received = record.received_at.has_value();
    known.marked = record.marks != 0;
    if (known.receipt && known.receipt->version != record.version) {
      known.receipt.reset();
    }
  }

  void look() {
    const std::string which = id();
    const auto stored = any_host().desk().get("orders", which, soon());
    const auto found = known_.find(which);
    ASSERT_EQ(stored.has_value(), found != known_.end()) << which;
    if (!stored) {
      return;
    }
    EXPECT_EQ(stored->half, found->second.half) << which;
    EXPECT_EQ(stored->message.attempt, found->second.attempts) << which;
    EXPECT_EQ(stored->message.sent_at, found->second.sent_at) << which;
    EXPECT_EQ(stored->invisible_until, found->second.hidden_until) << which;
    std::size_t half = 0;
    for (const auto& [id, known] : known_) {
      half += known.half == found->second.half ? 1U : 0U;
    }
    EXPECT_EQ(any_host().desk().stats({"orders", found->second.half}, soon())->total(), half);
  }

  /// Every message that is left must turn up, soon after it is due, at whichever host asks.
  void finish() {
    int idle = 0;
    for (; idle < 200 && !known_.empty() && !HasFailure(); ++idle) {
      for (const Half half : {Half::standard, Half::dlq}) {
        EmulatedHost& by = any_host();
        while (take(by, half, 10, 600s, false) > 0 && !HasFailure()) {
          remove_claimed(by, half);
        }
      }
      clock().advance(1s);
    }
    EXPECT_TRUE(known_.empty()) << known_.begin()->first << " never came back";
    EXPECT_LT(idle, 100) << "it took so many seconds until everything had come back";
  }

  void remove_claimed(EmulatedHost& by, Half half) {
    std::vector<queue::Completion> completions;
    for (const auto& [id, known] : known_) {
      if (known.half == half && known.receipt && known.hidden_until && *known.hidden_until == now() + 600s) {
        completions.push_back(
            {.receipt = *known.receipt, .action = CompletionAction::remove, .delay = {}, .failure = {}});
      }
    }
    EXPECT_EQ(applied(by.desk().settle({"orders", half}, completions, soon())), completions.size());
    for (const auto& completion : completions) {
      known_.erase(completion.receipt.id);
    }
  }

  std::unique_ptr<EmulatedHost> second_;
  std::mt19937 dice_;
  Mutex fault_mutex_;
  std::mt19937 fault_dice_ SLUICE_GUARDED_BY(fault_mutex_){1};
  bool faulty_ SLUICE_GUARDED_BY(fault_mutex_) = false;
  std::map<std::string, Known> known_;
  std::vector<Held> held_;
};

/// An id that becomes free is sent again: versions begin anew, receipts and what was read before must not fit.
class ResentId : public StoreOnEmulator {
 protected:
  void SetUp() override {
    StoreOnEmulator::SetUp();
    if (!IsSkipped()) {
      other_ = make_host("worker-b", 2);
    }
  }
  void send_again(const std::string& id, Duration delay = {}) {
    ASSERT_TRUE(other_->desk().remove("orders", id, soon()));
    clock().advance(1ms);
    queue::NewMessage message{.id = id, .body = "again"};
    message.delay = delay;
    ASSERT_EQ(other_->desk().send("orders", std::span(&message, 1), soon())[0].status, queue::SendStatus::sent);
    clock().advance(1ms);
  }

  std::unique_ptr<EmulatedHost> other_;
};

TEST_F(ResentId, WithADelayIsNotTakenForTheMessageThatWasReadBefore) {
  send(10);
  ASSERT_EQ(claim(1).size(), 1U);  // and what the same page showed is remembered
  send_again("m5", 1h);
  EXPECT_EQ(ids_of(claim(20)).count("m5"), 0U);
}

TEST_F(ResentId, IsNotSettledByWhoHadTheOneBefore) {
  send(1);
  const auto before = claim(1);
  ASSERT_EQ(before.size(), 1U);
  send_again("m0");
  const auto now = claim(other_->desk(), 1);
  ASSERT_EQ(now.size(), 1U);
  ASSERT_EQ(now[0].receipt.version, before[0].receipt.version) << "or there is nothing to be mistaken for";
  EXPECT_EQ(applied(settle(desk(), before, CompletionAction::retry)), 0U);
  EXPECT_EQ(applied(settle(desk(), before, CompletionAction::remove)), 0U);
  EXPECT_EQ(get("m0").version, now[0].receipt.version);
  EXPECT_EQ(applied(settle(other_->desk(), now, CompletionAction::remove)), 1U);
}

TEST_F(ResentId, IsNotExtendedByWhoHadTheOneBefore) {
  send(1);
  const auto before = claim(1);
  send_again("m0");
  ASSERT_EQ(claim(other_->desk(), 1).size(), 1U);
  const auto extended = desk().extend(standard(), std::span(&before[0].receipt, 1), 60s, soon());
  EXPECT_EQ(extended[0].status, SettleStatus::lost);
}

TEST_F(ResentId, AndClaimedBySameHostIsNotSettledWithTheOldReceipt) {
  send(1);
  const auto before = claim(1);
  send_again("m0");
  clock().advance(31s);
  const auto now = claim(1);
  ASSERT_EQ(now.size(), 1U);
  ASSERT_EQ(now[0].receipt.version, before[0].receipt.version);
  EXPECT_EQ(applied(settle(desk(), before, CompletionAction::remove)), 0U);
  EXPECT_EQ(applied(settle(desk(), now, CompletionAction::remove)), 1U);
}

TEST_F(RandomHistory, OfTwoHostsGoProgramsAndAnOperatorAddsUp) {
  for (unsigned seed = 1; seed <= 12 && !HasFailure(); ++seed) {
    run(seed, false);
  }
}

TEST_F(RandomHistory, AddsUpThoughAnswersGetLost) {
  for (unsigned seed = 101; seed <= 112 && !HasFailure(); ++seed) {
    run(seed, true);
  }
}

}  // namespace
}  // namespace sluice::test
