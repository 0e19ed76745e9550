#include "base/text/joined.hpp"
#include "base/text/visible.hpp"
#include "host/cli/options.hpp"
#include "host/cli/views/plugin_text.hpp"
#include "host/plugin/plugin_file.hpp"

/// `sluice plugin ...`: what is done with one plugin's file, without a host.
namespace sluice::cli {

namespace {

using plugin::DeclaredPlugin;
using plugin::PluginFile;

constexpr Flag kFileFlag{.name = "file", .value = "FILE", .help = "the plugin's .so", .required = true, .alone = true};
// Of a plugin that exports what it did not mean to.
constexpr std::size_t kShownSymbols = 10;

std::string listed(std::vector<std::string> names) {
  const std::size_t count = names.size();
  if (count > kShownSymbols) {
    names.resize(kShownSymbols);
  }
  return names.empty() ? "nothing"
                       : visible(sluice::joined(names)) +
                             (count > kShownSymbols ? ", and " + std::to_string(count - kShownSymbols) + " more" : "");
}

std::string file_text(const std::string& path, const PluginFile& file) {
  const DeclaredPlugin& declared = *file.declared();
  const sluice_plugin& table = declared.table();
  std::string text = plugin_line(table, path);
  for (std::size_t i = 0; i < table.handler_count; ++i) {
    text += handler_text(*table.handlers[i], kind_of(declared.features(i)));
    for (const std::string& feature : declared.features(i)) {
      text += "    answers " + visible(feature) + "\n";
    }
  }
  text += "  needs " + listed(file.needed) + "\n  exports " + listed(file.exported) +
          (file.exported.size() > 1 ? "; its one symbol would do: build it with sluice_add_plugin\n" : "\n");
  text += declared.compiler().empty() ? "" : "  built with " + visible(declared.compiler()) + "\n";
  text += file.build_id.empty() ? "" : "  build id " + file.build_id + "\n";
  text += file.stripped ? "  stripped: the stack of a crash names no functions of it\n" : "";
  return text +
         (file.note ? "" : "  without a note (built without SLUICE_PLUGIN, or by an older SDK): read from its table\n");
}

void write_file(JsonWriter& json, const std::string& path, const PluginFile& file) {
  const DeclaredPlugin& declared = *file.declared();
  const sluice_plugin& table = declared.table();
  const auto handlers = [&](JsonWriter& members) {
    members.begin_array();
    for (std::size_t i = 0; i < table.handler_count; ++i) {
      const auto handler = [&](JsonWriter& some) {
        put_handler(some, *table.handlers[i], kind_of(declared.features(i)));
      };
      put_object(members, handler, "features", declared.features(i));
    }
    members.end_array();
  };
  const auto facts = [&](JsonWriter& members) { put_plugin(members, table, path); };
  put_object(json, facts, "handlers", handlers, "needed", file.needed, "exported", file.exported, "compiler",
             or_null(!declared.compiler().empty(), declared.compiler()), "build_id",
             or_null(!file.build_id.empty(), file.build_id), "stripped", file.stripped, "note", file.note != nullptr);
}

Exit inspect(const Arguments& arguments, Console& console) {
  const std::string path = arguments.get("file");
  SLUICE_TRY(file, or_exit(kExitFailure, plugin::read_plugin_file(path), visible(path) + " "));
  if (file->declared() == nullptr) {
    return Exit::failure(
        visible(path) +
        " fills its table when it is loaded, so that its file does not tell what is in it: make " SLUICE_PLUGIN_SYMBOL
        " a constant, or look at it with `sluice plugins --dir`, which loads it");
  }
  return print(console.shows_text() ? wrapped(file_text(path, *file), console.screen())
                                    : json_text([&](JsonWriter& json) { write_file(json, path, *file); }),
               console);
}

}  // namespace

std::vector<Command> plugin_file_commands() {
  return {
      {
          .name = "plugin inspect",
          .summary = "Show what a plugin's file declares, without running it",
          .usage = "FILE [--output json|text]",
          .description =
              "Reads name, version, ABI, handlers and options with their help, the libraries that the file needs, the "
              "symbols that it exports, its build id and whether it is stripped. The file is neither loaded nor run: "
              "the note that SLUICE_PLUGIN writes into it says all of that, or its table where it has no note. What "
              "the host would refuse by its file alone is refused here, with the same words and exit code 1.",
          .flags = joined({kFileFlag}, output_flags()),
          .examples = "sluice plugin inspect build/greeter.so\n"
                      "sluice plugin inspect greeter.so --json | jq .needed",
          .run = inspect,
      },
  };
}

}  // namespace sluice::cli
