#include <algorithm>
#include <iterator>

#include "dynamo/codec/error_response.hpp"
#include "dynamo/codec/responses.hpp"

namespace sluice::dynamo {

namespace {

struct NamedKind {
  std::string_view name;
  ErrorKind kind;
};

// Names without "Exception" or "Error" at the end: AWS spells many both ways, the codes of PartiQL statements a third.
// Sorted by name.
constexpr NamedKind kKinds[] = {
    {"AccessDenied", ErrorKind::access_denied},
    {"AuthFailure", ErrorKind::access_denied},
    {"BandwidthLimitExceeded", ErrorKind::throttled},
    {"ConditionalCheckFailed", ErrorKind::conditional_check_failed},
    {"DuplicateItem", ErrorKind::conditional_check_failed},
    {"EC2Throttled", ErrorKind::throttled},
    {"ExpiredToken", ErrorKind::access_denied},
    {"IncompleteSignature", ErrorKind::access_denied},
    {"IndexNotFound", ErrorKind::resource_not_found},
    {"InternalFailure", ErrorKind::server},
    {"InternalServer", ErrorKind::server},
    {"InvalidAccessKeyId", ErrorKind::access_denied},
    {"InvalidClientTokenId", ErrorKind::access_denied},
    {"InvalidSecurityToken", ErrorKind::access_denied},
    {"InvalidSignature", ErrorKind::access_denied},
    {"InvalidToken", ErrorKind::access_denied},
    {"KMSAccessDenied", ErrorKind::access_denied},
    {"LimitExceeded", ErrorKind::throttled},
    {"MissingAuthenticationToken", ErrorKind::access_denied},
    {"NotAuthorized", ErrorKind::access_denied},
    {"OptInRequired", ErrorKind::access_denied},
    {"PriorRequestNotComplete", ErrorKind::server},
    {"ProvisionedThroughputExceeded", ErrorKind::throttled},
    {"ReplicatedWriteConflict", ErrorKind::server},
    {"RequestExpired", ErrorKind::access_denied},
    {"RequestLimitExceeded", ErrorKind::throttled},
    {"RequestThrottled", ErrorKind::throttled},
    {"RequestTimeTooSkewed", ErrorKind::access_denied},
    {"RequestTimeout", ErrorKind::transport},
    {"ResourceNotFound", ErrorKind::resource_not_found},
    {"ServiceUnavailable", ErrorKind::server},
    {"SignatureDoesNotMatch", ErrorKind::access_denied},
    {"SlowDown", ErrorKind::throttled},
    {"TableNotFound", ErrorKind::resource_not_found},
    {"Throttled", ErrorKind::throttled},
    {"Throttling", ErrorKind::throttled},
    {"TokenRefreshRequired", ErrorKind::access_denied},
    {"TooManyRequests", ErrorKind::throttled},
    {"TransactionConflict", ErrorKind::server},
    {"TransactionInProgress", ErrorKind::throttled},
    {"UnauthorizedAccess", ErrorKind::access_denied},
    {"UnrecognizedClient", ErrorKind::access_denied},
    {"Validation", ErrorKind::validation},
};
static_assert(std::is_sorted(std::begin(kKinds), std::end(kKinds),
                             [](const NamedKind& a, const NamedKind& b) { return a.name < b.name; }));

std::string_view stem(std::string_view name) {
  for (const std::string_view ending : {std::string_view("Exception"), std::string_view("Error")}) {
    if (name.size() > ending.size() && name.substr(name.size() - ending.size()) == ending) {
      name.remove_suffix(ending.size());
    }
  }
  return name;
}

const NamedKind* lookup(std::string_view name) {
  const std::string_view wanted = stem(name);
  const auto* found = std::lower_bound(std::begin(kKinds), std::end(kKinds), wanted,
                                       [](const NamedKind& a, std::string_view b) { return a.name < b; });
  return found != std::end(kKinds) && found->name == wanted ? found : nullptr;
}

ErrorKind kind_of_status(int status) {
  switch (status) {
    case 401:
    case 403:
    case 407:
      return ErrorKind::access_denied;
    case 408:
      return ErrorKind::transport;
    case 429:
      return ErrorKind::throttled;
    default:
      return status >= 500 ? ErrorKind::server : ErrorKind::validation;
  }
}

}  // namespace

ErrorKind error_kind(std::string_view name, int status) {
  const NamedKind* known = lookup(name);
  return known != nullptr ? known->kind : kind_of_status(status);
}

bool may_have_taken_effect(std::string_view exception_name, int status) {
  const NamedKind* known = lookup(exception_name);
  if (known == nullptr) {
    return status >= 500;
  }
  // The other names of kind `server` are refusals.
  const bool fault =
      known->name == "InternalServer" || known->name == "InternalFailure" || known->name == "ServiceUnavailable";
  return fault || (known->kind == ErrorKind::server && status >= 500);
}

}  // namespace sluice::dynamo
