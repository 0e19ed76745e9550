#pragma once

#include <memory>
#include <string>

#include "host/plugin/sealed_file.hpp"
#include "sluice/abi.h"

namespace sluice::plugin {

/// What became of a file. Value.
struct LibraryResult {
  const sluice_plugin* plugin = nullptr;    ///< null when it cannot be used
  std::string why;                          ///< then: one line with the file's name and the mend
  bool loaded = false;                      ///< the dynamic linker has it, and will keep it until the process ends
  std::shared_ptr<const SealedFile> bytes;  ///< what was loaded, when it had to have a digest
};

/// Looks at the file, loads it, finds its symbol and checks it. Nothing of the plugin is called, though its static
/// initialisers run. A loaded file is never unloaded: thread-locals and threads of a plugin may outlive any use of it.
LibraryResult load_library(const std::string& file);

/// The same for a file that must have this SHA-256 (64 lower-case digits): no byte of it is executed before it has been
/// compared, and what was compared is what is loaded. It is loaded from memory, so that it finds no library by
/// `$ORIGIN`.
LibraryResult load_pinned_library(const std::string& file, const std::string& sha256);

}  // namespace sluice::plugin
