#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>

#include "host/queue/stored_message.hpp"

namespace sluice::queue::dynamomq {

/// Adds up an overview, record by record in claiming order. A value; not thread-safe.
class OverviewCount {
 public:
  /// Most errors that are told apart; what fails for yet other reasons is left out of the groups.
  static constexpr std::size_t kMaxErrors = 10'000;

  OverviewCount(const OverviewRequest& request, WallTime now)
      : most_ids_(request.ids), most_errors_(request.errors), now_(now) {}

  void add(const StoredMessage& record);
  QueueOverview finish() &&;

 private:
  void count(const StoredMessage& record, MessageState state);
  void note_failure(const StoredMessage& record);

  std::size_t most_ids_;
  std::size_t most_errors_;
  WallTime now_;
  QueueOverview overview_;
  std::unordered_map<std::string, ErrorGroup> errors_;
};

}  // namespace sluice::queue::dynamomq
