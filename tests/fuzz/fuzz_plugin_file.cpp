// Files that lie in a plugin folder, whatever they are: what a check reads of their notes, symbols and tables is read
// within the file, and none of it brings the host down.
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/descriptor.hpp"
#include "host/plugin/elf_file.hpp"
#include "host/plugin/plugin_file.hpp"

namespace {

void read_all(const sluice::plugin::ElfFile& elf) {
  static_cast<void>(elf.notes());
  static_cast<void>(elf.needed());
  static_cast<void>(elf.undefined());
  static_cast<void>(elf.stripped());
  for (const auto& symbol : elf.exported()) {
    static_cast<void>(elf.find_exported(symbol.name));
    static_cast<void>(elf.bytes_at(symbol.address, symbol.size));
    static_cast<void>(elf.text_at(symbol.address + symbol.size, 64));
    static_cast<void>(elf.pointer_at(symbol.address));
    static_cast<void>(sluice::plugin::DeclaredPlugin::from_table(elf, symbol.address));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const sluice::Descriptor file(::memfd_create("plugin", MFD_CLOEXEC));
  if (::write(file.get(), data, size) != static_cast<ssize_t>(size)) {
    return 0;
  }
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  if (const auto plugin = sluice::plugin::read_plugin_file(path); !plugin && plugin.error().message().empty()) {
    std::abort();
  }
  if (const auto elf = sluice::plugin::ElfFile::open(path)) {
    read_all(**elf);
  }
  static_cast<void>(sluice::plugin::DeclaredPlugin::from_note({reinterpret_cast<const char*>(data), size}));
  return 0;
}
