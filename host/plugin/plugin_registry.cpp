#include "host/plugin/plugin_registry.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/core/demangle.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/guard.hpp"
#include "base/mutex.hpp"
#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "config/files.hpp"
#include "dynamo/signing/digest.hpp"
#include "host/plugin/plugin_file.hpp"

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

namespace sluice::plugin {
namespace {

/// What stands between `text` and the next character of `ends`; empty when `text` is not there.
std::string_view after(std::string_view said, std::string_view text, std::string_view ends) {
  const std::size_t found = said.find(text);
  if (found == std::string_view::npos) {
    return {};
  }
  const std::string_view rest = said.substr(found + text.size());
  return rest.substr(0, rest.find_first_of(ends));
}

using Refusal = std::optional<std::string>;

// The sizes in version 1.0, below which no struct of this major version can be.
constexpr std::size_t kPluginSize = offsetof(sluice_plugin, handler_count) + sizeof(std::size_t);
constexpr std::size_t kHandlerSize = offsetof(sluice_handler, extension) + sizeof(void*);
constexpr std::size_t kOptionSize = offsetof(sluice_option, help) + sizeof(void*);
// What every major version has in common: enough to tell which one it is.
constexpr std::size_t kPrefixSize = offsetof(sluice_plugin, abi_minor) + sizeof(std::uint32_t);

std::string version_text(std::uint32_t major, std::uint32_t minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

std::string quoted(const char* text) { return "\"" + std::string(text, strnlen(text, kNameLimit)) + "\""; }

bool is_word(const char* text, std::string_view besides) {
  return text != nullptr && detail::is_word({text, strnlen(text, kNameLimit + 1)}, besides);
}

std::string bad_size(std::string_view what, std::size_t has, std::size_t needs) {
  return "has a " + std::string(what) + " of " + std::to_string(has) + " bytes, and in ABI 1.0 it has " +
         std::to_string(needs) + ": rebuild it with the SDK";
}

Refusal refuse_version(const sluice_plugin& plugin) {
  const std::string mine = version_text(SLUICE_ABI_MAJOR, SLUICE_ABI_MINOR);
  const std::string built = "is built for plugin ABI " + version_text(plugin.abi_major, plugin.abi_minor);
  if (plugin.abi_major != SLUICE_ABI_MAJOR) {
    return built + ", and this host runs ABI " + mine + ": " +
           (plugin.abi_major > SLUICE_ABI_MAJOR ? "update the host, or rebuild the plugin with sluice-sdk "
                                                : "rebuild the plugin with sluice-sdk ") +
           std::to_string(SLUICE_ABI_MAJOR);
  }
  if (plugin.abi_minor > SLUICE_ABI_MINOR) {
    return built + ", and this host knows it up to " + mine +
           ": update the host, or rebuild the plugin with sluice-sdk " + mine;
  }
  return std::nullopt;
}

Refusal refuse_option(const sluice_option* option, const std::string& owner) {
  if (option == nullptr) {
    return owner + " declares an option that is NULL: a defect of the plugin";
  }
  if (option->struct_size < kOptionSize) {
    return bad_size("sluice_option", option->struct_size, kOptionSize);
  }
  if (!is_word(option->name, detail::kInOptionNames)) {
    return owner + " declares an option whose name is not 1 to " + std::to_string(kNameLimit) +
           " letters, digits, '-' or '_': a defect of the plugin";
  }
  if (option->type < SLUICE_OPTION_STRING || option->type > SLUICE_OPTION_MAP) {
    return owner + " declares the option " + quoted(option->name) + " with the unknown type " +
           std::to_string(option->type) + ": a defect of the plugin";
  }
  return std::nullopt;
}

Refusal refuse_options(const sluice_handler& handler, const std::string& owner) {
  if (handler.option_count > kOptionLimit || (handler.options == nullptr && handler.option_count > 0)) {
    return owner + " declares " + std::to_string(handler.option_count) + " options, and at most " +
           std::to_string(kOptionLimit) + " in a list that is not NULL can be: a defect of the plugin";
  }
  for (std::size_t i = 0; i < handler.option_count; ++i) {
    if (Refusal refusal = refuse_option(handler.options[i], owner)) {
      return refusal;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (std::strcmp(handler.options[i]->name, handler.options[j]->name) == 0) {
        return owner + " declares the option " + quoted(handler.options[i]->name) + " twice: a defect of the plugin";
      }
    }
  }
  return std::nullopt;
}

Refusal refuse_handler(const sluice_handler* handler) {
  if (handler == nullptr) {
    return "has a handler that is NULL: a defect of the plugin";
  }
  if (handler->struct_size < kHandlerSize) {
    return bad_size("sluice_handler", handler->struct_size, kHandlerSize);
  }
  if (!is_word(handler->name, detail::kInNames)) {
    return "has a handler whose name is not 1 to " + std::to_string(kNameLimit) +
           " letters, digits, '-', '_' or '.': a defect of the plugin";
  }
  const std::string owner = "has a handler " + quoted(handler->name) + " that";
  if (handler->create == nullptr || handler->destroy == nullptr || handler->handle == nullptr) {
    const char* missing = handler->create == nullptr ? "create" : handler->destroy == nullptr ? "destroy" : "handle";
    return owner + " has no function `" + missing + "`: a defect of the plugin";
  }
  if (handler->help != nullptr && strnlen(handler->help, kHelpLimit + 1) > kHelpLimit) {
    return owner + " has a help text of more than " + std::to_string(kHelpLimit) + " bytes: a defect of the plugin";
  }
  return refuse_options(*handler, owner);
}

Refusal refuse_handlers(const sluice_plugin& plugin) {
  if (plugin.handler_count == 0 || plugin.handlers == nullptr) {
    return "has no handlers: name them in SLUICE_PLUGIN";
  }
  if (plugin.handler_count > kHandlerLimit) {
    return "has " + std::to_string(plugin.handler_count) + " handlers, and at most " + std::to_string(kHandlerLimit) +
           " can be in one plugin: split it";
  }
  for (std::size_t i = 0; i < plugin.handler_count; ++i) {
    if (Refusal refusal = refuse_handler(plugin.handlers[i])) {
      return refusal;
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (std::strcmp(plugin.handlers[i]->name, plugin.handlers[j]->name) == 0) {
        return "has two handlers named " + quoted(plugin.handlers[i]->name) + ": give each a name of its own";
      }
    }
  }
  return std::nullopt;
}

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;

Error failed(const std::string& what) { return {ErrorCode::invalid, what + ": " + std::strerror(errno)}; }

int memory_file(const std::string& file) {
  const std::string name = file.substr(file.rfind('/') + 1).substr(0, 200);
  const int made = ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
  // Kernels before 6.3 do not know that a file in memory may be one that is not to be executed.
  return made >= 0 || errno != EINVAL ? made : ::memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

/// False, with errno, when something stops it.
bool copy(const Descriptor& from, const Descriptor& to) {
  constexpr std::size_t kStep = std::size_t{1} << 30U;
  ssize_t copied = 0;
  do {
    copied = ::sendfile(to.get(), from.get(), nullptr, kStep);
  } while (copied > 0 || (copied < 0 && errno == EINTR));
  return copied == 0;
}

/// Keeps the bytes that a library was loaded from until the process ends, beyond every destructor: the dynamic linker
/// knows it by the name of their descriptor.
void keep(std::shared_ptr<const SealedFile> bytes) {
  static Mutex& mutex = *new Mutex;
  static auto& kept = *new std::vector<std::shared_ptr<const SealedFile>>;
  const MutexLock lock(mutex);
  kept.push_back(std::move(bytes));
}

/// Loads what lies under that name; `bytes`: what it was copied into, if it was.
LibraryResult load(const std::string& path, std::shared_ptr<const SealedFile> bytes) {
  const auto read = read_plugin_file(path);
  if (!read) {
    return {.why = read.error().message()};
  }
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed
  if (library == nullptr) {
    return {.why = explain_load_error(path, ::dlerror())};
  }
  keep(bytes);
  const void* symbol = ::dlsym(library, SLUICE_PLUGIN_SYMBOL);
  if (symbol == nullptr) {
    return {.why = kNoSymbol, .loaded = true};
  }
  const auto* plugin = static_cast<const sluice_plugin*>(symbol);
  if (const auto why = refuse_plugin(*plugin, read->symbol_size)) {
    return {.why = *why, .loaded = true};
  }
  if (const std::string differs = read->note ? difference(read->note->table(), *plugin) : std::string();
      !differs.empty()) {
    return {.why = "has a note and a table that differ: " + differs + "; build it again", .loaded = true};
  }
  return {plugin, {}, true, std::move(bytes)};
}

constexpr const char* kHasChanged = "has changed while it was looked at: reload once it is complete";

/// As load_library, for a file that must have this SHA-256 (64 lower-case digits): what was compared is what is
/// executed, from memory, so that it finds no library by `$ORIGIN`. `digest`: what it had at a first look, before which
/// nothing of it is copied into memory, however large it is; empty: that was cut short.
LibraryResult load_pinned_library(const std::string& file, const std::string& sha256, const std::string& digest) {
  if (const auto elf = ElfFile::open(file); !elf) {
    return {.why = elf.error().message()};
  }
  if (digest.empty()) {
    return {.why = kHasChanged};
  }
  if (digest != sha256 && SLUICE_GUARD(plugin_pins)) {
    return {.why = "has the sha256 " + digest + ", and a job pins " + sha256 +
                   ": put the file that was meant in its place, or correct sha256 in the job's [job.plugin]"};
  }
  const auto bytes = SealedFile::copy_of(file);
  if (!bytes) {
    return {.why = bytes.error().message()};
  }
  if ((*bytes)->sha256() != sha256 && SLUICE_GUARD(plugin_pins)) {
    return {.why = kHasChanged};
  }
  return load((*bytes)->path(), *bytes);
}

constexpr std::size_t kFileLimit = 1000;
// Unusable files that an error about a missing handler gives the reason for.
constexpr std::size_t kReasonLimit = 3;

FileIdentity identity_of(const struct stat& status) {
  return {status.st_dev, status.st_ino, status.st_size,
          std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

FileIdentity identify(const std::string& file) {
  struct stat status {};
  return ::stat(file.c_str(), &status) == 0 ? identity_of(status) : FileIdentity();
}

FileIdentity identify(const Descriptor& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 ? identity_of(status) : FileIdentity();
}

/// SHA-256 of the bytes of a file; empty where it cannot be read.
std::string digest_of(const Descriptor& file) {
  dynamo::RunningSha256 digest;
  std::array<char, std::size_t{64} * 1024> buffer{};
  ssize_t got = 0;
  for (off_t at = 0; (got = ::pread(file.get(), buffer.data(), buffer.size(), at)) > 0; at += got) {
    digest.add({buffer.data(), static_cast<std::size_t>(got)});
  }
  return got == 0 ? dynamo::to_hex(digest.end()) : std::string();
}

std::string name_of(const std::string& file) { return std::filesystem::path(file).filename().string(); }

}  // namespace

std::string explain_load_error(const std::string& file, std::string_view said) {
  if (const std::string_view symbol = after(said, "undefined symbol: ", " \t\n,"); !symbol.empty()) {
    return "needs the symbol \"" + boost::core::demangle(std::string(symbol).c_str()) +
           "\", which no library has: link the one that defines it (LIBRARIES of sluice_add_plugin)";
  }
  if (const std::string_view version = after(said, "version `", "'"); !version.empty()) {
    return "needs " + std::string(version) +
           ", which this system does not have: build it on this system or an older one";
  }
  const std::size_t missing = said.find(": cannot open shared object file");
  if (missing != std::string_view::npos && said.substr(0, missing) != file) {
    return "needs the library " + std::string(said.substr(0, missing)) + ", which cannot be opened: install it";
  }
  if (said.starts_with(file + ": ")) {
    said.remove_prefix(file.size() + 2);
  }
  std::string text = "cannot be loaded: " + std::string(said);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

Refusal refuse_plugin(const sluice_plugin& plugin, std::size_t symbol_size) {
  if (symbol_size != 0 && symbol_size < kPrefixSize) {
    return bad_size("symbol " SLUICE_PLUGIN_SYMBOL, symbol_size, kPluginSize);
  }
  if (plugin.magic != SLUICE_PLUGIN_MAGIC) {
    return "has a symbol " SLUICE_PLUGIN_SYMBOL
           " that does not begin as a Sluice plugin does: rebuild it with the SDK, "
           "or move it out of the plugin folder";
  }
  if (Refusal refusal = refuse_version(plugin)) {
    return refusal;
  }
  const std::size_t size =
      symbol_size == 0 ? plugin.struct_size : std::min<std::size_t>(plugin.struct_size, symbol_size);
  if (size < kPluginSize) {
    return bad_size("sluice_plugin", size, kPluginSize);
  }
  if (!is_word(plugin.name, detail::kInNames)) {
    return "has a name that is not 1 to " + std::to_string(kNameLimit) +
           " letters, digits, '-', '_' or '.': correct it in "
           "SLUICE_PLUGIN";
  }
  if (!is_word(plugin.version, detail::kInVersions)) {
    return "has a version that is not 1 to " + std::to_string(kNameLimit) +
           " letters, digits or one of \"-_.+~:\": correct "
           "it in SLUICE_PLUGIN";
  }
  return refuse_handlers(plugin);
}

Result<std::shared_ptr<const SealedFile>> SealedFile::copy_of(const std::string& file) {
  const Descriptor from(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!from.open()) {
    return failed("cannot be read");
  }
  Descriptor to(memory_file(file));
  if (!to.open() || !copy(from, to)) {
    return failed("cannot be copied into memory, to compare it with its sha256");
  }
  if (::fcntl(to.get(), F_ADD_SEALS, kSeals) != 0) {
    return failed("cannot be sealed in memory");
  }
  std::string digest = digest_of(to);
  if (digest.empty()) {
    return failed("cannot be compared with its sha256");
  }
  return std::shared_ptr<const SealedFile>(new SealedFile(std::move(to), std::move(digest)));
}

LibraryResult load_library(const std::string& file, std::size_t generation) {
  std::error_code code;
  // Without a slash in it the dynamic linker would search its own folders for the name.
  const std::filesystem::path whole = std::filesystem::absolute(file, code);
  // It knows a file by its name before all else, so that what has come to lie under that one is given another.
  std::filesystem::path path = whole.parent_path();
  for (std::size_t i = 0; i < generation; ++i) {
    path /= ".";
  }
  return load((path / whole.filename()).string(), nullptr);
}

const sluice_handler* find_handler(const sluice_plugin& plugin, const std::string& name) {
  const auto handlers = handlers_in(plugin);
  const auto* const found = find_where(handlers, [&name](const auto* one) { return one->name == name; });
  return found == nullptr ? nullptr : *found;
}

void PluginRegistry::scan(const std::vector<std::string>& folders) {
  folders_ = folders;
  rejected_.clear();
  for (const std::string& folder : folders) {
    for (const std::string& file : files_of(folder)) {
      load(file);
    }
  }
}

std::vector<std::string> PluginRegistry::unseen(const std::vector<std::string>& folders) {
  rejected_.clear();
  std::vector<std::string> files;
  for (const std::string& folder : folders) {
    for (const std::string& file : files_of(folder)) {
      const FileIdentity identity = identify(file);
      if (is_due(file, identity)) {
        looked_at_[file] = identity;
        files.push_back(file);
      }
    }
  }
  return files;
}

bool PluginRegistry::is_due(const std::string& file, const FileIdentity& identity) const {
  const auto known = known_.find(file);
  if (known == known_.end() || known->second.identity != identity) {
    return true;
  }
  // What was refused as it is stays out, whatever a job pins.
  return known->second.why.empty() && lacks_pin(loaded_from(file), name_of(file));
}

/// A job pins what is loaded, and it was not loaded so.
bool PluginRegistry::lacks_pin(const LoadedPlugin* loaded, const std::string& name) const {
  const auto pin = pins_.find(name);
  return pin != pins_.end() && loaded != nullptr &&
         (loaded->bytes == nullptr || loaded->bytes->sha256() != pin->second);
}

bool PluginRegistry::is_stale(const sluice_handler* handler) const {
  const LoadedPlugin* const owner = owner_of(handler);
  return owner == nullptr || is_due(owner->file, identify(owner->file));
}

std::vector<std::string> PluginRegistry::files_of(const std::string& folder) {
  std::error_code code;
  if (std::filesystem::is_regular_file(folder, code)) {
    return {folder};
  }
  std::vector<std::string> files;
  std::filesystem::directory_iterator entries(folder, code);
  for (; !code && entries != std::filesystem::directory_iterator(); entries.increment(code)) {
    const std::filesystem::path& path = entries->path();
    // Tools that copy files give unfinished ones names that begin with a dot.
    if (path.extension() == ".so" && !path.filename().string().starts_with('.')) {
      files.push_back(path.string());
    } else if (path.extension() == ".a") {
      rejected_.push_back({path.string(), path.string() + " is a static library, which cannot be loaded: build it with "
                                                          "sluice_add_plugin"});
    }
  }
  if (code) {
    rejected_.push_back(
        {folder, folder + " cannot be read: " + code.message() + "; make the folder, or take it out of plugin_dirs"});
    return {};
  }
  if (folder == sparing_folder_) {
    std::erase_if(files, [this](const std::string& file) { return !is_needed(file); });
  }
  std::sort(files.begin(), files.end());
  if (files.size() > kFileLimit) {
    rejected_.push_back({folder, folder + " has " + std::to_string(files.size()) + " plugins, and only the first " +
                                     std::to_string(kFileLimit) + " are loaded: split the folder"});
    files.resize(kFileLimit);
  }
  return files;
}

bool PluginRegistry::is_needed(const std::string& file) {
  const auto read = read_plugin_file(file);
  if (!read || read->declared() == nullptr || pins_.contains(name_of(file))) {
    return true;
  }
  const sluice_plugin& plugin = read->declared()->table();
  bool needed = false;
  for (const sluice_handler* const handler : handlers_in(plugin)) {
    needed = needed || needed_.contains(handler->name);
    told_.insert(handler->name);
  }
  return needed;
}

void PluginRegistry::load(const std::string& file) {
  const FileIdentity identity = identify(file);
  if (const auto looked = looked_at_.find(file); looked != looked_at_.end() && looked->second != identity) {
    reject(file, kHasChanged);
    return;
  }
  looked_at_.erase(file);
  if (!is_due(file, identity)) {
    if (const std::string& why = known_.at(file).why; !why.empty()) {
      rejected_.push_back({file, why});
    }
    return;
  }
  auto opened = std::make_shared<const Descriptor>(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  const auto pin = pins_.find(name_of(file));
  const KnownFile known = known_[file];
  const bool readable = identity.size > 0 && static_cast<std::uint64_t>(identity.size) <= kPluginSizeLimit;
  const bool regular = readable && identify(*opened) == identity;
  const std::string digest = regular ? digest_of(*opened) : std::string();
  if (known.loaded && !is_new(file, identity, digest)) {
    return;
  }
  const std::size_t generation = known.loaded ? known.generation + 1 : 0;
  LibraryResult result =
      pin == pins_.end() ? load_library(file, generation) : load_pinned_library(file, pin->second, digest);
  if (result.loaded) {
    known_[file] = {identity, {}, true, generation, result.bytes ? result.bytes->sha256() : digest};
  }
  if (result.plugin == nullptr) {
    reject(file, result.why);
    known_[file].why = result.loaded ? rejected_.back().why : std::string();
    return;
  }
  take({file, result.plugin, std::move(result.bytes), std::move(opened)});
}

/// False where a file that has changed must not be loaded again: it has the bytes that are loaded, or they were written
/// over those that are.
bool PluginRegistry::is_new(const std::string& file, const FileIdentity& identity, const std::string& digest) {
  KnownFile& known = known_.at(file);
  const LoadedPlugin* const loaded = loaded_from(file);
  if (!digest.empty() && digest == known.sha256 && !lacks_pin(loaded, name_of(file))) {
    known.identity = identity;
    return false;
  }
  if (loaded != nullptr && loaded->bytes == nullptr && digest != known.sha256) {
    const FileIdentity mapped = identify(*loaded->opened);
    if (mapped.device == identity.device && mapped.inode == identity.inode) {
      reject(file,
             "was written into while this host runs its code, which changes under it: restart the host, and "
             "bring the next one with mv, not with cp");
      return false;
    }
  }
  return true;
}

void PluginRegistry::take(LoadedPlugin plugin) {
  // One file by two names, or one folder named twice, is one plugin.
  if (std::any_of(plugins_.begin(), plugins_.end(),
                  [&](const LoadedPlugin& other) { return other.plugin == plugin.plugin; })) {
    return;
  }
  const auto is_before = [&](const LoadedPlugin& other) { return other.file == plugin.file; };
  if (LoadedPlugin* const before = find_where(plugins_, is_before)) {
    std::swap(*before, plugin);
    replaced_.push_back(std::move(plugin));
  } else {
    plugins_.push_back(std::move(plugin));
  }
}

void PluginRegistry::reject(const std::string& file, const std::string& why) {
  const LoadedPlugin* const loaded = loaded_from(file);
  rejected_.push_back({file, file + " " + why +
                                 (loaded == nullptr ? ""
                                                    : "; version " + std::string(loaded->plugin->version) +
                                                          ", which is loaded, stays in use")});
}

const LoadedPlugin* PluginRegistry::loaded_from(const std::string& file) const {
  return find_where(plugins_, [&file](const LoadedPlugin& loaded) { return loaded.file == file; });
}

const LoadedPlugin* PluginRegistry::owner_of(const sluice_handler* handler) const {
  const auto offers = [handler](const LoadedPlugin& loaded) { return contains(handlers_in(*loaded.plugin), handler); };
  const LoadedPlugin* const current = find_where(plugins_, offers);
  return current != nullptr ? current : find_where(replaced_, offers);
}

Result<const sluice_handler*> PluginRegistry::handler(const std::string& name) const {
  // What an installation brings gives way to a handler of its user's, and one whose file is gone to both; of several
  // that are gone the last one was in use.
  enum Rank { kOfUser, kInstalled, kGone };
  const std::string installed = config::installed_plugin_dir();
  const auto rank = [&](const LoadedPlugin& loaded) {
    std::error_code code;
    const bool is_gone = !std::filesystem::exists(loaded.file, code) && !code;
    return is_gone ? kGone : std::filesystem::path(loaded.file).parent_path() == installed ? kInstalled : kOfUser;
  };
  std::map<Rank, std::vector<const LoadedPlugin*>> offering;
  for (const LoadedPlugin& loaded : plugins_) {
    if (find_handler(*loaded.plugin, name) != nullptr) {
      offering[rank(loaded)].push_back(&loaded);
    }
  }
  if (offering.empty()) {
    return no_such_handler(name);
  }
  const auto& [best, owners] = *offering.begin();
  if (best == kOfUser && owners.size() > 1) {
    return Error(ErrorCode::invalid, "two plugins offer the handler \"" + name + "\", " + owners[0]->file + " and " +
                                         owners[1]->file + ": take one away, then start or reload the host");
  }
  return find_handler(*(best == kGone ? owners.back() : owners.front())->plugin, name);
}

Result<const sluice_handler*> PluginRegistry::handler(const std::string& name, const config::PluginPin& pin) const {
  std::string why;
  for (const LoadedPlugin& loaded : plugins_) {
    if (name_of(loaded.file) != pin.file) {
      continue;
    }
    if (loaded.bytes == nullptr || loaded.bytes->sha256() != pin.sha256) {
      why = loaded.bytes == nullptr
                ? std::string()
                : loaded.file + " was loaded with the sha256 " + loaded.bytes->sha256() + ", and the job pins " +
                      pin.sha256 + ": put the file that is meant in its place, or correct [job.plugin]";
      continue;
    }
    if (const sluice_handler* found = find_handler(*loaded.plugin, name)) {
      return found;
    }
    return Error(ErrorCode::invalid, loaded.file + ", which the job pins, has no handler \"" + name + "\"");
  }
  for (const RejectedPlugin& refused : rejected_) {
    if (name_of(refused.file) == pin.file) {
      why = refused.why;
    }
  }
  return Error(ErrorCode::invalid, why.empty() ? "there is no " + pin.file + ", which the job pins, in " +
                                                     (folders_.empty() ? "any folder" : joined(folders_)) +
                                                     ": put it there, or correct [job.plugin]"
                                               : why);
}

Error PluginRegistry::no_such_handler(const std::string& name) const {
  std::string text = "no plugin offers the handler \"" + name + "\"";
  std::vector<std::string> names = handler_names();
  std::erase(names, name);  // a file that could not be loaded has it
  if (const auto near = config::nearest(name, names)) {
    text += "; did you mean \"" + *near + "\"?";
  } else if (names.empty()) {
    text += "; there are no handlers at all";
  } else {
    text += "; there are: " + joined(names);
  }
  text += " (looked in " + (folders_.empty() ? "no folder" : joined(folders_));
  // Whoever reads this may have no shell where the host runs, and so no `sluice plugins`.
  for (std::size_t i = 0; i < std::min(rejected_.size(), kReasonLimit); ++i) {
    text += (i == 0 ? "; not usable: " : "; ") + rejected_[i].why;
  }
  if (rejected_.size() > kReasonLimit) {
    text += "; and " + std::to_string(rejected_.size() - kReasonLimit) + " more, which `sluice plugins` lists";
  }
  return Error(ErrorCode::invalid, text + ")");
}

std::vector<std::string> PluginRegistry::handler_names() const {
  std::vector<std::string> names(told_.begin(), told_.end());
  for (const LoadedPlugin& loaded : plugins_) {
    for (const sluice_handler* const handler : handlers_in(*loaded.plugin)) {
      names.emplace_back(handler->name);
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

PluginPins pins_of(const std::vector<config::JobConfig>& jobs) {
  PluginPins pins;
  for (const config::JobConfig& job : jobs) {
    if (job.plugin) {
      pins.emplace(job.plugin->file, job.plugin->sha256);
    }
  }
  return pins;
}

}  // namespace sluice::plugin
