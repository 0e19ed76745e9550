#include "host/observe/log_format.hpp"

#include "base/text/visible.hpp"
#include "host/observe/trace_context.hpp"

namespace sluice::observe {

namespace {

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
std::string without_brace(JsonWriter& json) {
  json.end_object();
  return json.take_text().substr(1);
}

std::string json_line(const LogLine& shown) {
  JsonWriter json;
  json.begin_object();
  json.member("level", name_of(shown.level));
  json.member("message", shown.message);
  write_fields(json, shown.fields);
  if (const TraceContext* trace = TraceScope::current()) {
    json.member("trace_id", hex_of(trace->trace));
    json.member("span_id", hex_of(trace->span));
  }
  return without_brace(json);
}

std::string datadog_line(std::string_view decoration, const LogLine& shown) {
  JsonWriter json;
  json.begin_object();
  json.member("status", name_of(shown.level == LogLevel::trace ? LogLevel::debug : shown.level));
  json.member("message", shown.message);
  write_fields(json, shown.fields);
  // In decimal, as Datadog joins lines and traces.
  if (const TraceContext* trace = TraceScope::current()) {
    json.member("dd.trace_id", std::to_string(low_half(trace->trace)));
    json.member("dd.span_id", std::to_string(trace->span));
  }
  if (!decoration.empty()) {
    json.members(decoration);
  }
  return without_brace(json);
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

void write_fields(JsonWriter& json, std::span<const LogField> fields) {
  for (const LogField& field : fields) {
    json.key(field.name());
    field.is_bare() ? json.word(field.value()) : json.value(field.value());
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
