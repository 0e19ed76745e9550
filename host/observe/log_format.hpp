#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/text/json_writer.hpp"
#include "host/observe/log.hpp"

namespace sluice::observe {

/// "trace", "debug", "info", "warn", "error".
std::string_view name_of(LogLevel level);

/// What follows the time in a line of that format; of JSON the members behind it and the closing brace. `decoration`:
/// of the datadog format, members of a JSON object.
std::string format_line(LogFormat format, std::string_view decoration, const LogLine& line);

/// The fields as members of an object that the caller begins and ends.
void write_fields(JsonWriter& json, std::span<const LogField> fields);

}  // namespace sluice::observe
