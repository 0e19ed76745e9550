#pragma once

#include <cstdint>
#include <memory>

#include "host/fleet/board_poll_schedule.hpp"
#include "host/fleet/host_record.hpp"
#include "tests/support/simulated_fleet/process.hpp"

namespace sluice::test::sim {

/// What an unobserved host does at one notice board: looks at what operators want, tells of itself, sweeps.
class Attendant {
 public:
  /// `boards`: how many the host attends to.
  Attendant(Process& process, const std::string& host, std::unique_ptr<queue::NoticeBoard> board, std::size_t boards);

  const std::string& place() const { return board_->traits().place; }
  void act();
  /// The host ends, and its record goes.
  void leave();

 private:
  bool do_duty(fleet::BoardPollSchedule::Duty duty);
  bool tell();

  Process& process_;
  const std::unique_ptr<queue::NoticeBoard> board_;
  const std::size_t boards_;
  fleet::HostRecord record_;
  fleet::BoardPollSchedule poll_schedule_;
  std::int64_t version_ = 0;
  bool left_ = false;
};

}  // namespace sluice::test::sim
