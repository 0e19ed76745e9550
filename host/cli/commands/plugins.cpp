#include <filesystem>

#include "base/text/json_writer.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/views/output.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "host/runtime/plugin_gate.hpp"

namespace sluice::cli {

namespace {

std::string_view text_of(const char* text) { return text == nullptr ? std::string_view() : text; }

std::string_view type_name(sluice_option_type type) {
  switch (type) {
    case SLUICE_OPTION_STRING:
      return "string";
    case SLUICE_OPTION_INTEGER:
      return "integer";
    case SLUICE_OPTION_NUMBER:
      return "number";
    case SLUICE_OPTION_BOOLEAN:
      return "boolean";
    case SLUICE_OPTION_DURATION:
      return "duration";
    case SLUICE_OPTION_LIST:
      return "list";
    case SLUICE_OPTION_MAP:
      return "map";
    default:
      return "unknown";
  }
}

bool is_required(const sluice_option& option) { return (option.flags & SLUICE_OPTION_REQUIRED) != 0; }
bool is_secret(const sluice_option& option) { return (option.flags & SLUICE_OPTION_SECRET) != 0; }
bool has_open_options(const sluice_handler& handler) { return (handler.flags & SLUICE_HANDLER_OPEN_OPTIONS) != 0; }

std::string abi_text(const sluice_plugin& plugin) {
  return std::to_string(plugin.abi_major) + "." + std::to_string(plugin.abi_minor);
}

std::string option_line(const sluice_option& option) {
  std::string line = "    " + std::string(option.name) + " (" + std::string(type_name(option.type));
  if (is_required(option)) {
    line += ", required";
  }
  if (is_secret(option)) {
    line += ", secret";
  } else if (option.default_value != nullptr) {
    line += ", default " + (*option.default_value == '\0' ? "\"\"" : std::string(option.default_value));
  }
  line += ")";
  const auto help = text_of(option.help);
  return line + (help.empty() ? "" : ": " + std::string(help)) + "\n";
}

void print_handler(const sluice_handler& handler, Console& console) {
  const auto help = text_of(handler.help);
  std::string text = "  handler " + std::string(handler.name) + (help.empty() ? "" : ": " + std::string(help)) + "\n";
  for (std::size_t index = 0; index < handler.option_count; ++index) {
    text += option_line(*handler.options[index]);
  }
  if (has_open_options(handler)) {
    text += "    takes any option\n";
  }
  console.out(text);
}

void print_text(const plugin::PluginRegistry& registry, Console& console) {
  for (const auto& loaded : registry.plugins()) {
    const sluice_plugin& plugin = *loaded.plugin;
    console.out(std::string(plugin.name) + " " + plugin.version + " (ABI " + abi_text(plugin) + "): " + loaded.file +
                "\n");
    for (std::size_t index = 0; index < plugin.handler_count; ++index) {
      print_handler(*plugin.handlers[index], console);
    }
  }
  for (const auto& rejected : registry.rejected()) {
    console.out("rejected: " + rejected.file + ": " + rejected.why + "\n");
  }
}

void write_option(JsonWriter& json, const sluice_option& option) {
  json.begin_object();
  json.member("name", text_of(option.name));
  json.member("type", type_name(option.type));
  json.member("required", is_required(option));
  json.member("secret", is_secret(option));
  json.key("default");
  if (option.default_value == nullptr || is_secret(option)) {
    json.null();
  } else {
    json.value(option.default_value);
  }
  json.member("help", text_of(option.help));
  json.end_object();
}

void write_handler(JsonWriter& json, const sluice_handler& handler) {
  json.begin_object();
  json.member("name", text_of(handler.name));
  json.member("help", text_of(handler.help));
  json.member("concurrent", plugin::is_concurrent(handler));
  json.member("open_options", has_open_options(handler));
  json.key("options");
  json.begin_array();
  for (std::size_t index = 0; index < handler.option_count; ++index) {
    write_option(json, *handler.options[index]);
  }
  json.end_array();
  json.end_object();
}

void write_plugin(JsonWriter& json, const plugin::LoadedPlugin& loaded) {
  const sluice_plugin& plugin = *loaded.plugin;
  json.begin_object();
  json.member("name", text_of(plugin.name));
  json.member("version", text_of(plugin.version));
  json.member("abi", abi_text(plugin));
  json.member("file", loaded.file);
  json.key("handlers");
  json.begin_array();
  for (std::size_t index = 0; index < plugin.handler_count; ++index) {
    write_handler(json, *plugin.handlers[index]);
  }
  json.end_array();
  json.end_object();
}

void print_json(const plugin::PluginRegistry& registry, Console& console) {
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  json.key("plugins");
  json.begin_array();
  for (const auto& loaded : registry.plugins()) {
    write_plugin(json, loaded);
  }
  json.end_array();
  json.key("rejected");
  json.begin_array();
  for (const auto& rejected : registry.rejected()) {
    json.begin_object();
    json.member("file", rejected.file);
    json.member("why", rejected.why);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  console.out(json.take_line());
}

Exit plugins(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  config::HostConfig settings;
  plugin::PluginRegistry registry;
  settings.plugin_dirs = arguments.all("dir");
  for (const std::string& folder : settings.plugin_dirs) {
    if (std::error_code ignored; !std::filesystem::is_directory(folder, ignored)) {
      return Exit::failure("--dir " + folder + ": there is no such folder");
    }
  }
  if (settings.plugin_dirs.empty()) {
    SLUICE_TRY(host, load_host_file(arguments));
    settings = *host;
    const config::JobFiles jobs = config::load_job_files(settings, config::process_environment());
    for (const config::ConfigError& error : jobs.errors) {
      console.note("warning: what this job file pins is not known: " + error.text());
    }
    registry.pin(plugin::pins_of(jobs.jobs));
  }
  settings.allow_insecure_files = arguments.has(kAllowInsecureFiles);
  if (const auto admitted = runtime::PluginGate(settings, registry).admit({}); !admitted) {
    return Exit::failure(admitted.error());
  }
  if (*output == Output::json) {
    print_json(registry, console);
  } else {
    print_text(registry, console);
  }
  if (registry.plugins().empty() && registry.rejected().empty()) {
    std::string places;
    for (const auto& folder : settings.plugin_dirs) {
      places += (places.empty() ? "" : ", ") + folder;
    }
    console.note("there is no plugin in " + places);
  }
  return Exit::ok();
}

}  // namespace

Command plugins_command() {
  return {
      .name = "plugins",
      .group = "Host",
      .summary = "Show the plugins that were found, their handlers and options",
      .usage = "[--dir FOLDER]... [--output json|text] [--allow-insecure-files] [--config FILE]",
      .description =
          "Files that are no usable plugin are shown with the reason. Looks into the folders of [host] "
          "plugin_dirs.",
      .flags = joined(output_flags(), {allow_insecure_files_flag(),
                                       {.name = "dir",
                                        .value = "FOLDER",
                                        .help = "look there, and read no host file; may be repeated",
                                        .repeated = true},
                                       config_flag()}),
      .examples =
          "sluice plugins\n"
          "sluice plugins --dir build/plugins --json | jq .plugins[].handlers[].name",
      .run = plugins,
  };
}

}  // namespace sluice::cli
