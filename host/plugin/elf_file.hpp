#pragma once

#include <elf.h>

#include <boost/core/noncopyable.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.hpp"
#include "base/error.hpp"

namespace sluice::plugin {

/// One ELF note. A value.
struct ElfNote {
  std::string owner;  ///< without its zero
  std::uint32_t type = 0;
  std::string content;
};

/// A symbol that a file names. A value.
struct ElfSymbol {
  std::string name;
  std::uint64_t address = 0;
  std::uint64_t size = 0;  ///< 0: the file does not say
};

/// A larger file is no plugin: what is read of one is no more than that.
inline constexpr std::uint64_t kPluginSizeLimit = std::uint64_t{4} << 30U;

/// A shared object as it lies in its file. Nothing of it is mapped or run, whatever its bytes are: every offset and
/// size is checked against the file, and no table of it takes more memory than a real one, however much a file claims
/// that is mostly a hole. A file that changes meanwhile gives nonsense, not a crash. Immutable once open; used by one
/// thread at a time.
class ElfFile : boost::noncopyable {
 public:
  /// Fails when it is no whole ELF shared object for this machine, with what it is and the mend: a text that follows
  /// the file's name.
  static Result<std::unique_ptr<ElfFile>> open(const std::string& path);

  /// Of the segments that are loaded with the program; empty where they make no sense.
  std::vector<ElfNote> notes() const;
  /// The libraries that the dynamic linker has to find (DT_NEEDED), in their order.
  std::vector<std::string> needed() const;
  /// What it defines and shows, in the order of its table.
  const std::vector<ElfSymbol>& exported() const { return exported_; }
  const ElfSymbol* find_exported(std::string_view name) const;
  /// Names that it cannot do without and does not define.
  std::vector<std::string> undefined() const;
  /// The functions that it names: all of its own, or, where it is stripped, those that it shows. A large library has
  /// hundreds of thousands, so that the name is told of the one that is asked for.
  std::vector<Elf64_Sym> functions() const;
  std::string name_of(const Elf64_Sym& function) const;
  /// It has no symbol table but the dynamic one, so that a stack of it names no functions of its own.
  bool stripped() const;

  // Memory as it will be before the file's own code has run. Nothing where that cannot be told from the file: outside
  // of it, or filled by code.

  std::optional<std::string> bytes_at(std::uint64_t address, std::uint64_t size) const;
  /// Text that ends with a zero, which is not part of it; longer text is cut to `limit`.
  std::optional<std::string> text_at(std::uint64_t address, std::uint64_t limit) const;
  /// What the pointer at an address will point to; 0: nothing.
  std::optional<std::uint64_t> pointer_at(std::uint64_t address) const;

 private:
  /// Bytes of one table that is loaded; the largest libraries there are stay below it.
  static constexpr std::uint64_t kTableLimit = std::uint64_t{32} << 20U;

  explicit ElfFile(Descriptor file) : file_(std::move(file)) {}

  std::optional<std::string> refuse();
  bool read(std::uint64_t offset, void* data, std::uint64_t size) const;
  template <typename T>
  std::optional<std::vector<T>> array(std::uint64_t offset, std::uint64_t count,
                                      std::uint64_t limit = kTableLimit) const;
  template <typename T>
  std::vector<T> array_at(std::uint64_t address, std::uint64_t size) const;
  /// Where in the file the byte of that address lies, and how many lie there with it.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> offset_of(std::uint64_t address) const;
  bool is_whole();
  void read_dynamic();
  void read_symbols();
  void read_relocations();
  std::optional<std::uint64_t> relocated(std::uint64_t address) const;
  bool relocated_in_place(std::uint64_t address) const;
  std::uint64_t dynamic(std::int64_t tag) const;
  std::uint64_t count_symbols() const;
  const Elf64_Shdr* table_of_functions() const;
  std::optional<std::string> string_at(std::uint64_t offset) const;

  const Descriptor file_;
  std::uint64_t size_ = 0;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Dyn> dynamic_;
  std::string strings_;
  std::vector<ElfSymbol> exported_;
  std::vector<Elf64_Sym> symbols_;
  std::vector<Elf64_Rela> relocations_;  ///< by address
  /// Relocations whose addend lies in place: the address of a word, and a map of the 64 words from it on. By address.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> words_in_place_;
};

}  // namespace sluice::plugin
