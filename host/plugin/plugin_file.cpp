#include "host/plugin/plugin_file.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "base/ranges.hpp"
#include "base/text/hex.hpp"
#include "base/text/utf8.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "sluice/detail/note.hpp"

namespace sluice::plugin {
namespace {

constexpr std::string_view kOwner = "Sluice";
constexpr std::uint32_t kDeclarationNote = 1;
constexpr std::uint32_t kBuildIdNote = 3;
constexpr std::size_t kTextLimit = std::size_t{64} * 1024;
constexpr std::size_t kFeatureLimit = 16;
constexpr std::size_t kFactLimit = 200;  // in a line for a person

// What stands for the functions of a plugin whose file alone is read.
std::int32_t no_create(const sluice_host* /*host*/, const sluice_option_value* const* /*options*/,
                       std::size_t /*count*/, void** /*instance*/, void (* /*fail*/)(void*, sluice_string),
                       void* /*sink*/) {
  return 1;
}
void no_destroy(void* /*instance*/) {}
void no_handle(void* /*instance*/, const sluice_message* /*message*/, const sluice_context* /*context*/) {}

std::string shown(const char* text) { return text == nullptr ? "none" : "\"" + std::string(text) + "\""; }

/// What a table says, one thing after the other, in the words that tell how another one differs.
std::vector<std::string> facts_of(const sluice_plugin& plugin) {
  const auto number = [](auto value) { return std::to_string(value); };
  std::vector<std::string> facts{"name " + shown(plugin.name), "version " + shown(plugin.version),
                                 "ABI " + number(plugin.abi_major) + "." + number(plugin.abi_minor),
                                 "handlers: " + number(plugin.handler_count)};
  const auto add = [&facts](const std::string& owner, std::initializer_list<std::string> about) {
    facts.push_back(owner);
    std::transform(about.begin(), about.end(), std::back_inserter(facts),
                   [&owner](const std::string& one) { return owner + " with " + one; });
  };
  for (std::size_t i = 0; i < plugin.handler_count; ++i) {
    const sluice_handler& handler = *plugin.handlers[i];
    const std::string owner = "handler " + shown(handler.name);
    add(owner, {"flags " + number(handler.flags), "the help " + shown(handler.help),
                "options: " + number(handler.option_count)});
    for (std::size_t j = 0; j < handler.option_count; ++j) {
      const sluice_option& option = *handler.options[j];
      add(owner + " with option " + shown(option.name),
          {"type " + number(option.type), "flags " + number(option.flags), "default " + shown(option.default_value),
           "the help " + shown(option.help)});
    }
  }
  return facts;
}

}  // namespace

std::string difference(const sluice_plugin& one, const sluice_plugin& other) {
  const std::vector<std::string> facts = facts_of(one);
  const std::vector<std::string> others = facts_of(other);
  const auto [mine, its] = std::mismatch(facts.begin(), facts.end(), others.begin(), others.end());
  // A help may be long.
  const auto short_of = [](const std::string& fact) { return clean_utf8(fact, kFactLimit); };
  return mine == facts.end() || its == others.end() ? std::string() : short_of(*mine) + " and " + short_of(*its);
}

void DeclaredPlugin::add(sluice_handler handler, std::vector<const sluice_option*> options,
                         std::vector<std::string> features) {
  const auto& list = option_lists_.emplace_back(std::move(options));
  if (!list.empty()) {
    handler.options = list.data();
  }
  handler_list_.push_back(&handlers_.emplace_back(handler));
  features_.push_back(std::move(features));
}

void DeclaredPlugin::finish() {
  if (!handler_list_.empty()) {
    table_.handlers = handler_list_.data();
  }
}

/// Reads the content of a note; `good` turns false where it ends too early.
class NoteReader {
 public:
  explicit NoteReader(std::string_view rest) : rest_(rest) {}

  bool good() const { return good_; }
  std::uint32_t number() {
    std::uint32_t value = 0;
    const std::string_view bytes = take(4);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      value |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    }
    return value;
  }
  std::optional<std::string> text() {
    const std::uint32_t size = number();
    return size == detail::kNoText ? std::nullopt : std::optional(std::string(take(size)));
  }
  NoteReader record() { return NoteReader(take(number())); }

