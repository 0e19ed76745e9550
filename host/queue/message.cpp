#include "host/queue/message.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/text/utf8.hpp"

namespace sluice::queue {

namespace {

constexpr std::array<std::string_view, kPriorities> kPriorityNames{"critical", "high", "normal", "low"};

constexpr std::size_t kShown = 64;

/// As messages to people show it: whole, or its beginning and its length.
std::string abridged_key(const std::string& key) {
  if (key.size() <= kShown || !is_utf8(key)) {
    return "\"" + (is_utf8(key) ? key : std::string("?")) + "\"";
  }
  return "\"" + std::string(cut_utf8(key, kShown)) + "...\" (" + std::to_string(key.size()) + " bytes)";
}

std::optional<Error> refused_key(const char* what, const std::string& key) {
  if (key.size() > kMostSendKeyBytes) {
    return Error(ErrorCode::invalid, "the " + std::string(what) + " " + abridged_key(key) + " has more than " +
                                         std::to_string(kMostSendKeyBytes) + " bytes; send a hash of it instead");
  }
  if (!is_utf8(key)) {
    return Error(ErrorCode::invalid,
                 "the " + std::string(what) + " is not UTF-8; encode it, as hexadecimal digits for example");
  }
  return std::nullopt;
}

Error conflict(const std::string& queue, const std::string& id, std::string_view why) {
  return {ErrorCode::conflict, "message \"" + id + "\" of queue \"" + queue + "\" " + std::string(why)};
}

}  // namespace

std::string_view to_string(Half half) { return half == Half::dlq ? "DLQ" : "STANDARD"; }

std::string_view to_string(Priority priority) { return kPriorityNames.at(static_cast<std::size_t>(priority)); }

std::optional<Priority> priority_named(std::string_view name) {
  const auto* const found = std::find(kPriorityNames.begin(), kPriorityNames.end(), name);
  if (found == kPriorityNames.end()) {
    return std::nullopt;
  }
  return static_cast<Priority>(found - kPriorityNames.begin());
}

std::vector<FailedAttempt> earlier_than_next(const Failure& failure) {
  std::vector<FailedAttempt> earlier;
  if (failure.empty()) {
    return earlier;
  }
  earlier.push_back({.error = failure.error,
                     .host = failure.host,
                     .attempt = failure.attempts,
                     .wait = failure.wait,
                     .took = failure.took,
                     .failed_at = failure.failed_at});
  const std::size_t kept = std::min(failure.earlier.size(), kEarlierFailures - 1);
  earlier.insert(earlier.end(), failure.earlier.begin(), failure.earlier.begin() + static_cast<std::ptrdiff_t>(kept));
  return earlier;
}

std::optional<Error> refused_send_keys(const NewMessage& message) {
  if (auto refused = refused_key("deduplication id", message.dedup_id)) {
    return refused;
  }
  if (!message.dedup_id.empty() &&
      (message.dedup_window < kLeastDedupWindow || message.dedup_window > kLongestDedupWindow)) {
    return Error(ErrorCode::invalid, "a deduplication window lasts between one second and 366 days");
  }
  return refused_key("unique key", message.unique_key);
}

Error no_message(const std::string& queue, const std::string& id) {
  return {ErrorCode::not_found, "no message \"" + id + "\" in queue \"" + queue + "\""};
}

Error changed_since(const std::string& queue, const std::string& id) {
  return conflict(queue, id, "was changed in between; look at it again");
}

Error changed_all_the_time(const std::string& queue, const std::string& id) {
  return conflict(queue, id, "is changed by others all the time; try again");
}

Error not_in_dlq(const std::string& queue, const std::string& id) { return conflict(queue, id, "is not in the DLQ"); }

Error in_flight_in_dlq(const std::string& queue, const std::string& id) {
  return conflict(queue, id, "is being worked on in the DLQ; try again when that has ended");
}

Error too_long_checkpoint(std::size_t bytes) {
  return {ErrorCode::invalid, "a checkpoint has at most " + std::to_string(kMostCheckpointBytes) +
                                  " bytes, this one has " + std::to_string(bytes) +
                                  "; store where the work stands, and keep the data elsewhere"};
}

Error in_flight_limit(const std::string& queue, std::uint64_t limit) {
  return {ErrorCode::over_limit,
          "queue " + queue + " has " + std::to_string(limit) +
              " messages in flight, as many as its max_in_flight allows; settle some, or raise it"};
}

}  // namespace sluice::queue
