#pragma once

#include <deque>

#include "host/plugin/elf_file.hpp"
#include "sluice/abi.h"

namespace sluice::plugin {

/// What a plugin's file declares, as a table like the one that the loaded plugin has. Nothing of it is the plugin's own
/// memory: it lives as long as this object. Its functions are there where the plugin has them, and do nothing.
class DeclaredPlugin : boost::noncopyable {
 public:
  /// From the content of the note that SLUICE_PLUGIN writes; null when that is damaged.
  static std::shared_ptr<const DeclaredPlugin> from_note(const std::string& content);
  /// From the table at `address`, as it will be before code of the file has run; null when the file does not tell, as
  /// where code fills it.
  static std::shared_ptr<const DeclaredPlugin> from_table(const ElfFile& elf, std::uint64_t address);

  const sluice_plugin& table() const { return table_; }
  /// The features by which the handler with that number is of another kind than the ordinary one. A table does not
  /// tell.
  const std::vector<std::string>& features(std::size_t handler) const { return features_.at(handler); }
  /// "gcc 12.2"; empty: it does not say.
  const std::string& compiler() const { return compiler_; }

 private:
  friend class NoteReader;
  friend class TableReader;

  DeclaredPlugin() = default;

  const char* keep(std::optional<std::string> text) {
    return text ? texts_.emplace_back(*std::move(text)).c_str() : nullptr;
  }
  const sluice_option* keep(const sluice_option& option) { return &options_.emplace_back(option); }
  void add(sluice_handler handler, std::vector<const sluice_option*> options, std::vector<std::string> features);
  /// A table may have NULL for a handler.
  void add_nothing() {
    handler_list_.push_back(nullptr);
    features_.emplace_back();
  }
  void finish();

  sluice_plugin table_{};
  std::string compiler_;
  std::vector<std::vector<std::string>> features_;
  std::deque<std::string> texts_;
  std::deque<sluice_option> options_;
  std::deque<std::vector<const sluice_option*>> option_lists_;
  std::deque<sluice_handler> handlers_;
  std::vector<const sluice_handler*> handler_list_;
};

/// The first thing that two tables of one plugin say differently, as "version 1.0.1 and version 1.0.0"; empty: nothing.
std::string difference(const sluice_plugin& one, const sluice_plugin& other);

/// What a plugin's file tells without a line of it being run. A value.
struct PluginFile {
  std::shared_ptr<const DeclaredPlugin> note;   ///< null: it has none that this host can read
  std::shared_ptr<const DeclaredPlugin> table;  ///< null: it has none before its code has run
  std::vector<std::string> needed;              ///< libraries
  std::vector<std::string> exported;            ///< symbols
  std::uint64_t symbol_size = 0;                ///< of its table; 0: the file does not say
  std::string build_id;                         ///< in hexadecimal digits; empty: it has none
  bool stripped = false;

  /// Null: only the loaded plugin can tell.
  const DeclaredPlugin* declared() const { return note ? note.get() : table.get(); }
};

/// Follows the name of a file without the symbol.
inline constexpr const char* kNoSymbol = "has no symbol " SLUICE_PLUGIN_SYMBOL
                                         ": it is not a Sluice plugin, or was built without SLUICE_PLUGIN and "
                                         "sluice_add_plugin";

/// Reads a plugin's file, and judges it as `refuse_plugin` does the loaded one. Fails for what the host would not load,
/// with what is wrong and the mend: a text that follows the file's name.
Result<PluginFile> read_plugin_file(const std::string& path);

}  // namespace sluice::plugin
