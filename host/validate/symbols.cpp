#include "host/validate/symbols.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstdint>

namespace sluice::validate {
namespace {

/// The tables of a loaded library that its dynamic section names.
struct Tables {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  const std::uint32_t* hash = nullptr;      ///< DT_HASH
  const std::uint32_t* gnu_hash = nullptr;  ///< DT_GNU_HASH
};

Tables tables_of(const link_map& map) {
  Tables tables;
  for (const ElfW(Dyn)* entry = map.l_ld; entry->d_tag != DT_NULL; ++entry) {
    // Some machines have addresses there, and some what is to be added to the library's.
    const ElfW(Addr) at = entry->d_un.d_ptr < map.l_addr ? map.l_addr + entry->d_un.d_ptr : entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) {
      tables.symbols = reinterpret_cast<const ElfW(Sym)*>(at);
    } else if (entry->d_tag == DT_STRTAB) {
      tables.strings = reinterpret_cast<const char*>(at);
    } else if (entry->d_tag == DT_HASH) {
      tables.hash = reinterpret_cast<const std::uint32_t*>(at);
    } else if (entry->d_tag == DT_GNU_HASH) {
      tables.gnu_hash = reinterpret_cast<const std::uint32_t*>(at);
    }
  }
  return tables;
}

/// How many symbols there are, which only the hash tables tell.
std::size_t count_of(const Tables& tables) {
  if (tables.hash != nullptr) {
    return tables.hash[1];
  }
  if (tables.gnu_hash == nullptr) {
    return 0;
  }
  const std::uint32_t buckets = tables.gnu_hash[0];
  const std::uint32_t first = tables.gnu_hash[1];
  const std::uint32_t filters = tables.gnu_hash[2];
  const std::uint32_t* const bucket = tables.gnu_hash + 4 + std::size_t{filters} * (sizeof(ElfW(Addr)) / 4);
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < buckets; ++i) {
    last = std::max(last, bucket[i]);
  }
  if (last < first) {
    return first;
  }
  // The last bit of a chain's last link is set.
  for (const std::uint32_t* link = bucket + buckets + (last - first); (*link & 1U) == 0; ++link) {
    ++last;
  }
  return std::size_t{last} + 1;
}

}  // namespace

SymbolNames symbols_of(const std::string& file) {
  SymbolNames names;
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
  link_map* map = nullptr;
  if (library == nullptr || ::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0) {
    return names;
  }
  const Tables tables = tables_of(*map);
  const std::size_t count = tables.symbols == nullptr || tables.strings == nullptr ? 0 : count_of(tables);
  for (std::size_t i = 1; i < count; ++i) {
    const ElfW(Sym)& symbol = tables.symbols[i];
    const std::string name = tables.strings + symbol.st_name;
    const unsigned char binding = ELF64_ST_BIND(symbol.st_info);
    if (symbol.st_shndx != SHN_UNDEF) {
      if (binding != STB_LOCAL && ELF64_ST_TYPE(symbol.st_info) != STT_SECTION) {
        names.exported.push_back(name);
      }
    } else if (binding == STB_GLOBAL && ::dlsym(library, name.c_str()) == nullptr) {
      names.borrowed.push_back(name);
    }
  }
  ::dlclose(library);
  return names;
}

}  // namespace sluice::validate
