#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::observe {

/// How much may wait for a collector, and how it is handed over.
struct ShipLimits {
  std::size_t items = 10'000;  ///< that wait; more are dropped
  std::size_t bytes = std::size_t{4} << 20;
  std::size_t batch_items = 512;  ///< of one request
  std::size_t batch_bytes = std::size_t{1} << 20;
  Duration linger = std::chrono::seconds(1);     ///< how long an item waits for company
  Duration patience = std::chrono::seconds(10);  ///< for an answer
};

/// What an answer of a collector comes to. A value.
struct Judgement {
  enum class Kind { taken, again, refused };
  Kind kind = Kind::taken;
  std::size_t rejected = 0;      ///< of those that were taken otherwise
  std::optional<Duration> wait;  ///< how long the collector wants to be left alone
  std::string why;               ///< one line, without anything secret
};

/// A service that takes items (log lines, spans) over HTTP: how it is spoken to. Keeps no state; thread-safe.
class Collector {
 public:
  Collector() = default;
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  virtual ~Collector() = default;

  /// As metrics and errors call it.
  virtual const std::string& name() const = 0;
  virtual ShipLimits limits() const = 0;
  virtual dynamo::HttpRequest request(std::span<const std::string> items, WallTime now) const = 0;
  virtual Judgement judge(const dynamo::HttpResult& result) const = 0;
};

/// What the status of an answer says by itself: 2xx is taken, those of `again` and no answer at all are to be tried
/// again, everything else is refused. `credential` is what is wrong after a 401 or 403, such as "token in
/// [log.rollbar]".
Judgement judge_status(const dynamo::HttpResult& result, std::initializer_list<int> again,
                       const std::string& credential);

/// Of a Retry-After header in seconds; nothing for anything else.
std::optional<Duration> retry_after(const dynamo::HttpResponse& response);

}  // namespace sluice::observe
