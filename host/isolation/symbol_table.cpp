#include "host/isolation/symbol_table.hpp"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>

namespace sluice::isolation {
namespace {

/// Of a table that is read at all; the largest libraries here have a tenth of it.
constexpr std::uint64_t kTableLimit = 256ULL * 1024 * 1024;

/// Reads within the file, or nothing.
template <typename T>
std::vector<T> read_array(std::ifstream& file, std::uint64_t offset, std::uint64_t bytes) {
  std::vector<T> values;
  if (bytes > kTableLimit) {
    return values;
  }
  values.resize(bytes / sizeof(T));
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
  if (!file) {
    values.clear();
  }
  return values;
}

/// The full table when the file still has it, or else what it exports.
const Elf64_Shdr* find_symbols(const std::vector<Elf64_Shdr>& sections) {
  const Elf64_Shdr* found = nullptr;
  for (const Elf64_Shdr& section : sections) {
    if (section.sh_type == SHT_SYMTAB || (section.sh_type == SHT_DYNSYM && found == nullptr)) {
      found = &section;
    }
  }
  return found != nullptr && found->sh_link < sections.size() ? found : nullptr;
}

std::string demangled(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                    &std::free);
  return status == 0 && text ? std::string(text.get()) : name;
}

}  // namespace

SymbolTable::SymbolTable(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  file.read(reinterpret_cast<char*>(&header), sizeof(header));
  if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shentsize != sizeof(Elf64_Shdr)) {
    return;
  }
  const auto sections =
      read_array<Elf64_Shdr>(file, header.e_shoff, std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr));
  const Elf64_Shdr* table = find_symbols(sections);
  if (table == nullptr) {
    return;
  }
  const auto symbols = read_array<Elf64_Sym>(file, table->sh_offset, table->sh_size);
  const Elf64_Shdr& strings = sections[table->sh_link];
  auto names = read_array<char>(file, strings.sh_offset, strings.sh_size);
  names.push_back('\0');
  for (const Elf64_Sym& symbol : symbols) {
    if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && symbol.st_value != 0 && symbol.st_name < names.size()) {
      functions_.push_back({symbol.st_value, symbol.st_size, names.data() + symbol.st_name});
    }
  }
  std::sort(functions_.begin(), functions_.end(),
            [](const Function& left, const Function& right) { return left.start < right.start; });
}

std::string SymbolTable::name_at(std::uint64_t offset) const {
  auto after = std::upper_bound(functions_.begin(), functions_.end(), offset,
                                [](std::uint64_t at, const Function& function) { return at < function.start; });
  if (after == functions_.begin()) {
    return {};
  }
  const Function& function = *--after;
  const std::uint64_t distance = offset - function.start;
  if (function.size != 0 && distance >= function.size) {
    return {};
  }
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), distance, 16).ptr;
  return demangled(function.name) + "+0x" + std::string(digits.data(), end);
}

}  // namespace sluice::isolation
