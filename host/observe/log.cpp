#include "host/observe/log.hpp"

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/observe/line_writer.hpp"
#include "host/observe/log_format.hpp"

namespace sluice::observe {

namespace {

/// A warning that says the same again within this time is counted instead of written.
constexpr Duration kRepeatWindow = std::chrono::seconds(1);

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v)";
constexpr const char* kDatadogPattern = R"({"timestamp":"%Y-%m-%dT%H:%M:%S.%eZ",%v)";

const char* pattern_of(LogFormat format) {
  return format == LogFormat::text ? kTextPattern : format == LogFormat::json ? kJsonPattern : kDatadogPattern;
}

/// Hands finished lines to the writer and counts those that it had no room for.
class WriterSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit WriterSink(LineWriter& writer) : writer_(writer) {}

  std::uint64_t dropped() const { return dropped_; }
  void forget(std::uint64_t count) { dropped_ -= count; }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (!writer_.put({line.data(), line.size()})) {
      ++dropped_;
    }
  }
  void flush_() override {}

  LineWriter& writer_;
  std::uint64_t dropped_ = 0;
};

}  // namespace

class Log::Sink {
 public:
  /// What was not written because it says the same again; and what was said of such lines before this one.
  struct Written {
    bool repeats = false;
    LogLevel level_before = LogLevel::warn;
    std::string repeated_before;
  };

  Sink(LogLevel level, LogFormat format)
      : level_(level),
        format_(format),
        writer_(STDERR_FILENO),
        sink_(std::make_shared<WriterSink>(writer_)),
        logger_("sluice", sink_) {
    logger_.set_level(spdlog::level::trace);
    logger_.set_error_handler([](const std::string&) {});  // a log that fails has nowhere to say so
    set(level, format);
  }

  ~Sink() {
    MutexLock lock(mutex_);
    write_repeats();
    write_dropped();
  }

  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  bool enabled(LogLevel level) const {
    return level != LogLevel::off && level >= level_.load(std::memory_order_relaxed);
  }

  void set(LogLevel level, LogFormat format) {
    MutexLock lock(mutex_);
    write_repeats();
    level_ = level;
    format_ = format;
    logger_.set_pattern(pattern_of(format), spdlog::pattern_time_type::utc);
  }

