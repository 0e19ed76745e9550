#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/observe/log.hpp"
#include "host/observe/log_encoder.hpp"
#include "host/observe/shipper.hpp"

namespace sluice::observe {

/// Hands the log's lines to those services that want them: by level, without those to be ignored, a share of them.
class LogSenders final : public LogTap {
 public:
  /// One destination of the senders, each in its lane.
  struct Member {
    config::LogSender settings;
    std::unique_ptr<LogEncoder> encoder;
    Shipper::Destination* lane = nullptr;
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
