#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "host/observe/log_tap.hpp"

namespace sluice::observe {

enum class LogLevel { trace, debug, info, warn, error, off };
enum class LogFormat { text, json, datadog };

/// One named value of a log line, such as {"job", "orders"} or {"jobs", 3}. Numbers and truths stay what they are in
/// JSON. A value; a text is looked at and not kept.
class LogField {
 public:
  LogField(std::string_view name, std::string_view text) : name_(name), text_(text), bare_(false) {}
  template <std::integral Number>
  LogField(std::string_view name, Number number) : name_(name) {
    if constexpr (std::same_as<Number, bool>) {
      text_ = number ? "true" : "false";
    } else {
      size_ = static_cast<std::size_t>(std::to_chars(digits_.data(), digits_.data() + digits_.size(), number).ptr -
                                       digits_.data());
    }
  }

  std::string_view name() const { return name_; }
  std::string_view value() const { return size_ > 0 ? std::string_view(digits_.data(), size_) : text_; }
  /// Stands in JSON without quotes.
  bool is_bare() const { return bare_; }

 private:
  std::string_view name_;
  std::string_view text_;
  std::array<char, 24> digits_{};
  std::size_t size_ = 0;
  bool bare_ = true;
};

/// The host's log, on stderr. Thread-safe. The one door to spdlog; nothing else includes it.
///
/// text: `2026-11-20T23:14:00.906Z info  message  job=orders id=A-101`; json: one object a line with time, level,
/// message and the fields; datadog: the same with Datadog's names. In both, lines of a handler whose message is traced
/// say so. Bytes that are not UTF-8 and control characters are escaped in both. A log that cannot be written to (a full
/// disk, a closed pipe) never stops the host, and one whose reader stalls never holds it up: lines are written by a
/// thread of the log's own, and those for which there is no room are dropped and counted.
class Log {
 public:
  Log(LogLevel level, LogFormat format);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  bool enabled(LogLevel level) const;
  void write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});
  void set(LogLevel level, LogFormat format);
  /// From now on everything of its level or above is shown to the tap as well; null: to nobody. The one before is not
  /// called any more when it returns.
  void tap(LogTap* tap);
  /// Members of a JSON object, such as `"service":"sluice"`, that every line of the datadog format has beside its own.
  void decorate(std::string members);
  /// As write, and shown to no tap: for what a tap itself is about.
  void write_here(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

  /// Text as it is, in its place between the lines: what a run says to people, such as its drain certificate. In JSON a
  /// line like the others, with these fields; in text they are not shown.
  void print(std::string_view text, std::initializer_list<LogField> fields = {});
  /// Waits until all of it so far is out; false when the reader takes longer than `limit`.
  bool flush(Duration limit);

  void debug(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::debug, message, fields);
  }
  void info(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::info, message, fields);
  }
  void warn(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::warn, message, fields);
  }
  void error(std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(LogLevel::error, message, fields);
  }

 private:
  class Sink;
  std::unique_ptr<Sink> sink_;
};

}  // namespace sluice::observe
