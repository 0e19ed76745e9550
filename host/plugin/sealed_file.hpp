#pragma once

#include <memory>
#include <string>

#include "base/error.hpp"

namespace sluice::plugin {

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

}  // namespace sluice::plugin
