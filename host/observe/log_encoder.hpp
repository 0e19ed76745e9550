#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "base/text/json_writer.hpp"
#include "config/config.hpp"
#include "host/observe/collector.hpp"
#include "host/observe/log_tap.hpp"

namespace sluice::observe {

/// Who speaks: what a line says beside what it was given. A value.
struct LogIdentity {
  std::string host;
  std::string version;
};

/// Makes of a log line what its collector takes. Keeps no state; thread-safe.
class LogEncoder {
 public:
  LogEncoder() = default;
  LogEncoder(const LogEncoder&) = delete;
  LogEncoder& operator=(const LogEncoder&) = delete;
  virtual ~LogEncoder() = default;

  virtual std::string encode(const LogLine& line, WallTime now) const = 0;
};

/// The two halves of what is sent to one service.
struct LogDestination {
  std::unique_ptr<LogEncoder> encoder;
  std::unique_ptr<Collector> collector;
};

/// Each for a sender of its kind, which is copied. `random` outlives the encoder.
LogDestination make_rollbar(const config::LogSender& sender, const LogIdentity& identity, Random& random);
LogDestination make_sentry(const config::LogSender& sender, const LogIdentity& identity, Random& random);
LogDestination make_datadog(const config::LogSender& sender, const LogIdentity& identity);

/// What every line of the datadog format has beside its own, as members of a JSON object.
std::string datadog_members(const config::DatadogFormat& format, const LogIdentity& identity);

/// The fields that may go out, as members; without `pii` those that may tell who somebody is stay here.
void write_public_fields(JsonWriter& json, std::span<const LogField> fields, bool pii);

}  // namespace sluice::observe
