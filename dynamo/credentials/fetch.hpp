#pragma once

#include "base/clock.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::dynamo {

/// How long, and how often, one of the services that hand out credentials is asked.
struct FetchLimits {
  Duration timeout = std::chrono::seconds(10);  ///< of one attempt
  Duration connect_timeout = std::chrono::seconds(3);
  int attempts = 2;  ///< on a failed connection, a time-out or a 5xx; asking again does no harm
};

/// Sends a request and waits for its answer.
HttpResult fetch(HttpTransport& transport, const Clock& clock, HttpRequest request, Deadline deadline,
                 const FetchLimits& limits);
/// With the usual limits.
HttpResult fetch(HttpTransport& transport, const Clock& clock, HttpRequest request, Deadline deadline);

}  // namespace sluice::dynamo
