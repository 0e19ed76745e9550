#include "base/temporary_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace sluice {

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::make(const std::string& name) {
  std::error_code code;
  std::string path = (std::filesystem::temp_directory_path(code) / (name + "-XXXXXX")).string();
  if (code || ::mkdtemp(path.data()) == nullptr) {
    return Error(ErrorCode::denied, "cannot make a temporary folder " + path + ": " + std::strerror(errno) +
                                        "; name one that can be written with TMPDIR");
  }
  return std::make_unique<TemporaryFolder>(std::move(path));
}

void TemporaryFolder::remove() const {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace sluice
