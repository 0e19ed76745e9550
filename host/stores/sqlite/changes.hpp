#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "host/queue/operator.hpp"
#include "host/stores/sqlite/records.hpp"

namespace sluice::queue::sqlite {

/// What operators do to a message that nobody handed them. Works inside a transaction of the records' connection.
class Changes {
 public:
  explicit Changes(Records& records) : records_(records) {}

  /// Before the first change of a transaction.
  void begin() { fronts_.clear(); }
  ChangeResult apply(const std::string& queue, const Change& change, WallTime now);

 private:
  ChangeResult apply_to(const MessageRecord& before, const std::string& queue, const Change& change, WallTime now);
  std::optional<WallTime> place_for(ChangeAction action, const MessageRecord& before, WallTime now);
  WallTime next_front(std::int64_t half, WallTime now);

  Records& records_;
  std::map<std::int64_t, WallTime> fronts_;  ///< where the first message of a half is, while it is known
};

}  // namespace sluice::queue::sqlite
