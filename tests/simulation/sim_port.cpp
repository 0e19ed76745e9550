#include "tests/simulation/sim_port.hpp"

#include <algorithm>
#include <utility>

namespace sluice::simulation {

using queue::SettleStatus;

namespace {

std::vector<queue::SettleResult> refused(std::size_t count) {
  return std::vector<queue::SettleResult>(count, {SettleStatus::failed, Error(ErrorCode::denied, "not allowed")});
}

}  // namespace

/// Keys with faults on the way to them.
class SimPort::Keys final : public queue::IdempotencyKeys {
 public:
  Keys(World& world, std::unique_ptr<queue::IdempotencyKeys> real) : world_(world), real_(std::move(real)) {}

  std::vector<queue::KeyAnswer> begin(std::span<const queue::KeyClaim> claims, Deadline deadline) override {
    std::vector<queue::KeyClaim> wanted(claims.begin(), claims.end());
    for (queue::KeyClaim& claim : wanted) {
      if (world_.mutation == Mutation::marks_without_expiry && claim.hold_for > Duration::zero()) {
        claim.hold_for = std::chrono::hours(24 * 365);
      }
    }
    const Fate fate = this->fate();
    if (fate.error && !fate.applied) {
      return failed(claims.size(), *fate.error);
    }
    auto answers = real_->begin(wanted, limit(deadline));
    return fate.error ? failed(claims.size(), *fate.error) : answers;
  }
  Result<void> release(std::span<const queue::KeyClaim> claims, Deadline deadline) override {
    const Fate fate = this->fate();
    const auto done = fate.error && !fate.applied ? Result<void>() : real_->release(claims, limit(deadline));
    return fate.error ? Result<void>(*fate.error) : done;
  }
  Result<queue::KeyPage> list(const std::string& job, std::size_t most, const std::string& cursor,
                              Deadline deadline) override {
    return real_->list(job, most, cursor, deadline);
  }
  Result<std::optional<queue::StoredKey>> get(const std::string& job, const std::string& key,
                                              Deadline deadline) override {
    return real_->get(job, key, deadline);
  }
  Result<bool> forget(const std::string& job, const std::string& key, Deadline deadline) override {
    return real_->forget(job, key, deadline);
  }

 private:
  Fate fate() const { return world_.backend.is_real() ? Fate{} : fate_of(world_.faults, world_.random); }
  Deadline limit(Deadline deadline) const { return world_.backend.waits_for_machine() ? Deadline::never() : deadline; }
  static std::vector<queue::KeyAnswer> failed(std::size_t count, const Error& error) {
    return std::vector<queue::KeyAnswer>(count, queue::KeyAnswer{.state = queue::KeyState::failed, .error = error});
  }

