#include "host/cli/views/plugin_text.hpp"

#include <array>
#include <span>
#include <utility>

#include "base/ranges.hpp"
#include "base/text/visible.hpp"
#include "host/plugin/around.hpp"
#include "host/plugin/handler_instance.hpp"
#include "sluice/around.h"
#include "sluice/async.h"
#include "sluice/batch.h"

namespace sluice::cli {

namespace {

constexpr std::string_view kAround = "around";

std::string_view text_of(const char* text) { return text == nullptr ? std::string_view() : text; }

std::string_view type_name(sluice_option_type type) {
  constexpr std::array<std::pair<sluice_option_type, std::string_view>, 7> kNames{{{SLUICE_OPTION_STRING, "string"},
                                                                                   {SLUICE_OPTION_INTEGER, "integer"},
                                                                                   {SLUICE_OPTION_NUMBER, "number"},
                                                                                   {SLUICE_OPTION_BOOLEAN, "boolean"},
                                                                                   {SLUICE_OPTION_DURATION, "duration"},
                                                                                   {SLUICE_OPTION_LIST, "list"},
                                                                                   {SLUICE_OPTION_MAP, "map"}}};
  const auto* const found = find_where(kNames, [type](const auto& known) { return known.first == type; });
  return found == nullptr ? "unknown" : found->second;
}

bool is_required(const sluice_option& option) { return (option.flags & SLUICE_OPTION_REQUIRED) != 0; }
bool is_secret(const sluice_option& option) { return (option.flags & SLUICE_OPTION_SECRET) != 0; }
bool has_open_options(const sluice_handler& handler) { return (handler.flags & SLUICE_HANDLER_OPEN_OPTIONS) != 0; }

std::string option_line(const sluice_option& option) {
  std::string line = "    " + std::string(option.name) + " (" + std::string(type_name(option.type));
  if (is_required(option)) {
    line += ", required";
  }
  if (is_secret(option)) {
    line += ", secret";
  } else if (option.default_value != nullptr) {
    line += ", default " + (*option.default_value == '\0' ? "\"\"" : visible(option.default_value));
  }
  line += ")";
  const auto help = text_of(option.help);
  return line + (help.empty() ? "" : ": " + visible(help)) + "\n";
}

void write_option(JsonWriter& json, const sluice_option* option) {
  const bool shown = option->default_value != nullptr && !is_secret(*option);
  put_object(json, "name", text_of(option->name), "type", type_name(option->type), "required", is_required(*option),
             "secret", is_secret(*option), "default", or_null(shown, text_of(option->default_value)), "help",
             text_of(option->help));
}

/// "1.0".
std::string abi_text(const sluice_plugin& plugin) {
  return std::to_string(plugin.abi_major) + "." + std::to_string(plugin.abi_minor);
}

}  // namespace

std::string plugin_line(const sluice_plugin& plugin, std::string_view file) {
  return std::string(plugin.name) + " " + plugin.version + " (ABI " + abi_text(plugin) + "): " + visible(file) + "\n";
}

void put_plugin(JsonWriter& json, const sluice_plugin& plugin, std::string_view file) {
  put_members(json, "name", plugin.name, "version", plugin.version, "abi", abi_text(plugin), "file", file);
}

std::string_view kind_of(const std::vector<std::string>& features) {
  const auto answers = [&features](std::string_view id) { return contains(features, id); };
  return answers(SLUICE_AROUND_1)  ? kAround
         : answers(SLUICE_ASYNC_1) ? "async"
         : answers(SLUICE_BATCH_1) ? "batch"
                                   : "handler";
}

std::string_view kind_of(const sluice_handler& handler) {
  const plugin::HandlerKind kind = plugin::kind_of(handler);
  return plugin::around_of(handler) != nullptr ? kAround
         : kind == plugin::HandlerKind::async  ? "async"
         : kind == plugin::HandlerKind::batch  ? "batch"
                                               : "handler";
}

std::string handler_text(const sluice_handler& handler, std::string_view kind) {
  const auto help = text_of(handler.help);
  const bool around = kind == kAround;
  const bool plain = around || kind == "handler";
  std::string text = "  " + std::string(kind) + (plain ? " " : " handler ") + std::string(handler.name) +
                     (help.empty() ? "" : ": " + visible(help)) + "\n";
  text += plugin::is_concurrent(handler)
              ? "    one instance for all workers of a job\n"
              : std::string("    an instance for each worker: its ") + (around ? "enter or leave" : "handle") +
                    " is not const (in C: SLUICE_HANDLER_CONCURRENT is not set)\n";
  for (std::size_t index = 0; index < handler.option_count; ++index) {
    text += option_line(*handler.options[index]);
  }
  return text + (has_open_options(handler) ? "    takes any option\n" : "");
}

void put_handler(JsonWriter& json, const sluice_handler& handler, std::string_view kind) {
  const std::span options(handler.options, handler.option_count);
  put_members(json, "name", text_of(handler.name), "kind", kind, "help", text_of(handler.help), "concurrent",
              plugin::is_concurrent(handler), "open_options", has_open_options(handler), "options",
              array_of(options, write_option));
}

void write_handler(JsonWriter& json, const sluice_handler* handler) {
  put_object(json, [&](JsonWriter& members) { put_handler(members, *handler, kind_of(*handler)); });
}

}  // namespace sluice::cli
