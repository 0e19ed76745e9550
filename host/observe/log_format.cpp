#include "host/observe/log_format.hpp"

#include "host/observe/escape.hpp"
#include "host/observe/trace_context.hpp"

namespace sluice::observe {

namespace {

/// A field's value bare when it reads as one word, quoted otherwise.
void append_field_value(std::string& out, std::string_view value) {
  const bool bare = !value.empty() && value.find_first_of(" \"=\\\t\n\r") == std::string_view::npos;
  if (bare) {
    append_visible(out, value);
  } else {
    append_json_string(out, value);
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

std::string json_line(const LogLine& shown) {
  std::string line = R"("level":")";
  line += name_of(shown.level);
  line += R"(","message":)";
  append_json_string(line, shown.message);
  append_fields(line, shown.fields);
  if (const TraceContext* trace = TraceScope::current()) {
    line += R"(,"trace_id":")" + hex_of(trace->trace) + R"(","span_id":")" + hex_of(trace->span) + '"';
  }
  line += '}';
  return line;
}

std::string datadog_line(std::string_view decoration, const LogLine& shown) {
  std::string line = R"("status":")";
  line += shown.level == LogLevel::trace ? name_of(LogLevel::debug) : name_of(shown.level);
  line += R"(","message":)";
  append_json_string(line, shown.message);
  append_fields(line, shown.fields);
  append_datadog_trace(line);
  if (!decoration.empty()) {
    line += ',';
    line += decoration;
  }
  line += '}';
  return line;
}

}  // namespace

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

void append_fields(std::string& out, std::span<const LogField> fields) {
  for (const LogField& field : fields) {
    out += ',';
    append_json_string(out, field.name());
    out += ':';
    if (field.is_bare()) {
      out += field.value();
    } else {
      append_json_string(out, field.value());
    }
  }
}

void append_datadog_trace(std::string& out) {
  if (const TraceContext* trace = TraceScope::current()) {
    out += R"(,"dd.trace_id":")" + std::to_string(low_half(trace->trace)) + R"(","dd.span_id":")" +
           std::to_string(trace->span) + '"';
  }
}

std::string format_line(LogFormat format, std::string_view decoration, const LogLine& line) {
  switch (format) {
    case LogFormat::json:
      return json_line(line);
    case LogFormat::datadog:
      return datadog_line(decoration, line);
    case LogFormat::text:
      break;
  }
  return text_line(line);
}

}  // namespace sluice::observe
