#include "tests/support/dynamodb_model/faults.hpp"

#include <array>
#include <utility>

namespace sluice::test::model {

std::string_view to_string(Fault fault) {
  static constexpr std::array<std::string_view, 10> kNames = {
      "none",    "refuse", "lose",    "error_500", "commit_then_500", "commit_then_lose", "commit_then_cut",
      "bad_crc", "late",   "throttle"};
  return kNames.at(static_cast<std::size_t>(fault));
}

void Faults::inject(Fault fault, Matcher matcher, int times) { orders_.push_back({fault, std::move(matcher), times}); }

void Faults::inject_part(PartFault fault, int times) { part_orders_.emplace_back(fault, times); }

void Faults::clear() {
  const Duration shortest = rates_.shortest;
  const Duration longest = rates_.longest;
  rates_ = {};
  rates_.shortest = shortest;
  rates_.longest = longest;
  orders_.clear();
  part_orders_.clear();
}

// Takes the share off the dice, so that one throw decides between several.
bool Faults::chance(double& dice, double share) {
  dice -= share;
  return dice < 0;
}

Fault Faults::choose(const std::string& operation, const std::string& body) {
  for (auto order = orders_.begin(); order != orders_.end(); ++order) {
    if (order->matcher && !order->matcher(operation, body)) {
      continue;
    }
    const Fault fault = order->fault;
    if (--order->left <= 0) {
      orders_.erase(order);
    }
    return fault;
  }
  double dice = random_.unit();
  const std::array<std::pair<double, Fault>, 9> shares = {{{rates_.refuse, Fault::refuse},
                                                           {rates_.lose, Fault::lose},
                                                           {rates_.error_500, Fault::error_500},
                                                           {rates_.commit_then_500, Fault::commit_then_500},
                                                           {rates_.commit_then_lose, Fault::commit_then_lose},
                                                           {rates_.commit_then_cut, Fault::commit_then_cut},
                                                           {rates_.bad_crc, Fault::bad_crc},
                                                           {rates_.late, Fault::late},
                                                           {rates_.throttle, Fault::throttle}}};
  for (const auto& [share, fault] : shares) {
    if (chance(dice, share)) {
      return fault;
    }
  }
  return Fault::none;
}

PartFault Faults::choose_part() {
  if (parts_spared_) {
    return PartFault::none;
  }
  if (!part_orders_.empty()) {
    const PartFault fault = part_orders_.front().first;
    if (--part_orders_.front().second <= 0) {
      part_orders_.pop_front();
    }
    return fault;
  }
  double dice = random_.unit();
  if (chance(dice, rates_.part_throttle)) {
    return PartFault::throttle;
  }
  if (chance(dice, rates_.part_error)) {
    return PartFault::error;
  }
  if (chance(dice, rates_.part_commit_then_error)) {
    return PartFault::commit_then_error;
  }
  return chance(dice, rates_.part_conflict) ? PartFault::conflict : PartFault::none;
}

Duration Faults::between(Duration from, Duration to) {
  return to <= from
             ? from
             : from + Duration(static_cast<Duration::rep>(random_.unit() * static_cast<double>((to - from).count())));
}

Duration Faults::latency() { return between(rates_.shortest, rates_.longest); }

Duration Faults::lateness() { return between(Duration::zero(), rates_.lateness); }

Failure throttled() { return {"ThrottlingException", "Rate of requests exceeds the allowed throughput.", 400, ""}; }

std::optional<Failure> failure_of(PartFault fault) {
  switch (fault) {
    case PartFault::none:
      return std::nullopt;
    case PartFault::throttle:
      return throttled();
    case PartFault::conflict:
      return Failure{"TransactionConflictException", "Transaction is ongoing for the item", 400, ""};
    default:
      return Failure{"InternalServerError", "Internal server error", 500, ""};
  }
}

}  // namespace sluice::test::model
