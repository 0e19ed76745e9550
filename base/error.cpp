#include "base/error.hpp"

namespace sluice {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::internal:
      return "internal";
    case ErrorCode::invalid:
      return "invalid";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::duplicate_id:
      return "duplicate_id";
    case ErrorCode::conflict:
      return "conflict";
    case ErrorCode::queue_missing:
      return "queue_missing";
    case ErrorCode::denied:
      return "denied";
    case ErrorCode::throttled:
      return "throttled";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::unknown_outcome:
      return "unknown_outcome";
    case ErrorCode::full:
      return "full";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::timeout:
      return "timeout";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::over_limit:
      return "over_limit";
  }
  return "internal";
}

bool is_transient(ErrorCode code) {
  switch (code) {
    case ErrorCode::throttled:
    case ErrorCode::unavailable:
    case ErrorCode::unknown_outcome:
    case ErrorCode::full:
    case ErrorCode::timeout:
    case ErrorCode::queue_missing:
    case ErrorCode::denied:
    case ErrorCode::over_limit:
      return true;
    default:
      return false;
  }
}

}  // namespace sluice
