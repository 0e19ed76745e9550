#pragma once

#include <boost/core/noncopyable.hpp>
#include <memory>
#include <string>

#include "base/error.hpp"

namespace sluice {

/// A new folder of this user's alone, in TMPDIR or /tmp; it goes with the object, and so does what is in it. A
/// resource.
class TemporaryFolder : boost::noncopyable {
 public:
  /// "NAME-" and a few letters. Fails with its path and the system's reason.
  static Result<std::unique_ptr<TemporaryFolder>> make(const std::string& name);

  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  ~TemporaryFolder() {
    if (!kept_) {
      remove();
    }
  }

  const std::string& path() const { return path_; }
  /// At once, for a process that ends without destructors.
  void remove() const;
  /// It stays where it is.
  void keep() { kept_ = true; }

 private:
  const std::string path_;
  bool kept_ = false;
};

}  // namespace sluice
