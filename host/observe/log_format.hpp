#pragma once

#include <span>
#include <string>
#include <string_view>

#include "host/observe/log.hpp"

namespace sluice::observe {

/// "trace", "debug", "info", "warn", "error".
std::string_view name_of(LogLevel level);

/// What follows the time in a line of that format. `decoration`: of the datadog format, members of a JSON object.
std::string format_line(LogFormat format, std::string_view decoration, const LogLine& line);

/// `,"name":value` for each field.
void append_fields(std::string& out, std::span<const LogField> fields);
/// `,"dd.trace_id":"...","dd.span_id":"..."` in decimal, as Datadog joins lines and traces; nothing outside of a trace.
void append_datadog_trace(std::string& out);

}  // namespace sluice::observe
