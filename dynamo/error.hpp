#pragma once

#include <array>
#include <boost/system/result.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::dynamo {

/// Why a call failed, as far as callers and the retry policy branch on it.
enum class ErrorKind {
  transport,                 ///< could not connect, or broke before the request was sent: no effect
  timeout,                   ///< the deadline passed
  throttled,                 ///< any of AWS's throttling exceptions
  server,                    ///< HTTP 5xx
  conditional_check_failed,  ///< ConditionalCheckFailedException
  resource_not_found,        ///< ResourceNotFoundException: no such table or index
  access_denied,             ///< signature, token or permission refused
  no_credentials,            ///< none could be found or loaded; nothing was sent
  validation,                ///< ValidationException, item too large, and other client errors
  malformed_response,        ///< an answer nobody can read, or a checksum that does not fit
  cancelled,                 ///< the client was stopped
};

constexpr std::string_view to_string(ErrorKind kind) {
  constexpr std::array<std::string_view, 11> kNames{
      "transport",          "timeout",       "throttled",      "server",     "conditional_check_failed",
      "resource_not_found", "access_denied", "no_credentials", "validation", "malformed_response",
      "cancelled"};
  return kNames.at(static_cast<std::size_t>(kind));
}

/// Why one action of a transaction stood in the way, or did not.
struct CancellationReason {
  std::string code;     ///< "ConditionalCheckFailed", "TransactionConflict", ...; "None" where it did not
  std::string message;  ///< one line; may be empty

  bool stood_in_the_way() const { return !code.empty() && code != "None"; }
};

/// A failed call as a value.
class [[nodiscard]] Error {
 public:
  Error() = default;
  Error(ErrorKind failure, std::string text) : kind(failure), message(std::move(text)) {}

  ErrorKind kind = ErrorKind::malformed_response;
  std::string message;         ///< one line, for people
  std::string exception_name;  ///< AWS's name without its prefix, such as "ResourceInUseException"; may be empty
  /// AWS's reasons for a throttle, such as "IndexWriteKeyRangeThroughputExceeded".
  std::vector<std::string> throttling_reasons;
  /// Of a transaction that was cancelled, in the order of its actions.
  std::vector<CancellationReason> cancellation_reasons;
  /// True when a write may have taken effect all the same: a 5xx, a lost or unreadable answer after sending.
  bool outcome_unknown = false;
  /// From x-amz-retry-after, in milliseconds; negative: absent.
  long retry_after_ms = -1;
};

/// Why credentials could not be found or loaded.
inline Error no_credentials(std::string why) { return {ErrorKind::no_credentials, std::move(why)}; }

template <typename T>
using Result = boost::system::result<T, Error>;

}  // namespace sluice::dynamo
