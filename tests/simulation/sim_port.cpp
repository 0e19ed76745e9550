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

SimPort::SimPort(World& world, Truth::Host host)
    : world_(world),
      host_(host),
      source_(*world.backend.queues_of(host).open_source(address())),
      operator_(*world.backend.outside().open_operator(address().queue)) {}

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

SimPort::Fate SimPort::fate() {
  if (chance(world_.faults.throttled)) {
    return {Error(ErrorCode::throttled, "slow down"), false};
  }
  if (chance(world_.faults.unavailable)) {
    return {Error(ErrorCode::unavailable, "500"), false};
  }
  if (chance(world_.faults.answer_lost)) {
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
  auto claimed = source_->claim(request, deadline);
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
}

std::vector<queue::SettleResult> SimPort::settle(std::span<const queue::Completion> completions, Deadline deadline) {
  if (world_.backend.is_real()) {
    std::vector<queue::Completion> real(completions.begin(), completions.end());
    std::for_each(real.begin(), real.end(), [this](queue::Completion& completion) { break_guard(completion); });
    return world_.faults.settles_refused ? refused(completions.size()) : source_->settle(real, deadline);
  }
  const Fate fate = world_.faults.settles_refused ? Fate{Error(ErrorCode::denied, "not allowed"), false} : this->fate();
  const auto unlucky = this->unlucky(completions.size());
  std::vector<queue::SettleResult> results;
  for (std::size_t i = 0; i < completions.size(); ++i) {
    if (fate.error && !fate.applied) {
      results.push_back({SettleStatus::failed, *fate.error});
      continue;
    }
    if (unlucky == i) {
      results.push_back({SettleStatus::failed, Error(ErrorCode::throttled, "this one only")});
      continue;
    }
    queue::Completion real = completions[i];
    break_guard(real);
    auto result = source_->settle({&real, 1}, deadline).front();
    if (result.status == SettleStatus::applied) {
      world_.truth.settled(host_, completions[i]);
    }
    results.push_back(fate.error ? queue::SettleResult{SettleStatus::failed, *fate.error} : std::move(result));
  }
  return results;
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
    auto result = source_->extend(receipts.subspan(i, 1), visibility, deadline).front();
    if (result.status == SettleStatus::applied) {
      world_.truth.granted(host_, result.receipt);
      result.leased_until = asked_at + believed;
    }
    results.push_back(fate.error ? queue::ExtendResult{SettleStatus::failed, {}, {}, *fate.error} : std::move(result));
  }
  return results;
}

}  // namespace sluice::simulation