  World& world_;
  const std::unique_ptr<queue::IdempotencyKeys> real_;
};

SimPort::SimPort(World& world, Truth::Host host)
    : world_(world),
      host_(host),
      source_(*world.backend.queues_of(host).open_source(address())),
      operator_(*world.backend.outside().open_operator(address().queue)) {
  if (world.keys) {
    keys_.push_back(std::make_unique<Keys>(world, *world.backend.queues_of(host).open_keys(address().queue)));
    asker_.emplace(work::KeyCall{keys_, work::MessageKey(*world.keys), kJob, world.clock});
  }
}

SimPort::~SimPort() = default;

work::IdempotencyGate::Answers SimPort::ask(const work::IdempotencyGate::Order& order) { return asker_->make(order); }

Deadline SimPort::limit(Deadline deadline) const {
  return world_.backend.waits_for_machine() ? Deadline::never() : deadline;
}

const queue::QueueAddress& SimPort::address() {
  static const queue::QueueAddress kAddress{"orders"};
  return kAddress;
}

Duration SimPort::latency() {
  const auto quick = std::chrono::microseconds(100 + world_.random.below(5000));
  return chance(world_.faults.slow) ? Duration(static_cast<Duration::rep>(
                                          world_.random.unit() * static_cast<double>(world_.faults.slow_call.count())))
                                    : Duration(quick);
}

SimPort::Fate SimPort::fate_of(const FaultMix& faults, Random& random) {
  const auto chance = [&random](double probability) { return random.unit() < probability; };
  if (chance(faults.throttled)) {
    return {Error(ErrorCode::throttled, "slow down"), false};
  }
  if (chance(faults.unavailable)) {
    return {Error(ErrorCode::unavailable, "500"), false};
  }
  if (chance(faults.answer_lost)) {
    return {Error(chance(0.5) ? ErrorCode::unknown_outcome : ErrorCode::timeout, "the answer was lost"), true};
  }
  return {};
}

std::optional<std::size_t> SimPort::unlucky(std::size_t count) {
  return chance(world_.faults.one_message) ? std::optional(world_.random.below(count)) : std::nullopt;
}

Result<queue::Claimed> SimPort::claim(queue::ClaimRequest request, SteadyTime asked_at, Deadline deadline) {
  const Duration believed = request.visibility;
  request.visibility = real_visibility(believed);
  if (world_.backend.is_real()) {
    if (world_.mutation == Mutation::head_skipped && chance(0.3)) {
      request.rules = {};
    }
    auto claimed = source_->claim(request, deadline);
    for (std::size_t i = 0; claimed && i < claimed->deliveries.size(); ++i) {
      claimed->deliveries[i].leased_until += believed - request.visibility;
    }
    return claimed;
  }
  const Fate fate = this->fate();
  if (fate.error && !fate.applied) {
    return *fate.error;
  }
  auto claimed = source_->claim(request, limit(deadline));
  if (claimed) {
    for (queue::Delivery& delivery : claimed->deliveries) {
      // The host asked before the question arrived, which is when the queue began to count.
      delivery.leased_until = asked_at + believed;
      world_.truth.granted(host_, delivery.receipt);
      world_.truth.delivered(delivery);
    }
  }
  if (fate.error) {
    return *fate.error;
  }
  return claimed;
}

Duration SimPort::real_visibility(Duration believed) const {
  return world_.real_visibility > Duration::zero() ? world_.real_visibility : believed;
}

void SimPort::break_guard(queue::Completion& completion) {
  if (world_.mutation == Mutation::no_version_condition) {
    if (const auto stored = operator_->get(completion.receipt.id, Deadline::never())) {
      completion.receipt.version = stored->version;
    }
  }
  // As if a process that writes the record by itself had ended before it came to that.
  const bool apart = world_.mutation == Mutation::record_apart && !world_.backend.is_real();
  if (apart && completion.effects && completion.effects->key && chance(0.3)) {
    auto rest = std::make_shared<queue::Effects>(*completion.effects);
    rest->key.reset();
    completion.effects = rest->empty() ? nullptr : std::move(rest);
  }
}

// What waits for its retry is put behind the others, as if it had been sent anew.
void SimPort::skip_head(const queue::Completion& completion) {
  if (world_.mutation == Mutation::head_skipped && completion.action == queue::CompletionAction::retry && chance(0.5)) {
    const queue::Change later{
        .id = completion.receipt.id, .action = queue::ChangeAction::delay, .after = completion.delay};
    operator_->change({&later, 1}, Deadline::never());
  }
}

std::vector<queue::SettleResult> SimPort::settle(std::span<const queue::Completion> completions, Deadline deadline) {
  auto results = world_.faults.settles_refused ? refused(completions.size())
                 : world_.backend.is_real()    ? settle_all(completions, deadline)
                                               : settle_some(completions, deadline);
  tell(completions, results);
  return results;
}

std::vector<queue::SettleResult> SimPort::settle_all(std::span<const queue::Completion> completions,
                                                     Deadline deadline) {
  std::vector<queue::Completion> real(completions.begin(), completions.end());
  std::for_each(real.begin(), real.end(), [this](queue::Completion& completion) { break_guard(completion); });
  return source_->settle(real, limit(deadline));
}

std::vector<queue::SettleResult> SimPort::settle_some(std::span<const queue::Completion> completions,
                                                      Deadline deadline) {
  const Fate fate = this->fate();
  const auto unlucky = this->unlucky(completions.size());
  std::vector<queue::SettleResult> results(completions.size());
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (fate.error && !fate.applied) {
      results[i] = {SettleStatus::failed, *fate.error};
    } else if (unlucky == i) {
      results[i] = {SettleStatus::failed, Error(ErrorCode::throttled, "this one only")};
    } else {
      places.push_back(i);
    }
  }
  std::vector<queue::Completion> real;
  real.reserve(places.size());
  for (const std::size_t i : places) {
    real.push_back(completions[i]);
  }
  auto settled = settle_all(real, deadline);
  for (std::size_t k = 0; k < places.size(); ++k) {
    const queue::Completion& completion = completions[places[k]];
    if (settled[k].status == SettleStatus::applied) {
      world_.truth.settled(host_, completion);
      skip_head(completion);
    }
    results[places[k]] = fate.error ? queue::SettleResult{SettleStatus::failed, *fate.error} : std::move(settled[k]);
  }
  return results;
}

void SimPort::tell(std::span<const queue::Completion> completions, std::span<const queue::SettleResult> results) {
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (results[i].status == SettleStatus::refused) {
      world_.truth.refused(host_, completions[i].receipt.id);
    }
    if (world_.on_settled) {
      world_.on_settled(host_, completions[i], results[i]);
    }
  }
}

std::vector<queue::ExtendResult> SimPort::extend(std::span<const queue::Receipt> receipts, Duration visibility,
                                                 SteadyTime asked_at, Deadline deadline) {
  const Duration believed = visibility;
  visibility = real_visibility(believed);
  if (world_.backend.is_real()) {
    auto extended = source_->extend(receipts, visibility, deadline);
    for (queue::ExtendResult& result : extended) {
      result.leased_until += believed - visibility;
    }
    return extended;
  }
  const Fate fate = this->fate();
  const auto unlucky = this->unlucky(receipts.size());
  std::vector<queue::ExtendResult> results;
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    if ((fate.error && !fate.applied) || unlucky == i) {
      results.push_back(
          {SettleStatus::failed, {}, {}, fate.error.value_or(Error(ErrorCode::throttled, "this one only"))});
      continue;
    }
    auto result = source_->extend(receipts.subspan(i, 1), visibility, limit(deadline)).front();
    if (result.status == SettleStatus::applied) {
      world_.truth.granted(host_, result.receipt);
      result.leased_until = asked_at + believed;
    }
    results.push_back(fate.error ? queue::ExtendResult{SettleStatus::failed, {}, {}, *fate.error} : std::move(result));
  }
  return results;
}

}  // namespace sluice::simulation
