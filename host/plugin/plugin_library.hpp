#pragma once

#include <string>

#include "sluice/abi.h"

namespace sluice::plugin {

/// What became of a file. Value.
struct LibraryResult {
  const sluice_plugin* plugin = nullptr;  ///< null when it cannot be used
  std::string why;                        ///< then: one line with the file's name and the mend
  bool loaded = false;                    ///< the dynamic linker has it, and will keep it until the process ends
};

/// Looks at the file, loads it, finds its symbol and checks it. Nothing of the plugin is called, though its static
/// initialisers run. A loaded file is never unloaded: thread-locals and threads of a plugin may outlive any use of it.
LibraryResult load_library(const std::string& file);

}  // namespace sluice::plugin
