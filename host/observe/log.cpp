#include "host/observe/log.hpp"

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>

#include "base/guard.hpp"
#include "base/text/visible.hpp"
#include "base/timestamp.hpp"
#include "host/observe/trace_context.hpp"

namespace sluice::observe {

namespace {

/// A warning that says the same again within this time is counted instead of written.
constexpr Duration kRepeatWindow = std::chrono::seconds(1);

constexpr int kStopLookMilliseconds = 50;
constexpr std::size_t kFileChunk = std::size_t{1} << 16;

std::size_t chunk_of(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) ? kFileChunk : PIPE_BUF;
}

/// Whole lines, as far as they fit, because others write to the same place.
std::size_t next_size(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) {
    return text.size();
  }
  const std::size_t line_end = text.rfind('\n', limit - 1);
  return line_end == std::string_view::npos ? limit : line_end + 1;
}

/// "2026-11-20T23:14:00.906Z".
std::string time_of_day() {
  constexpr std::size_t kToMilliseconds = 23;
  return format_timestamp(std::chrono::system_clock::now()).substr(0, kToMilliseconds) + "Z";
}

/// A field's value bare when it reads as one word, quoted otherwise.
void append_field_value(std::string& out, std::string_view value) {
  const bool bare = !value.empty() && value.find_first_of(" \"=\\\t\n\r") == std::string_view::npos;
  if (bare) {
    append_visible(out, value);
  } else {
    append_visible_json(out, value);
  }
}

std::string text_line(const LogLine& shown) {
  std::string line(name_of(shown.level));
  line.resize(5, ' ');
  line += ' ';
  append_visible(line, shown.message);
  const char* separator = "  ";
  for (const LogField& field : shown.fields) {
    line += separator;
    append_visible(line, field.name());
    line += '=';
    append_field_value(line, field.value());
    separator = " ";
  }
  return line;
}

/// The members of an object, and its closing brace.
std::string json_line(const LogLine& shown, bool datadog, std::string_view decoration) {
  JsonWriter json;
  json.begin_object();
  json.member(datadog ? "status" : "level",
              name_of(datadog && shown.level == LogLevel::trace ? LogLevel::debug : shown.level));
  json.member("message", shown.message);
  write_fields(json, shown.fields);
  if (const TraceContext* trace = TraceScope::current()) {
    // Datadog joins lines and traces by decimal numbers.
    json.member(datadog ? "dd.trace_id" : "trace_id",
                datadog ? std::to_string(low_half(trace->trace)) : hex_of(trace->trace));
    json.member(datadog ? "dd.span_id" : "span_id", datadog ? std::to_string(trace->span) : hex_of(trace->span));
  }
  if (datadog && !decoration.empty()) {
    json.members(decoration);
  }
  json.end_object();
  return json.take_text().substr(1);
}

}  // namespace

std::string_view name_of(LogLevel level) {
  constexpr std::array<std::string_view, 6> kNames{"trace", "debug", "info", "warn", "error", "error"};
  return kNames.at(static_cast<std::size_t>(level));
}

void write_fields(JsonWriter& json, std::span<const LogField> fields) {
  for (const LogField& field : fields) {
    json.key(field.name());
    field.is_bare() ? json.word(field.value()) : json.value(field.value());
  }
}

std::string format_line(LogFormat format, std::string_view decoration, const LogLine& line) {
  return format == LogFormat::text ? text_line(line) : json_line(line, format == LogFormat::datadog, decoration);
}

LineWriter::LineWriter(int descriptor)
    : descriptor_(descriptor),
      chunk_(chunk_of(descriptor)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

LineWriter::~LineWriter() { static_cast<void>(flush(kLastWait)); }

bool LineWriter::put(std::string_view lines) {
  {
    const MutexLock lock(mutex_);
    if (waiting_.size() + lines.size() > kRoom && SLUICE_GUARD(log_bounded)) {
      return false;
    }
    waiting_ += lines;
  }
  changed_.notify_all();
  return true;
}

bool LineWriter::flush(Duration limit) {
  const SteadyTime end = std::chrono::steady_clock::now() + limit;
  const MutexLock lock(mutex_);
  return changed_.wait_until(mutex_, end, [this]() SLUICE_NO_TSA { return waiting_.empty() && !writing_; });
}

void LineWriter::run(const std::stop_token& stop) {
  std::string batch;
  while (true) {
    {
      const MutexLock lock(mutex_);
      writing_ = false;
      changed_.notify_all();
      if (!changed_.wait(mutex_, stop, [this]() SLUICE_NO_TSA { return !waiting_.empty(); })) {
        return;
      }
      batch.clear();
      batch.swap(waiting_);
      writing_ = true;
    }
    write(batch, stop);
  }
}

void LineWriter::write(std::string_view text, const std::stop_token& stop) const {
  while (!text.empty()) {
    pollfd ready{descriptor_, POLLOUT, 0};
    const int count = ::poll(&ready, 1, kStopLookMilliseconds);
    if (count == 0 || (count < 0 && errno == EINTR)) {
      if (stop.stop_requested()) {
        return;
      }
      continue;
    }
    const ssize_t written = ::write(descriptor_, text.data(), next_size(text, chunk_));
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno != EINTR && errno != EAGAIN) {
      return;
    }
  }
}

