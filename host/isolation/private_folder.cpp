#include "host/isolation/private_folder.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "host/isolation/state_file_error.hpp"

namespace sluice::isolation {

Result<void> make_private_folder(const std::string& folder) {
  std::error_code code;
  std::filesystem::create_directories(std::filesystem::path(folder).parent_path(), code);
  if (!code && ::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    code = std::error_code(errno, std::generic_category());
  }
  if (code) {
    return state_file_error("the folder " + folder + " cannot be made", code.value());
  }
  return {};
}

}  // namespace sluice::isolation
