#pragma once

#include <string>
#include <vector>

namespace sluice::validate {

/// What a loaded library has for others, and what it takes without saying from whom. A value.
struct SymbolNames {
  std::vector<std::string> exported;  ///< as they stand in the file
  std::vector<std::string> borrowed;  ///< undefined there, and in none of the libraries that it names
};

/// Of a file that is loaded in this process; empty when it is not.
SymbolNames symbols_of(const std::string& file);

}  // namespace sluice::validate
