#pragma once

#include <boost/core/noncopyable.hpp>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "dynamo/error.hpp"
#include "dynamo/text.hpp"

namespace sluice::dynamo {

using Headers = std::vector<std::pair<std::string, std::string>>;

/// The first header of that (lower-case) name, its own letters in either case, or null. Lives as long as `headers`.
inline const std::string* find_header(const Headers& headers, std::string_view name) {
  for (const auto& [key, value] : headers) {
    if (key.size() == name.size() && lower_case(key) == name) {
      return &value;
    }
  }
  return nullptr;
}

struct HttpRequest {
  std::string method = "POST";
  std::string url;
  Headers headers;
  std::string body;
  Duration connect_timeout = std::chrono::seconds(3);
};

struct HttpResponse {
  int status = 0;
  Headers headers;  ///< names in lower case
  std::string body;

  /// The first header of that (lower-case) name, or null.
  const std::string* header(std::string_view name) const { return find_header(headers, name); }
};

/// A response, or an Error of kind transport, timeout, malformed_response or cancelled. `outcome_unknown` is set as
/// soon as a byte of the request may have reached the server.
using HttpResult = Result<HttpResponse>;

/// Carries HTTP requests. One of the four seams.
class HttpTransport : boost::noncopyable {
 public:
  using Callback = std::function<void(HttpResult)>;

  virtual ~HttpTransport() = default;

  /// Starts a request; `done` is called exactly once, on a thread of the transport's or at once on the caller's, and
  /// must not block. Thread-safe. After the deadline it is called with a timeout.
  virtual void send(HttpRequest request, Deadline deadline, Callback done) = 0;
};

}  // namespace sluice::dynamo
