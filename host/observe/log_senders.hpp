#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/observe/log.hpp"
#include "host/observe/shipper.hpp"

namespace sluice::observe {

/// A service that takes log lines, and how a line is written for it.
class LogService : public Collector {
 public:
  virtual std::string encode(const LogLine& line, WallTime now) const = 0;
  const config::LogSender& sender() const { return sender_; }

 protected:
  LogService(Settings settings, config::LogSender sender, LogIdentity identity)
      : Collector(std::move(settings)), sender_(std::move(sender)), identity_(std::move(identity)) {}

  // Fixed after construction.
  const config::LogSender sender_;
  const LogIdentity identity_;
};

/// That of the sender's kind. `random` outlives it.
std::unique_ptr<LogService> make_log_service(const config::LogSender& sender, const LogIdentity& identity,
                                             Random& random);

/// What every line of the datadog format has beside its own, as members of a JSON object.
std::string datadog_members(const config::DatadogFormat& format, const LogIdentity& identity);

/// Hands the log's lines to those services that want them: by level, without those to be ignored, a share of them.
class LogSenders final : public LogTap {
 public:
  struct Member {
    const LogService* service = nullptr;  ///< the destination's
    Shipper::Destination* destination = nullptr;
  };

  /// All of them outlive it.
  LogSenders(Shipper& shipper, const Clock& clock, Random& random, std::vector<Member> members);

  LogLevel level() const override { return level_; }
  void take(const LogLine& line) override;

 private:
  // Fixed after construction.
  Shipper& shipper_;
  const Clock& clock_;
  Random& random_;
  const std::vector<Member> members_;
  LogLevel level_ = LogLevel::off;
};

}  // namespace sluice::observe
