#include "base/error.hpp"

#include <array>

#include "base/ranges.hpp"

namespace sluice {

std::string_view to_string(ErrorCode code) {
  constexpr std::array<std::string_view, 15> kNames{"internal",    "invalid",         "not_found", "duplicate_id",
                                                    "conflict",    "queue_missing",   "denied",    "throttled",
                                                    "unavailable", "unknown_outcome", "full",      "corrupt",
                                                    "timeout",     "cancelled",       "over_limit"};
  static_assert(kNames.size() == static_cast<std::size_t>(ErrorCode::over_limit) + 1);
  return kNames.at(static_cast<std::size_t>(code));
}

bool is_transient(ErrorCode code) {
  constexpr std::array kTransient{ErrorCode::throttled, ErrorCode::unavailable, ErrorCode::unknown_outcome,
                                  ErrorCode::full,      ErrorCode::timeout,     ErrorCode::queue_missing,
                                  ErrorCode::denied,    ErrorCode::over_limit};
  return contains(kTransient, code);
}

}  // namespace sluice
