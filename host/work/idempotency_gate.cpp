#include "host/work/idempotency_gate.hpp"

#include "base/text/json_check.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/utf8.hpp"
#include "dynamo/signing/digest.hpp"

namespace sluice::work {

namespace {

/// Of a key that stands as its digest.
constexpr std::size_t kShownOfLong = 64;

using queue::KeyState;

constexpr std::size_t kShownBytes = 100;
constexpr std::size_t kMostWaits = 10'000;

std::string shown(const std::string& key) { return "'" + clean_utf8(key, kShownBytes, "?") + "'"; }

/// The same for every message whose handler has staged nothing.
std::shared_ptr<const queue::Effects> own_record(const config::JobConfig& job) {
  auto effects = std::make_shared<queue::Effects>();
  effects->key = queue::KeyRecord{.job = job.name, .key = {}, .ttl = job.idempotency->ttl, .own_id = true};
  return effects;
}

}  // namespace

FoundKey key_in_json(const std::string& json, const std::string& pointer) {
  if (const auto problem = json_problem(json)) {
    return {.missing = "its body is no JSON: " + *problem};
  }
  auto found = json_at(json, pointer);
  if (!found) {
    return {.missing = "its body has nothing at '" + pointer + "'"};
  }
  if (found->kind != JsonReader::Kind::string && found->kind != JsonReader::Kind::number) {
    return {.missing = "what the body has at '" + pointer + "' is neither a string nor a number"};
  }
  return {.key = std::move(found->text)};
}

std::string kept_key(std::string key) {
  if (key.size() <= kLongestKey) {
    return key;
  }
  return std::string(cut_utf8(key, kShownOfLong)) + "...sha256:" + dynamo::to_hex(dynamo::sha256(key));
}

FoundKey MessageKey::of(const queue::Message& message) const {
  using Kind = config::IdempotencyConfig::Kind;
  if (config_.kind == Kind::message) {
    return {.key = message.id};
  }
  FoundKey found;
  if (config_.kind == Kind::attribute) {
    const auto attribute = message.attributes.find(config_.path);
    if (attribute == message.attributes.end()) {
      return {.missing = "it has no attribute '" + config_.path + "'"};
    }
    found.key = attribute->second;
  } else {
    found = key_in_json(message.body, config_.path);
  }
  if (found.missing.empty() && found.key.empty()) {
    found.missing = "the key in it is empty";
  }
  found.key = kept_key(std::move(found.key));
  return found;
}

IdempotencyGate::IdempotencyGate(const config::JobConfig& job, const FailurePolicy& policy, InFlightTable& in_flight,
                                 Dispatcher& dispatcher, Settler& settler, Random& random)
    : keys_(job.idempotency),
      job_(job.name),
      policy_(policy),
      own_id_(keys_ && MessageKey(*keys_).own_id()),
      own_record_(own_id_ ? own_record(job) : nullptr),
      in_flight_(in_flight),
      dispatcher_(dispatcher),
      settler_(settler),
      random_(random) {}

IdempotencyGate::Order IdempotencyGate::next(SteadyTime now, SteadyTime deadline) {
  SLUICE_ASSERT(!calling_);
  Order order;
  order.deadline = std::min(now + kSourceTimeout, deadline);
  order.hold_for = own_id_ ? Duration::zero() : kMarkLeases * in_flight_.terms().visibility();
  order.releases = in_flight_.take_ended_marks();
  for (KeyMark& mark : order.releases) {
    mark.claim.job = job_;
  }
  renew(order, now);
  if (now >= ask_at_) {
    for (Task* task : dispatcher_.ask(kMaxKeyBatch)) {
      task->asked = true;
      order.asks.push_back({task, task->lease.receipt.version});
    }
  }
  order.wake = std::min(renew_at_, dispatcher_.holds_back() ? ask_at_ : SteadyTime::max());
  calling_ = !order.empty();
  if (!calling_ && !dispatcher_.holds_back()) {
    failures_ = {};  // nothing waits for the end of it, and nothing would find out when it comes
  }
  return order;
}

void IdempotencyGate::renew(Order& order, SteadyTime now) {
  if (now < renew_at_) {
    return;
  }
  renew_at_ = SteadyTime::max();
  for (Task* task : in_flight_.tasks()) {
    if (!task->open() || !has_mark(*task)) {
      continue;
    }
    KeyHold& hold = *task->key;
    if (hold.renew_at <= now && SLUICE_GUARD(key_mark_renewal)) {
      order.renewals.push_back({{job_, hold.key, task->message.id, order.hold_for, hold.fence}, task->part});
      hold.renew_at = now + in_flight_.terms().visibility();
    }
    renew_at_ = std::min(renew_at_, std::max(hold.renew_at, now));
  }
}

void IdempotencyGate::answered(const Order& order, Answers answers, SteadyTime now, StepEffects& effects) {
  calling_ = false;
  dispatcher_.asked();
  static const Error kNoAnswer(ErrorCode::internal, "the store gave no answer for an idempotency key");
  answers.asks.resize(order.asks.size(), {{}, {.state = KeyState::failed, .error = kNoAnswer}, {}});
  std::optional<Error> failure = std::move(answers.failure);
  bool failed = false;
  for (std::size_t i = 0; i < order.asks.size(); ++i) {
    Task& task = *order.asks[i].task;
    Answer& answer = answers.asks[i];
    task.asked = false;
    if (task.stage() != TaskStage::queued) {
      // It went back meanwhile, without having begun.
      if (answer.found.missing.empty() && answer.key.state == KeyState::ours && !own_id_) {
        in_flight_.release_mark(
            {{{}, std::move(answer.found.key), task.message.id, {}, order.asks[i].fence}, task.part});
      }
      in_flight_.tidy(task);
    } else if (answer.found.missing.empty() && answer.key.state == KeyState::failed) {
      failed = true;
      failure = answer.key.error;
      dispatcher_.hold_back(task);
    } else {
      decide(task, answer, order.asks[i].fence, now, effects);
    }
  }
  if (failed) {
    ask_at_ = now + backoff_.next(random_);
  } else {
    ask_at_ = SteadyTime::min();
    backoff_.reset();
  }
  if (failure) {
    failures_.failed(*failure,
                     failed ? "cannot look up idempotency keys, trying again; nothing begins meanwhile"
                            : "cannot renew or release marks of idempotency keys; each ends by itself",
                     now, effects);
  } else {
    failures_.succeeded("idempotency keys work again", effects);
  }
  dispatcher_.call(effects);
}

void IdempotencyGate::decide(Task& task, Answer& answer, std::int64_t fence, SteadyTime now, StepEffects& effects) {
  if (!answer.found.missing.empty()) {
    if (keys_->on_missing == config::OnMissingKey::run) {
      dispatcher_.add(task);
    } else {
      turn_away(task,
                "it has no idempotency key: " + answer.found.missing +
                    "; send it with one, or set on_missing = \"run\" in [job.idempotency]",
                now, effects);
    }
    return;
  }
  if (answer.key.state == KeyState::running) {
    put_off(task, answer, now, effects);
    return;
  }
  waits_.erase(task.message.id);
  if (answer.key.state == KeyState::done) {
    duplicate(task, answer, now, effects);
  } else {
    let_in(task, answer, fence, now);
  }
}

void IdempotencyGate::let_in(Task& task, Answer& answer, std::int64_t fence, SteadyTime now) {
  task.key = std::make_unique<KeyHold>();
  if (!own_id_) {
    *task.key = {.key = std::move(answer.found.key), .fence = fence, .renew_at = now + in_flight_.terms().visibility()};
    renew_at_ = std::min(renew_at_, task.key->renew_at);
  }
  dispatcher_.add(task);
}

void IdempotencyGate::put_off(Task& task, const Answer& answer, SteadyTime now, StepEffects& effects) {
  if (keys_->while_running == config::WhileRunning::reject) {
    waits_.erase(task.message.id);
    turn_away(task,
              "another message with its idempotency key " + shown(answer.found.key) + " is being worked on: " +
                  (answer.key.owner.empty() ? "its id is not known" : clean_utf8(answer.key.owner, kShownBytes, "?")),
              now, effects);
    return;
  }
  if (waits_.size() >= kMostWaits) {
    waits_.clear();
  }
  const Duration wait = doubled(kFirstKeyWait, waits_[task.message.id]++, kLastKeyWait);
  const Duration left = std::max(answer.left, kFirstKeyWait);
  Disposition later = put_back();
  later.delay = std::min(jittered(wait, random_), left);
  later.ending = Ending::snoozed;
  effects.about(observe::LogLevel::debug, "another message with its idempotency key is being worked on, it waits",
                task.message, "key " + shown(answer.found.key) + " of " + answer.key.owner);
  settler_.add(task, std::move(later), now);
}

void IdempotencyGate::duplicate(Task& task, Answer& answer, SteadyTime now, StepEffects& effects) {
  ++effects.counts.duplicates;
  if (keys_->on_duplicate == config::OnDuplicate::run) {
    task.first_result = std::make_shared<const std::string>(std::move(answer.key.result));
    dispatcher_.add(task);
    return;
  }
  effects.about(observe::LogLevel::debug, "a duplicate: its idempotency key is done, the handler is not run",
                task.message,
                "key " + shown(own_id_ ? task.message.id : answer.found.key) + ", done by " + answer.key.owner);
  settler_.add(task, {queue::CompletionAction::remove, Duration::zero(), {}, Ending::discarded}, now);
}

void IdempotencyGate::seal(const Task& task, const std::shared_ptr<const queue::Effects>& staged,
                           Disposition& disposition) const {
  const bool keeps_key = task.key != nullptr && SLUICE_GUARD(key_recorded_with_ack);
  if (disposition.ending != Ending::done || (!staged && !keeps_key)) {
    return;
  }
  if (!staged && own_id_) {
    disposition.effects = own_record_;
    return;
  }
  // Its worker has let go of it.
  auto effects = staged ? std::const_pointer_cast<queue::Effects>(staged) : std::make_shared<queue::Effects>();
  if (keeps_key) {
    queue::KeyRecord& record = effects->key ? *effects->key : effects->key.emplace();
    record.job = job_;
    record.key = task.key->key;
    record.ttl = keys_->ttl;
    record.own_id = own_id_;
  } else {
    effects->key.reset();
  }
  disposition.effects = effects->empty() ? nullptr : std::move(effects);
}

void IdempotencyGate::turn_away(Task& task, std::string reason, SteadyTime now, StepEffects& effects) {
  effects.about(observe::LogLevel::warn, "rejected", task.message, reason);
  settler_.add(task, dispose_unseen(std::move(reason), task.message.attempt, policy_), now);
}

void IdempotencyGate::admit(Task& task, const queue::OwnIdFound& found, SteadyTime now, StepEffects& effects) {
  if (!keys_) {
    dispatcher_.add(task);
  } else if (!own_id_ || !found.asked) {
    dispatcher_.hold_back(task);
  } else {
    Answer answer{.found = {}, .key = found.done ? *found.done : queue::KeyAnswer{}, .left = {}};
    decide(task, answer, 0, now, effects);
  }
}

void IdempotencyGate::call(StepEffects& effects) const {
  if (keys_ && !calling_) {
    effects.keys = effects.keys || dispatcher_.holds_back() || !in_flight_.ended_marks().empty();
  }
}

}  // namespace sluice::work
