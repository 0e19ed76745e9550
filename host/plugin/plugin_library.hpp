#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "sluice/abi.h"

namespace sluice::plugin {

/// Looks at a file before the dynamic linker does, which would run its code or die of a truncated one. Nothing when it
/// is a whole ELF shared object for this machine; otherwise what is wrong and the mend, without the file's name.
std::optional<std::string> refuse_file(const std::string& file);

/// "shape(int)" of "_Z5shapei"; the same text when it is no mangled name.
std::string demangled(const std::string& symbol);

/// What the dynamic linker said about `file`, as one line for a person: what is missing and the mend, without the
/// file's name.
std::string explain_load_error(const std::string& file, std::string_view said);

/// Limits of one plugin.
inline constexpr std::size_t kHandlerLimit = 64;
inline constexpr std::size_t kOptionLimit = 256;
inline constexpr std::size_t kNameLimit = 64;
inline constexpr std::size_t kHelpLimit = 4096;

/// Checks everything that the host relies on later, without calling anything of the plugin. Nothing when it may be
/// used; otherwise what it has, what the host has, and the mend, without the file's name. `symbol_size`: the bytes the
/// file says its symbol has; 0 when it does not say.
std::optional<std::string> refuse_plugin(const sluice_plugin& plugin, std::size_t symbol_size);

/// The bytes of a file as they were when it was read, in memory that nobody can change any more, and their digest. What
/// was compared is what is loaded, whatever becomes of the file meanwhile. Immutable; closed with its last owner.
class SealedFile {
 public:
  /// Fails with a text that follows the file's name.
  static Result<std::shared_ptr<const SealedFile>> copy_of(const std::string& file);
  ~SealedFile();
  SealedFile(const SealedFile&) = delete;
  SealedFile& operator=(const SealedFile&) = delete;

  int descriptor() const { return descriptor_; }
  /// By which this process, and no other, can open it.
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  /// SHA-256, 64 lower-case hexadecimal digits.
  const std::string& sha256() const { return sha256_; }

 private:
  SealedFile(int descriptor, std::string sha256) : descriptor_(descriptor), sha256_(std::move(sha256)) {}

  const int descriptor_;
  const std::string sha256_;
};

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
