#pragma once

#include <boost/system/result.hpp>
#include <string>
#include <string_view>
#include <utility>

namespace sluice {

/// What callers of a store or of the host branch on; everything else about a failure is text.
enum class ErrorCode {
  internal,        ///< a defect of ours, or an answer nobody can read
  invalid,         ///< the request itself is wrong (size, characters, a value out of range); the same call fails again
  not_found,       ///< no message of that id
  duplicate_id,    ///< a message of that id is there already
  conflict,        ///< somebody else changed the message in between, or its state forbids the operation
  queue_missing,   ///< the table, index or file behind the queue is not there
  denied,          ///< credentials are absent, expired or not allowed to do this
  throttled,       ///< the store asks for fewer requests; try later
  unavailable,     ///< the store cannot be reached or has an error of its own; try later
  unknown_outcome, ///< the request may or may not have taken effect
  full,            ///< no room: disk full, quota used up
  corrupt,         ///< stored bytes are damaged
  timeout,         ///< the deadline passed first
  cancelled,       ///< the caller's stop was requested first
  over_limit,      ///< as much as a limit allows is in use (messages in flight, a lease's longest life)
};

/// The code's name as it appears in logs and metrics, such as "queue_missing".
std::string_view to_string(ErrorCode code);

/// True for failures that may pass by themselves, so that the same call is worth making again.
bool is_transient(ErrorCode code);

/// A failure as a value. `message()` is one line for a person: what is wrong, where, and the mend.
class [[nodiscard]] Error {
 public:
  // The default constructor exists because boost::system::result asks for it.
  Error() = default;
  Error(ErrorCode code, std::string message) : code_(code), message_(std::move(message)) {}

  ErrorCode code() const { return code_; }
  const std::string& message() const { return message_; }
  bool transient() const { return is_transient(code_); }

 private:
  ErrorCode code_ = ErrorCode::internal;
  std::string message_;
};

/// A value or an Error. The one name for it, so that a move to std::expected is one line.
template <typename T>
using Result = boost::system::result<T, Error>;

}  // namespace sluice

/// Returns from the function with the error of a Result, if it has one.
#define SLUICE_PASS_ON(...)                                      \
  if (auto&& passed_on = (__VA_ARGS__); passed_on.has_error()) { \
    return passed_on.error();                                    \
  }                                                              \
  static_assert(true)

/// Declares `name`, a Result that has a value; returns from the function with its error where it has none.
#define SLUICE_TRY(name, ...) \
  auto name = __VA_ARGS__;    \
  if (name.has_error()) {     \
    return name.error();      \
  }                           \
  static_assert(true)
