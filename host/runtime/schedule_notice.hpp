#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/config.hpp"
#include "config/schedule_times.hpp"

namespace sluice::runtime {

/// What hosts tell each other of one schedule, on the board of its queue, under its name. A value.
struct ScheduleNotice {
  std::string definition;              ///< what it does, in words that are the same where it is the same
  std::string host;                    ///< that has written it
  std::string file;                    ///< of that host
  config::ScheduleTimes::Time last{};  ///< up to here all is sent or let go

  std::string write() const;
  /// Nothing of what is no such notice.
  static std::optional<ScheduleNotice> read(std::string_view text);
};

/// What a schedule does, in words that are the same where it is the same. Its queue is not empty.
std::string definition_of(const config::ScheduleConfig& schedule);

}  // namespace sluice::runtime
