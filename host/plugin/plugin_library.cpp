#include "host/plugin/plugin_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <boost/dll/shared_library.hpp>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "base/guard.hpp"
#include "base/mutex.hpp"
#include "host/plugin/elf_file.hpp"
#include "host/plugin/load_error.hpp"
#include "host/plugin/plugin_check.hpp"

namespace sluice::plugin {

namespace {

/// A library and the memory it was loaded from: the dynamic linker would take another one that came to have the same
/// descriptor for this one.
struct KeptLibrary {
  boost::dll::shared_library library;
  std::shared_ptr<const SealedFile> bytes;
};

/// Keeps a library loaded until the process ends, beyond every destructor.
void keep(KeptLibrary library) {
  static Mutex& mutex = *new Mutex;
  static auto& kept = *new std::vector<KeptLibrary>;
  const MutexLock lock(mutex);
  kept.push_back(std::move(library));
}

/// The bytes that the file's symbol table gives for the symbol at `address`; 0 when it does not say.
std::size_t symbol_size(const void* address) {
  Dl_info info{};
  void* entry = nullptr;
  if (::dladdr1(address, &info, &entry, RTLD_DL_SYMENT) == 0 || entry == nullptr || info.dli_saddr != address) {
    return 0;
  }
  return static_cast<const ElfW(Sym)*>(entry)->st_size;
}

/// Loads `path`, which is where the bytes of `file` are.
LibraryResult load(const std::string& file, const std::string& path, std::shared_ptr<const SealedFile> bytes) {
  const auto refused = [&file](const std::string& why, bool loaded) {
    return LibraryResult{nullptr, file + " " + why, loaded, nullptr};
  };
  if (const auto why = refuse_file(path)) {
    return refused(*why, false);
  }
  std::error_code code;
  boost::dll::shared_library library;
  library.load(path, code, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (!library.is_loaded()) {
    const char* said = ::dlerror();
    return refused(explain_load_error(path, said == nullptr ? code.message() : said), false);
  }
  const void* symbol = ::dlsym(library.native(), SLUICE_PLUGIN_SYMBOL);
  keep({std::move(library), bytes});
  if (symbol == nullptr) {
    return refused("has no symbol " SLUICE_PLUGIN_SYMBOL
                   ": it is not a Sluice plugin, or was built without SLUICE_PLUGIN and sluice_add_plugin",
                   true);
  }
  const auto* plugin = static_cast<const sluice_plugin*>(symbol);
  if (const auto why = refuse_plugin(*plugin, symbol_size(symbol))) {
    return refused(*why, true);
  }
  return {plugin, {}, true, std::move(bytes)};
}

}  // namespace

LibraryResult load_library(const std::string& file) {
  std::error_code code;
  // Without a slash in it the dynamic linker would search its own folders for the name.
  const std::filesystem::path path = std::filesystem::absolute(file, code);
  return load(file, path.string(), nullptr);
}

LibraryResult load_pinned_library(const std::string& file, const std::string& sha256) {
  const auto refused = [&file](const std::string& why) {
    return LibraryResult{nullptr, file + " " + why, false, nullptr};
  };
  if (const auto why = refuse_file(file)) {
    return refused(*why);
  }
  const auto bytes = SealedFile::copy_of(file);
  if (!bytes) {
    return refused(bytes.error().message());
  }
  if ((*bytes)->sha256() != sha256 && SLUICE_GUARD(plugin_pins)) {
    return refused("has the sha256 " + (*bytes)->sha256() + ", and a job pins " + sha256 +
                   ": put the file that was meant in its place, or correct sha256 in the job's [job.plugin]");
  }
  return load(file, (*bytes)->path(), *bytes);
}

}  // namespace sluice::plugin
