#pragma once

#include <string>

#include "host/cli/views/output.hpp"
#include "sluice/abi.h"

/// What plugins declare, for people and as JSON; what their authors wrote is shown without control characters.
namespace sluice::cli {

/// "1.0".
std::string abi_text(const sluice_plugin& plugin);
/// The handler's lines, indented: its help, how it runs in several workers and why, its options.
std::string handler_text(const sluice_handler& handler, bool around);
/// The members that describe it, for an object.
void put_handler(JsonWriter& json, const sluice_handler& handler, bool around);
void write_handler(JsonWriter& json, const sluice_handler* handler);

}  // namespace sluice::cli
