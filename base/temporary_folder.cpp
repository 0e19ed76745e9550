#include "base/temporary_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace sluice {

Result<std::unique_ptr<TemporaryFolder>> TemporaryFolder::make(const std::string& name) {
  std::error_code code;
  std::string path = (std::filesystem::temp_directory_path(code) / (name + "-XXXXXX")).string();
  if (!code && ::mkdtemp(path.data()) == nullptr) {
    code.assign(errno, std::generic_category());
  }
  if (code) {
    return Error(ErrorCode::denied, "cannot make a temporary folder " + path + ": " + code.message() +
                                        "; name one that can be written with TMPDIR");
  }
  return std::make_unique<TemporaryFolder>(std::move(path));
}

void TemporaryFolder::remove() const {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace sluice
