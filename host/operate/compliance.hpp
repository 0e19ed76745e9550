#pragma once

#include <string>
#include <vector>

#include "base/clock.hpp"
#include "host/fleet/fleet.hpp"

namespace sluice::operate {

/// Follows what hosts make of directives that were given: a step machine that is told of looks at them. It ends when
/// every host that is to see one has seen it, or has answered if it is an order, or at a given time. Of one thread.
class Compliance {
 public:
  Compliance(std::vector<fleet::Given> given, SteadyTime until) : given_(std::move(given)), until_(until) {}

  /// True when there is nothing more to wait for.
  bool look(const fleet::FleetView& view, SteadyTime now);

  const std::vector<fleet::Given>& given() const { return given_; }
  /// Labels of those who have seen everything, and of those who have not.
  const std::vector<std::string>& obeyed() const { return obeyed_; }
  const std::vector<std::string>& waited_for() const { return waited_for_; }
  /// What they said to orders: one answer for each host, on however many boards it has read it.
  const std::vector<fleet::Obedience::Answered>& answers() const { return answers_; }
  /// Somebody has done it; of orders only.
  bool done_by_somebody() const;

 private:
  void add(const fleet::Obedience::Answered& answered);

  const std::vector<fleet::Given> given_;
  const SteadyTime until_;
  std::vector<std::string> obeyed_;
  std::vector<std::string> waited_for_;
  std::vector<fleet::Obedience::Answered> answers_;
};

}  // namespace sluice::operate
