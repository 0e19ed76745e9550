#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace sluice::isolation {

/// The functions that an ELF file names, to find the one at an offset. A value; empty for a file that is none, or that
/// has been stripped.
class SymbolTable {
 public:
  explicit SymbolTable(const std::string& file);

  /// "Bomb::explode(int)+0x14", the name as its author wrote it; empty when no function is known there.
  std::string name_at(std::uint64_t offset) const;

 private:
  struct Function {
    std::uint64_t start = 0;
    std::uint64_t size = 0;
    std::string name;
  };
  std::vector<Function> functions_;  ///< by start
};

}  // namespace sluice::isolation
