#include "dynamo/error.hpp"

namespace sluice::dynamo {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::transport:
      return "transport";
    case ErrorKind::timeout:
      return "timeout";
    case ErrorKind::throttled:
      return "throttled";
    case ErrorKind::server:
      return "server";
    case ErrorKind::conditional_check_failed:
      return "conditional_check_failed";
    case ErrorKind::resource_not_found:
      return "resource_not_found";
    case ErrorKind::access_denied:
      return "access_denied";
    case ErrorKind::no_credentials:
      return "no_credentials";
    case ErrorKind::validation:
      return "validation";
    case ErrorKind::malformed_response:
      return "malformed_response";
    case ErrorKind::cancelled:
      return "cancelled";
  }
  return "malformed_response";
}

}  // namespace sluice::dynamo
