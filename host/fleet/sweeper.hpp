#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/notice_board.hpp"

namespace sluice::fleet {

/// Decides which records on a board are those of hosts that died without a word so long ago that nobody needs to see
/// them any more. By their age; and, as a record may be dated in the future or be garbage, by whether it has changed
/// while this host watched. Not thread-safe.
class Sweeper {
 public:
  /// `own` is the key of this host's record.
  explicit Sweeper(std::string own) : own_(std::move(own)) {}

  /// Of all that is on the board, what is to be taken down.
  std::vector<queue::Notice> due(const std::vector<queue::Notice>& hosts, WallTime board_now, SteadyTime now);

 private:
  struct Sight {
    std::int64_t version = 0;
    SteadyTime since{};
  };

  const std::string own_;
  std::map<std::string, Sight> seen_;
};

}  // namespace sluice::fleet
