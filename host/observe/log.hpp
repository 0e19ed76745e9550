#pragma once

#include <array>
#include <atomic>
#include <boost/core/noncopyable.hpp>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/text/json_writer.hpp"

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

/// A line of the log, borrowed for the call that it is handed to.
struct LogLine {
  LogLevel level;
  std::string_view message;
  std::span<const LogField> fields;
};

/// Is shown the lines of a log beside standard error. Thread-safe; returns at once, and logs nothing itself.
class LogTap : boost::noncopyable {
 public:
  virtual ~LogTap() = default;

  /// The least level that it wants to see.
  virtual LogLevel level() const = 0;
  virtual void take(const LogLine& line) = 0;
};

/// Who speaks: what a line says beside what it was given. A value.
struct LogIdentity {
  std::string host;
  std::string version;
};

/// "trace", "debug", "info", "warn", "error".
std::string_view name_of(LogLevel level);
/// What follows the time in a line of that format; of JSON the members behind it and the closing brace. `decoration`:
/// of the datadog format, members of a JSON object.
std::string format_line(LogFormat format, std::string_view decoration, const LogLine& line);
/// The fields as members of an object that the caller begins and ends.
void write_fields(JsonWriter& json, std::span<const LogField> fields);

/// Writes lines to a descriptor on a thread of its own, so that nobody who has something to say waits for whoever reads
/// it. Thread-safe.
///
/// What is waiting is bounded: a line for which there is no room is refused. What cannot be written (a full disk, a
/// reader that has gone) is dropped.
class LineWriter : boost::noncopyable {
 public:
  static constexpr std::size_t kRoom = std::size_t{1} << 20;
  /// How long destruction waits for a reader that has stalled.
  static constexpr Duration kLastWait = std::chrono::milliseconds(300);

  /// Does not own the descriptor, which outlives it. Throws std::system_error when no thread can be made.
  explicit LineWriter(int descriptor);
  /// Writes what is left as far as the reader takes it.
  ~LineWriter();

  /// Never blocks. `lines` ends with a line break. False, and nothing of it will be written, when there is no room.
  bool put(std::string_view lines);
  /// Waits until everything put so far has been written or dropped; false when that takes longer than `limit`.
  bool flush(Duration limit);

 private:
  void run(const std::stop_token& stop);
  void write(std::string_view text, const std::stop_token& stop) const;

  // Fixed after construction.
  const int descriptor_;
  const std::size_t chunk_;  ///< as much as a pipe that is not full takes without blocking

  Mutex mutex_;
  Condition changed_;
  std::string waiting_ SLUICE_GUARDED_BY(mutex_);
  bool writing_ SLUICE_GUARDED_BY(mutex_) = false;
  // Last, so that it ends before what it uses.
  std::jthread thread_;
};

/// The host's log, on stderr. Thread-safe.
///
/// text: `2026-11-20T23:14:00.906Z info  message  job=orders id=A-101`; json: one object a line with time, level,
/// message and the fields; datadog: the same with Datadog's names. In both, lines of a handler whose message is traced
/// say so. Bytes that are not UTF-8 and control characters are escaped in both. A log that cannot be written to (a full
/// disk, a closed pipe) never stops the host, and one whose reader stalls never holds it up: lines are written by a
/// thread of the log's own, and those for which there is no room are dropped and counted.
class Log : boost::noncopyable {
 public:
  Log(LogLevel level, LogFormat format);
  ~Log();

  bool enabled(LogLevel level) const;
  void write(LogLevel level, std::string_view message, std::span<const LogField> fields);
  void write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {}) {
    write(level, message, std::span(fields.begin(), fields.size()));
  }
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
  void print(std::string_view text, std::span<const LogField> fields = {});
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
  /// What was not written because it says the same again; and what was said of such lines before this one.
  struct Written {
    bool repeats = false;
    LogLevel level_before = LogLevel::warn;
    std::string repeated_before;
  };

  bool writes(LogLevel level) const {
    return level != LogLevel::off && level >= level_.load(std::memory_order_relaxed);
  }
  bool is_tapped(LogLevel level) const;
  Written write_line(const LogLine& shown);
  void show(const LogLine& line, const Written& written);
  void put(std::string_view line) SLUICE_REQUIRES(mutex_);
  void write_dropped() SLUICE_REQUIRES(mutex_);
  void write_repeats(Written* written = nullptr) SLUICE_REQUIRES(mutex_);
  std::string formatted(const LogLine& line) const SLUICE_REQUIRES(mutex_);

  // Synchronise themselves.
  std::atomic<LogLevel> level_;
  std::atomic<LogFormat> format_;
  std::atomic<LogLevel> tap_level_{LogLevel::off};
  LineWriter writer_;
  // Guarded by mutex_.
  Mutex mutex_;
  std::uint64_t dropped_ SLUICE_GUARDED_BY(mutex_) =
      0;  ///< lines that there was no room for, and that nobody was told of
  std::string last_line_ SLUICE_GUARDED_BY(mutex_);
  std::string last_message_ SLUICE_GUARDED_BY(mutex_);
  LogLevel last_level_ SLUICE_GUARDED_BY(mutex_) = LogLevel::warn;
  SteadyTime repeat_since_ SLUICE_GUARDED_BY(mutex_){};
  std::uint64_t repeats_ SLUICE_GUARDED_BY(mutex_) = 0;
  Condition untapped_;
  LogTap* tap_ SLUICE_GUARDED_BY(mutex_) = nullptr;
  std::uint32_t in_tap_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< threads that show it a line
  std::string decoration_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::observe
