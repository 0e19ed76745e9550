#include "host/isolation/state_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

namespace sluice::isolation {

namespace {

struct Mend {
  ErrorCode code;
  std::string text;
};

Mend mend_of(int number) {
  const std::string elsewhere = "set [host] state_dir to a folder elsewhere";
  switch (number) {
    case ENOSPC:
      return {ErrorCode::full, "make room on its disk"};
    case EDQUOT:
      return {ErrorCode::full, "raise the disk quota of user " + std::to_string(::geteuid())};
    case EFBIG:
      return {ErrorCode::full, "raise the limit on the size of files (ulimit -f)"};
    case EROFS:
      return {ErrorCode::denied, "mount its file system writable, or " + elsewhere};
    case EACCES:
    case EPERM:
      return {ErrorCode::denied, "let user " + std::to_string(::geteuid()) + " write there, or " + elsewhere};
    case ENOTDIR:
    case EEXIST:
    case ELOOP:
      return {ErrorCode::denied, "a part of its path is no folder: " + elsewhere};
    case EMFILE:
    case ENFILE:
      return {ErrorCode::unavailable, "raise the limit on open files (ulimit -n)"};
    case ENOMEM:
    case EAGAIN:
      return {ErrorCode::unavailable, "raise the limit on memory (ulimit -v, ulimit -l), or free some"};
    case EIO:
      return {ErrorCode::unavailable, "look after its disk, or " + elsewhere};
    default:
      return {ErrorCode::denied, "look after its file system, or " + elsewhere};
  }
}

}  // namespace

Error state_file_error(const std::string& what, int number) {
  const Mend mend = mend_of(number);
  return Error(mend.code, what + ": " + std::generic_category().message(number) + "; " + mend.text);
}

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

std::vector<std::string> files_in(const std::string& folder, const std::string& extension) {
  std::vector<std::string> found;
  std::error_code code;
  std::filesystem::directory_iterator entries(folder, code);
  for (; !code && entries != std::filesystem::directory_iterator(); entries.increment(code)) {
    if (entries->path().extension() == extension) {
      found.push_back(entries->path().string());
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace sluice::isolation