  /// The whole of it, of a format that is known.
  void read(DeclaredPlugin& plugin) {
    sluice_plugin& table = plugin.table_;
    table.struct_size = sizeof(sluice_plugin);
    table.magic = SLUICE_PLUGIN_MAGIC;
    number();  // the format
    table.abi_major = number();
    table.abi_minor = number();
    table.name = plugin.keep(text());
    table.version = plugin.keep(text());
    plugin.compiler_ = text().value_or(std::string());
    table.handler_count = number();
    for (std::size_t i = 0; i < table.handler_count && i <= kHandlerLimit && good_; ++i) {
      NoteReader handler = record();
      handler.read_handler(plugin);
      good_ = good_ && handler.good_;
    }
    plugin.finish();
  }

 private:
  std::string_view take(std::size_t size) {
    if (size > rest_.size()) {
      good_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  void read_handler(DeclaredPlugin& plugin) {
    sluice_handler handler{};
    handler.struct_size = sizeof(sluice_handler);
    handler.flags = number();
    handler.name = plugin.keep(text());
    handler.help = plugin.keep(text());
    handler.create = &no_create;
    handler.destroy = &no_destroy;
    handler.handle = &no_handle;
    std::vector<std::string> features;
    const std::uint32_t feature_count = number();
    for (std::size_t i = 0; i < feature_count && good_; ++i) {
      good_ = good_ && i < kFeatureLimit;
      features.push_back(text().value_or(std::string()));
    }
    handler.option_count = number();
    std::vector<const sluice_option*> options;
    for (std::size_t i = 0; i < handler.option_count && i <= kOptionLimit && good_; ++i) {
      NoteReader record = this->record();
      sluice_option option{sizeof(sluice_option), 0, 0, 0, nullptr, nullptr, nullptr};
      option.type = static_cast<sluice_option_type>(record.number());
      option.flags = record.number();
      option.name = plugin.keep(record.text());
      option.default_value = plugin.keep(record.text());
      option.help = plugin.keep(record.text());
      options.push_back(plugin.keep(option));
      good_ = good_ && record.good_;
    }
    plugin.add(handler, std::move(options), std::move(features));
  }

  std::string_view rest_;
  bool good_ = true;
};

std::shared_ptr<const DeclaredPlugin> DeclaredPlugin::from_note(const std::string& content) {
  const std::shared_ptr<DeclaredPlugin> plugin(new DeclaredPlugin);
  NoteReader reader(content);
  reader.read(*plugin);
  return reader.good() ? plugin : nullptr;
}

/// Reads structs of the C ABI where they lie in a file; `good` turns false where the file does not tell.
class TableReader {
 public:
  explicit TableReader(const ElfFile& elf) : elf_(elf) {}

  bool good() const { return good_; }

  void read(std::uint64_t address, DeclaredPlugin& plugin) {
    sluice_plugin& table = plugin.table_;
    table = raw<sluice_plugin>(address);
    table.name = text(plugin, address + offsetof(sluice_plugin, name), kNameLimit);
    table.version = text(plugin, address + offsetof(sluice_plugin, version), kNameLimit);
    const std::uint64_t handlers = pointer(address + offsetof(sluice_plugin, handlers));
    table.handlers = nullptr;
    if (handlers == 0 || table.handler_count > kHandlerLimit) {
      return;
    }
    for (std::size_t i = 0; i < table.handler_count && good_; ++i) {
      read_handler(pointer(handlers + i * sizeof(void*)), plugin);
    }
    plugin.finish();
  }

 private:
  template <typename T>
  T raw(std::uint64_t address) {
    T value{};
    const auto bytes = elf_.bytes_at(address, sizeof(T));
    good_ = good_ && bytes;
    if (bytes) {
      std::memcpy(&value, bytes->data(), sizeof(T));
    }
    return value;
  }
  std::uint64_t pointer(std::uint64_t address) {
    const auto target = elf_.pointer_at(address);
    good_ = good_ && target;
    return target.value_or(0);
  }
  /// What the pointer at `address` points to; a byte beyond the limit shows that it is longer.
  const char* text(DeclaredPlugin& plugin, std::uint64_t address, std::size_t limit) {
    const std::uint64_t target = pointer(address);
    if (target == 0) {
      return nullptr;
    }
    auto found = elf_.text_at(target, limit + 1);
    good_ = good_ && found;
    return plugin.keep(std::move(found));
  }

  void read_handler(std::uint64_t address, DeclaredPlugin& plugin) {
    if (address == 0) {
      plugin.add_nothing();
      return;
    }
    auto handler = raw<sluice_handler>(address);
    handler.name = text(plugin, address + offsetof(sluice_handler, name), kNameLimit);
    handler.help = text(plugin, address + offsetof(sluice_handler, help), kHelpLimit);
    handler.create = pointer(address + offsetof(sluice_handler, create)) == 0 ? nullptr : &no_create;
    handler.destroy = pointer(address + offsetof(sluice_handler, destroy)) == 0 ? nullptr : &no_destroy;
    handler.handle = pointer(address + offsetof(sluice_handler, handle)) == 0 ? nullptr : &no_handle;
    handler.extension = nullptr;
    const std::uint64_t list = pointer(address + offsetof(sluice_handler, options));
    handler.options = nullptr;
    std::vector<const sluice_option*> options;
    for (std::size_t i = 0; i < handler.option_count && handler.option_count <= kOptionLimit && list != 0 && good_;
         ++i) {
      const std::uint64_t place = pointer(list + i * sizeof(void*));
      if (place == 0) {
        options.push_back(nullptr);
        continue;
      }
      auto option = raw<sluice_option>(place);
      option.name = text(plugin, place + offsetof(sluice_option, name), kNameLimit);
      option.default_value = text(plugin, place + offsetof(sluice_option, default_value), kTextLimit);
      option.help = text(plugin, place + offsetof(sluice_option, help), kHelpLimit);
      options.push_back(plugin.keep(option));
    }
    plugin.add(handler, std::move(options), {});
  }

  const ElfFile& elf_;
  bool good_ = true;
};

std::shared_ptr<const DeclaredPlugin> DeclaredPlugin::from_table(const ElfFile& elf, std::uint64_t address) {
  const std::shared_ptr<DeclaredPlugin> plugin(new DeclaredPlugin);
  TableReader reader(elf);
  reader.read(address, *plugin);
  return reader.good() ? plugin : nullptr;
}

namespace {

/// Judges the note that speaks of this major version, and keeps it in `file`.
std::optional<std::string> take_note(const std::vector<ElfNote>& notes, PluginFile& file) {
  std::size_t mine = 0;
  for (const ElfNote& note : notes) {
    if (note.owner == "GNU" && note.type == kBuildIdNote) {
      file.build_id = to_hex(note.content);
    }
    // What another format says is in the table too.
    if (note.owner != kOwner || note.type != kDeclarationNote ||
        NoteReader(note.content).number() != detail::kNoteFormat) {
      continue;
    }
    auto declared = DeclaredPlugin::from_note(note.content);
    if (!declared) {
      return "has a damaged note of what is in it: build or copy it again";
    }
    const bool is_mine = declared->table().abi_major == SLUICE_ABI_MAJOR;
    mine += is_mine ? 1 : 0;
    if (is_mine || !file.note) {
      file.note = std::move(declared);
    }
  }
  return mine > 1 ? std::optional<std::string>("has the notes of " + std::to_string(mine) +
                                               " plugins: name all handlers in one SLUICE_PLUGIN")
                  : std::nullopt;
}

std::optional<std::string> refuse(const PluginFile& file, const ElfSymbol* symbol) {
  if (file.note) {
    if (auto why = refuse_plugin(file.note->table(), 0)) {
      return why;
    }
  }
  if (symbol == nullptr) {
    return kNoSymbol;
  }
  if (!file.table) {
    return std::nullopt;
  }
  if (auto why = refuse_plugin(file.table->table(), file.symbol_size)) {
    return why;
  }
  const std::string differs = file.note ? difference(file.note->table(), file.table->table()) : std::string();
  return differs.empty() ? std::nullopt
                         : std::optional("has a note and a table that differ: " + differs + "; build it again");
}

}  // namespace

Result<PluginFile> read_plugin_file(const std::string& path) {
  SLUICE_TRY(opened, ElfFile::open(path));
  const ElfFile& elf = **opened;
  PluginFile file;
  if (auto why = take_note(elf.notes(), file)) {
    return Error(ErrorCode::invalid, std::move(*why));
  }
  file.needed = elf.needed();
  file.stripped = elf.stripped();
  file.exported = mapped(elf.exported(), &ElfSymbol::name);
  const ElfSymbol* const symbol = elf.find_exported(SLUICE_PLUGIN_SYMBOL);
  if (symbol != nullptr) {
    file.symbol_size = symbol->size;
    file.table = DeclaredPlugin::from_table(elf, symbol->address);
    // A note for another major version beside a table of this one is that of another host.
    if (file.table && file.note && file.note->table().abi_major != SLUICE_ABI_MAJOR) {
      file.note.reset();
    }
  }
  if (auto why = refuse(file, symbol)) {
    return Error(ErrorCode::invalid, std::move(*why));
  }
  return file;
}

}  // namespace sluice::plugin
