#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/text/json_writer.hpp"
#include "host/cli/console.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cost/prices.hpp"
#include "host/operate/mover.hpp"

namespace sluice::cli {

/// What a move by command needs to know beside its plan. A value.
struct MoveOrder {
  operate::MovePlan plan;
  std::optional<std::uint64_t> expected;  ///< messages, where somebody has counted them
  /// Jobs of the old queue that are at work, "JOB on HOST", where messages with a group stay because of them.
  std::vector<std::string> at_work;
};

/// Steps a move until it has come to its end, fails, or somebody interrupts it; shows how it goes, and what came of it.
/// For one use, on one thread.
class MoveRun {
 public:
  /// The references outlive it.
  MoveRun(operate::Mover& mover, const MoveOrder& order, QueueSession& session, Output output, Console& console);

  Exit run();

 private:
  enum class End { finished, interrupted, failed };

  End drive();
  void rest(bool interrupted);
  /// False: there is no sense in trying again.
  bool worth_another(const Error& error);
  void note(const std::vector<operate::Mover::Refusal>& refusals);
  void show();
  std::string summary() const;
  std::string left() const;
  std::string pace() const;
  /// "$0.0123": what so many units cost.
  std::string money(double read_units, double write_units) const;
  double rate() const;
  void report();
  void report_json();
  Exit exit_of(End end) const;

  operate::Mover& mover_;
  const MoveOrder& order_;
  QueueSession& session_;
  const Output output_;
  Console& console_;
  const cost::Prices prices_;
  const SteadyTime began_;
  std::vector<operate::Mover::Refusal> refusals_;
  Error error_;
  int failures_ = 0;  ///< in a row
};

}  // namespace sluice::cli
