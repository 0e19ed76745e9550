#pragma once

#include <span>
#include <string_view>

namespace sluice::observe {

class LogField;
enum class LogLevel;

/// A line of the log, borrowed for the call that it is handed to.
struct LogLine {
  LogLevel level;
  std::string_view message;
  std::span<const LogField> fields;
};

/// Is shown the lines of a log beside standard error. Thread-safe; returns at once, and logs nothing itself.
class LogTap {
 public:
  LogTap() = default;
  LogTap(const LogTap&) = delete;
  LogTap& operator=(const LogTap&) = delete;
  virtual ~LogTap() = default;

  /// The least level that it wants to see.
  virtual LogLevel level() const = 0;
  virtual void take(const LogLine& line) = 0;
};

}  // namespace sluice::observe
