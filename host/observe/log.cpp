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
#include "host/observe/escape.hpp"
#include "host/observe/line_writer.hpp"

namespace sluice::observe {

namespace {

/// A warning that says the same again within this time is counted instead of written.
constexpr Duration kRepeatWindow = std::chrono::seconds(1);

constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%eZ %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ",%v)";

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::trace:
      return "trace";
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warn:
      return "warn";
    case LogLevel::error:
    case LogLevel::off:
      break;
  }
  return "error";
}

/// A field's value bare when it reads as one word, quoted otherwise.
void append_field_value(std::string& out, std::string_view value) {
  const bool bare = !value.empty() && value.find_first_of(" \"=\\\t\n\r") == std::string_view::npos;
  if (bare) {
    append_visible(out, value);
  } else {
    append_json_string(out, value);
  }
}

std::string text_line(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  std::string line(name_of(level));
  line.resize(5, ' ');
  line += ' ';
  append_visible(line, message);
  const char* separator = "  ";
  for (const LogField& field : fields) {
    line += separator;
    append_visible(line, field.name());
    line += '=';
    append_field_value(line, field.value());
    separator = " ";
  }
  return line;
}

std::string json_line(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  std::string line = R"("level":")";
  line += name_of(level);
  line += R"(","message":)";
  append_json_string(line, message);
  for (const LogField& field : fields) {
    line += ',';
    append_json_string(line, field.name());
    line += ':';
    if (field.is_bare()) {
      line += field.value();
    } else {
      append_json_string(line, field.value());
    }
  }
  line += '}';
  return line;
}

std::string format_line(LogFormat format, LogLevel level, std::string_view message,
                        std::initializer_list<LogField> fields) {
  return format == LogFormat::json ? json_line(level, message, fields) : text_line(level, message, fields);
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
    logger_.set_pattern(format == LogFormat::json ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc);
  }

  void write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
    // Formatting is the expensive part and needs no lock; set() changing the format in between is caught below.
    LogFormat format = format_.load();
    std::string line = format_line(format, level, message, fields);
    MutexLock lock(mutex_);
    if (format != format_.load()) {
      line = format_line(format_.load(), level, message, fields);
    }
    const SteadyTime now = std::chrono::steady_clock::now();
    if (now - repeat_since_ >= kRepeatWindow) {
      write_repeats();
    }
    if (level >= LogLevel::warn) {
      if (line == last_line_ && now - repeat_since_ < kRepeatWindow) {
        ++repeats_;
        return;
      }
      write_repeats();
      last_line_ = line;
      last_message_ = message;
      last_level_ = level;
      repeat_since_ = now;
    }
    write_dropped();
    logger_.log(spdlog::level::info, spdlog::string_view_t(line));
  }

  void print(std::string_view text, std::initializer_list<LogField> fields) {
    const MutexLock lock(mutex_);
    write_repeats();
    write_dropped();
    if (format_.load() != LogFormat::json) {
      static_cast<void>(writer_.put(text));
      return;
    }
    const auto begin = std::min(text.find_first_not_of("\r\n"), text.size());
    text = text.substr(begin, text.find_last_not_of("\r\n") + 1 - begin);
    if (!text.empty()) {
      logger_.log(spdlog::level::info, spdlog::string_view_t(json_line(LogLevel::info, text, fields)));
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
    logger_.log(spdlog::level::info, spdlog::string_view_t(format_line(format_.load(), LogLevel::warn, message, {})));
    sink_->forget(sink_->dropped() == before ? before : 1);
  }

  void write_repeats() SLUICE_REQUIRES(mutex_) {
    if (repeats_ == 0) {
      return;
    }
    const std::string message = "repeated " + std::to_string(repeats_) + " times: " + last_message_;
    repeats_ = 0;
    logger_.log(spdlog::level::info, spdlog::string_view_t(format_line(format_.load(), last_level_, message, {})));
  }

  // Synchronise themselves.
  std::atomic<LogLevel> level_;
  std::atomic<LogFormat> format_;
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
};

Log::Log(LogLevel level, LogFormat format) : sink_(std::make_unique<Sink>(level, format)) {}

Log::~Log() = default;

bool Log::enabled(LogLevel level) const { return sink_->enabled(level); }

void Log::write(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (enabled(level)) {
    sink_->write(level, message, fields);
  }
}

void Log::print(std::string_view text, std::initializer_list<LogField> fields) { sink_->print(text, fields); }

bool Log::flush(Duration limit) { return sink_->flush(limit); }

void Log::set(LogLevel level, LogFormat format) { sink_->set(level, format); }

}  // namespace sluice::observe