Log::Log(LogLevel level, LogFormat format) : level_(level), format_(format), writer_(STDERR_FILENO) {}

Log::~Log() {
  const MutexLock lock(mutex_);
  write_repeats();
  write_dropped();
}

bool Log::enabled(LogLevel level) const { return writes(level) || is_tapped(level); }

void Log::set(LogLevel level, LogFormat format) {
  const MutexLock lock(mutex_);
  write_repeats();
  level_ = level;
  format_ = format;
}

void Log::write(LogLevel level, std::string_view message, std::span<const LogField> fields) {
  const LogLine line{level, message, fields};
  Written written;
  if (writes(level)) {
    written = write_line(line);
  }
  if (is_tapped(level) && !written.repeats) {
    show(line, written);
  }
}

void Log::write_here(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (writes(level)) {
    write_line({level, message, fields});
  }
}

void Log::print(std::string_view text, std::span<const LogField> fields) {
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
    put(formatted({LogLevel::info, text, fields}));
  }
}

bool Log::flush(Duration limit) { return writer_.flush(limit); }

void Log::decorate(std::string members) {
  const MutexLock lock(mutex_);
  decoration_ = std::move(members);
}

void Log::tap(LogTap* tap) {
  const MutexLock lock(mutex_);
  tap_level_ = tap == nullptr ? LogLevel::off : tap->level();
  tap_ = tap;
  untapped_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_NO_TSA { return in_tap_ == 0; });
}

bool Log::is_tapped(LogLevel level) const {
  const LogLevel least = tap_level_.load(std::memory_order_relaxed);
  return least != LogLevel::off && level >= least;
}

/// Shows what was written to the tap, without the lock.
void Log::show(const LogLine& line, const Written& written) {
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

Log::Written Log::write_line(const LogLine& shown) {
  // Formatting is the expensive part and needs no lock; set() changing the format in between is caught below.
  const LogFormat format = format_.load();
  std::string line = format == LogFormat::datadog ? std::string() : format_line(format, {}, shown);
  Written written;
  const MutexLock lock(mutex_);
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
  put(line);
  return written;
}

/// Hands a line to the writer, with the time before it, and counts it where there is no room.
void Log::put(std::string_view line) {
  const LogFormat format = format_.load();
  std::string whole = format == LogFormat::text   ? time_of_day() + " "
                      : format == LogFormat::json ? R"({"time":")" + time_of_day() + R"(",)"
                                                  : R"({"timestamp":")" + time_of_day() + R"(",)";
  whole += line;
  whole += '\n';
  dropped_ += writer_.put(whole) ? 0 : 1;
}

/// Says what is missing at the place where it is missing. Without room for this line it stays to be said.
void Log::write_dropped() {
  const std::uint64_t before = dropped_;
  if (before == 0) {
    return;
  }
  const std::string message =
      std::to_string(before) + " log lines were dropped, because whoever reads standard error does not keep up";
  put(formatted({LogLevel::warn, message, {}}));
  dropped_ = dropped_ == before ? 0 : before;
}

void Log::write_repeats(Written* written) {
  if (repeats_ == 0) {
    return;
  }
  const std::string message = "repeated " + std::to_string(repeats_) + " times: " + last_message_;
  repeats_ = 0;
  put(formatted({last_level_, message, {}}));
  if (written != nullptr) {
    written->level_before = last_level_;
    written->repeated_before = message;
  }
}

std::string Log::formatted(const LogLine& line) const { return format_line(format_.load(), decoration_, line); }

}  // namespace sluice::observe
