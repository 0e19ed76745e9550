#include "dynamo/credentials/fetch.hpp"

#include <memory>
#include <optional>

#include "base/mutex.hpp"

namespace sluice::dynamo {
namespace {

/// Where the answer of one request is awaited. Shared with the callback, so that it may come at any time.
struct Answer {
  Mutex mutex;
  Condition arrived;
  std::optional<HttpResult> result SLUICE_GUARDED_BY(mutex);
};

HttpResult send_and_wait(HttpTransport& transport, HttpRequest request, Deadline deadline) {
  auto answer = std::make_shared<Answer>();
  transport.send(std::move(request), deadline, [answer](HttpResult result) {
    const MutexLock lock(answer->mutex);
    answer->result = std::move(result);
    answer->arrived.notify_all();
  });
  const MutexLock lock(answer->mutex);
  answer->arrived.wait_until(answer->mutex, SteadyTime::max(),
                             [&]() SLUICE_NO_TSA { return answer->result.has_value(); });
  return std::move(*answer->result);
}

bool worth_repeating(const HttpResult& result) {
  return result ? result->status >= 500
                : result.error().kind == ErrorKind::transport || result.error().kind == ErrorKind::timeout;
}

}  // namespace

HttpResult fetch(HttpTransport& transport, const Clock& clock, HttpRequest request, Deadline deadline,
                 const FetchLimits& limits) {
  request.connect_timeout = limits.connect_timeout;
  for (int attempt = 1;; ++attempt) {
    HttpResult result = send_and_wait(transport, request, deadline.earlier(Deadline::after(clock, limits.timeout)));
    if (attempt >= limits.attempts || !worth_repeating(result) || deadline.passed(clock.steady_now())) {
      return result;
    }
  }
}

HttpResult fetch(HttpTransport& transport, const Clock& clock, HttpRequest request, Deadline deadline) {
  return fetch(transport, clock, std::move(request), deadline, FetchLimits{});
}

}  // namespace sluice::dynamo