  void tap(LogTap* tap) {
    MutexLock lock(mutex_);
    tap_level_ = tap == nullptr ? LogLevel::off : tap->level();
    tap_ = tap;
    untapped_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_NO_TSA { return in_tap_ == 0; });
  }

  bool is_tapped(LogLevel level) const {
    const LogLevel least = tap_level_.load(std::memory_order_relaxed);
    return least != LogLevel::off && level >= least;
  }

  /// Shows what was written to the tap, without the lock.
  void show(const LogLine& line, const Written& written) {
    LogTap* tap = nullptr;
    {
      const MutexLock lock(mutex_);
      tap = tap_;
      in_tap_ += tap == nullptr ? 0 : 1;
    }
    if (tap == nullptr) {
      return;
    }
    if (!written.repeated_before.empty()) {
      tap->take({written.level_before, written.repeated_before, {}});
    }
    tap->take(line);
    const MutexLock lock(mutex_);
    if (--in_tap_ == 0) {
      untapped_.notify_all();
    }
  }

  void decorate(std::string members) {
    const MutexLock lock(mutex_);
    decoration_ = std::move(members);
  }

  Written write(const LogLine& shown) {
    // Formatting is the expensive part and needs no lock; set() changing the format in between is caught below.
    LogFormat format = format_.load();
    std::string line = format == LogFormat::datadog ? std::string() : format_line(format, {}, shown);
    Written written;
    MutexLock lock(mutex_);
    if (line.empty() || format != format_.load()) {
      line = formatted(shown);
    }
    const SteadyTime now = std::chrono::steady_clock::now();
    if (now - repeat_since_ >= kRepeatWindow) {
      write_repeats(&written);
    }
    if (shown.level >= LogLevel::warn) {
      if (line == last_line_ && now - repeat_since_ < kRepeatWindow) {
        ++repeats_;
        written.repeats = true;
        return written;
      }
      write_repeats(&written);
      last_line_ = line;
      last_message_ = shown.message;
      last_level_ = shown.level;
      repeat_since_ = now;
    }
    write_dropped();
    logger_.log(spdlog::level::info, spdlog::string_view_t(line));
    return written;
  }

  void print(std::string_view text, std::initializer_list<LogField> fields) {
    const MutexLock lock(mutex_);
    write_repeats();
    write_dropped();
    if (format_.load() == LogFormat::text) {
      static_cast<void>(writer_.put(text));
      return;
    }
    const auto begin = std::min(text.find_first_not_of("\r\n"), text.size());
    text = text.substr(begin, text.find_last_not_of("\r\n") + 1 - begin);
    if (!text.empty()) {
      logger_.log(spdlog::level::info, spdlog::string_view_t(formatted({LogLevel::info, text, fields})));
    }
  }

  bool flush(Duration limit) { return writer_.flush(limit); }

 private:
  /// Says what is missing at the place where it is missing. Without room for this line it stays to be said.
  void write_dropped() SLUICE_REQUIRES(mutex_) {
    const std::uint64_t before = sink_->dropped();
    if (before == 0) {
      return;
    }
    const std::string message =
        std::to_string(before) + " log lines were dropped, because whoever reads standard error does not keep up";
    logger_.log(spdlog::level::info, spdlog::string_view_t(formatted({LogLevel::warn, message, {}})));
    sink_->forget(sink_->dropped() == before ? before : 1);
  }

  void write_repeats(Written* written = nullptr) SLUICE_REQUIRES(mutex_) {
    if (repeats_ == 0) {
      return;
    }
    const std::string message = "repeated " + std::to_string(repeats_) + " times: " + last_message_;
    repeats_ = 0;
    logger_.log(spdlog::level::info, spdlog::string_view_t(formatted({last_level_, message, {}})));
    if (written != nullptr) {
      written->level_before = last_level_;
      written->repeated_before = message;
    }
  }

  std::string formatted(const LogLine& line) SLUICE_REQUIRES(mutex_) {
    return format_line(format_.load(), decoration_, line);
  }

  // Synchronise themselves.
  std::atomic<LogLevel> level_;
  std::atomic<LogFormat> format_;
  std::atomic<LogLevel> tap_level_{LogLevel::off};
  LineWriter writer_;
  // Guarded by mutex_.
  Mutex mutex_;
  const std::shared_ptr<WriterSink> sink_;
  spdlog::logger logger_ SLUICE_GUARDED_BY(mutex_);
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

Log::Log(LogLevel level, LogFormat format) : sink_(std::make_unique<Sink>(level, format)) {}

Log::~Log() = default;

bool Log::enabled(LogLevel level) const { return sink_->enabled(level) || sink_->is_tapped(level); }

void Log::write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  const LogLine line{level, message, fields};
  Sink::Written written;
  if (sink_->enabled(level)) {
    written = sink_->write(line);
  }
  if (sink_->is_tapped(level) && !written.repeats) {
    sink_->show(line, written);
  }
}

void Log::write_here(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (sink_->enabled(level)) {
    sink_->write({level, message, fields});
  }
}

void Log::print(std::string_view text, std::initializer_list<LogField> fields) { sink_->print(text, fields); }

bool Log::flush(Duration limit) { return sink_->flush(limit); }

void Log::set(LogLevel level, LogFormat format) { sink_->set(level, format); }

void Log::tap(LogTap* tap) { sink_->tap(tap); }

void Log::decorate(std::string members) { sink_->decorate(std::move(members)); }

}  // namespace sluice::observe
