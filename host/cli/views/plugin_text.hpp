#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/cli/views/output.hpp"
#include "sluice/abi.h"

/// What plugins declare, for people and as JSON; what their authors wrote is shown without control characters.
namespace sluice::cli {

/// A line with its name, version, ABI and file.
std::string plugin_line(const sluice_plugin& plugin, std::string_view file);
/// The same as members of an object.
void put_plugin(JsonWriter& json, const sluice_plugin& plugin, std::string_view file);
/// "around", "batch", "async" or "handler", by the features that it answers.
std::string_view kind_of(const std::vector<std::string>& features);
/// The same; asks the handler.
std::string_view kind_of(const sluice_handler& handler);
/// The handler's lines, indented: its help, how it runs in several workers and why, its options.
std::string handler_text(const sluice_handler& handler, std::string_view kind);
/// The members that describe it, for an object.
void put_handler(JsonWriter& json, const sluice_handler& handler, std::string_view kind);
void write_handler(JsonWriter& json, const sluice_handler* handler);

}  // namespace sluice::cli
