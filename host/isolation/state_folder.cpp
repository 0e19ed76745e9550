#include "host/isolation/state_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "base/ranges.hpp"

namespace sluice::isolation {

namespace {

/// What mends an error of these numbers.
struct Mend {
  std::vector<int> numbers;  ///< none: any other
  ErrorCode code;
  std::string text;
};

Mend mend_of(int number) {
  const std::string elsewhere = "set [host] state_dir to a folder elsewhere";
  const std::string user = std::to_string(::geteuid());
  const std::vector<Mend> mends{
      {{ENOSPC}, ErrorCode::full, "make room on its disk"},
      {{EDQUOT}, ErrorCode::full, "raise the disk quota of user " + user},
      {{EFBIG}, ErrorCode::full, "raise the limit on the size of files (ulimit -f)"},
      {{EROFS}, ErrorCode::denied, "mount its file system writable, or " + elsewhere},
      {{EACCES, EPERM}, ErrorCode::denied, "let user " + user + " write there, or " + elsewhere},
      {{ENOTDIR, EEXIST, ELOOP}, ErrorCode::denied, "a part of its path is no folder: " + elsewhere},
      {{EMFILE, ENFILE}, ErrorCode::unavailable, "raise the limit on open files (ulimit -n)"},
      {{ENOMEM, EAGAIN}, ErrorCode::unavailable, "raise the limit on memory (ulimit -v, ulimit -l), or free some"},
      {{EIO}, ErrorCode::unavailable, "look after its disk, or " + elsewhere},
      {{}, ErrorCode::denied, "look after its file system, or " + elsewhere}};
  return *find_where(mends, [number](const Mend& mend) {
    return mend.numbers.empty() || std::count(mend.numbers.begin(), mend.numbers.end(), number) > 0;
  });
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

Result<void> make_state_folder(const std::string& folder) {
  SLUICE_PASS_ON(make_private_folder(folder));
  const auto hour_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(1);
  for (const std::string& file : files_in(folder, ".new")) {
    std::error_code code;
    const auto made = std::filesystem::last_write_time(file, code);
    if (!code && made < hour_ago) {
      std::filesystem::remove(file, code);
    }
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
