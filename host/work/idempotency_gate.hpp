#pragma once

#include <unordered_map>

#include "host/work/settler.hpp"

namespace sluice::work {

/// A longer key stands as its first bytes and its SHA-256, so that a store's index and an operator's screen stay small.
inline constexpr std::size_t kLongestKey = 1024;

/// What one message's key is. A value.
struct FoundKey {
  std::string key{};
  std::string missing{};  ///< not empty: there is none, and this says why
};

/// Reads messages' idempotency keys as the job says. Thread-safe.
class MessageKey {
 public:
  explicit MessageKey(config::IdempotencyConfig config) : config_(std::move(config)) {}

  /// Every delivery of one message has the same. Reads the body where the key lies there.
  FoundKey of(const queue::Message& message) const;
  /// The key is the message's own id.
  bool own_id() const { return config_.kind == config::IdempotencyConfig::Kind::message; }

 private:
  const config::IdempotencyConfig config_;
};

/// What an RFC 6901 pointer names in a JSON text: a string's characters, or a number as it is written.
FoundKey key_in_json(const std::string& json, const std::string& pointer);

/// A key as it is kept: itself, or what stands for one that is longer than kLongestKey.
std::string kept_key(std::string key);

/// The most messages whose keys are asked for in one call.
inline constexpr std::size_t kMaxKeyBatch = 1000;
/// A mark holds for so many visibility timeouts and is renewed after one while its message is held.
inline constexpr int kMarkLeases = 3;
/// A message whose key is another's waits about so long at first, and at most, before it is looked at again.
inline constexpr Duration kFirstKeyWait = std::chrono::milliseconds(100);
inline constexpr Duration kLastKeyWait = std::chrono::seconds(5);

/// Decides whether a claimed message's handler may begin, where a job has idempotency keys: of the messages with one
/// key the first is let in; others wait, are rejected or skipped as the job says. Has a key's mark renewed while the
/// message is held, released when that ends otherwise than done, and recorded with what is done. Not thread-safe.
class IdempotencyGate {
 public:
  /// A message whose key is asked for. It stays where it is until it is answered, whatever becomes of it.
  struct Ask {
    Task* task = nullptr;
    std::int64_t fence = 0;
  };
  /// What to ask the store for, all in one call.
  struct Order {
    std::vector<Ask> asks;
    std::vector<KeyMark> renewals;
    std::vector<KeyMark> releases;
    Duration hold_for{};  ///< of new marks
    SteadyTime deadline{};
    SteadyTime wake = SteadyTime::max();

    bool empty() const { return asks.empty() && renewals.empty() && releases.empty(); }
  };
  /// What was found of one message: its key, unless that is its own id, or why there is none; and how that stands.
  struct Answer {
    FoundKey found;
    queue::KeyAnswer key;
    Duration left{};  ///< until a mark or record ends
  };
  struct Answers {
    std::vector<Answer> asks;
    std::optional<Error> failure;  ///< of renewals or releases
  };

  /// A job without keys: everybody is let in, at no cost.
  IdempotencyGate(const config::JobConfig& job, const FailurePolicy& policy, InFlightTable& in_flight,
                  Dispatcher& dispatcher, Settler& settler, Random& random);

  /// A message has come that a handler could begin with. Where its claim has told of its key nobody is asked any more.
  void admit(Task& task, const queue::OwnIdFound& found, SteadyTime now, StepEffects& effects);

  /// What to ask now; calls end by `deadline`. Each order that is not empty is followed by `answered`.
  Order next(SteadyTime now, SteadyTime deadline);
  void answered(const Order& order, Answers answers, SteadyTime now, StepEffects& effects);
  /// Calls the thread that asks, if there is something to ask.
  void call(StepEffects& effects) const;

  /// The message is done: puts what its handler staged, and its key's record, into the disposition.
  void seal(const Task& task, const std::shared_ptr<const queue::Effects>& staged, Disposition& disposition) const;

  /// Of calls for keys.
  const FailureRun& failures() const { return failures_; }
  /// Messages wait for their keys, and none could be looked up for long.
  bool cut_off(SteadyTime now) const { return dispatcher_.holds_back() && failures_.lasts(now); }
  /// Nothing is to be released, and no call is under way.
  bool idle() const { return !calling_ && in_flight_.ended_marks().empty(); }

 private:
  void decide(Task& task, Answer& answer, std::int64_t fence, SteadyTime now, StepEffects& effects);
  void let_in(Task& task, Answer& answer, std::int64_t fence, SteadyTime now);
  void put_off(Task& task, const Answer& answer, SteadyTime now, StepEffects& effects);
  void turn_away(Task& task, std::string reason, SteadyTime now, StepEffects& effects);
  void duplicate(Task& task, Answer& answer, SteadyTime now, StepEffects& effects);
  void renew(Order& order, SteadyTime now);
  const std::optional<config::IdempotencyConfig> keys_;
  const std::string job_;
  const FailurePolicy& policy_;
  const bool own_id_;
  const std::shared_ptr<const queue::Effects> own_record_;
  InFlightTable& in_flight_;
  Dispatcher& dispatcher_;
  Settler& settler_;
  Random& random_;

  std::unordered_map<std::string, std::uint32_t> waits_;  ///< by message id: how often in a row
  bool calling_ = false;
  SteadyTime ask_at_ = SteadyTime::min();    ///< after a failure
  SteadyTime renew_at_ = SteadyTime::max();  ///< the first mark that is due
  PollBackoff backoff_{kFirstKeyWait, kLastKeyWait};
  FailureRun failures_;
};

}  // namespace sluice::work
