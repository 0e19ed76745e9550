#include "file.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace {

// Non-blocking, so that a FIFO without a writer does not hang the worker; a regular file is not affected.
constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
constexpr int kMaxRaces = 8;

bool climbs(const std::string& path) { return ("/" + path + "/").find("/../") != std::string::npos; }

/// -1 with errno.
int open_beneath(int root, const std::string& path) {
  open_how how{};
  how.flags = kFlags;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  long fd = -1;
  // EAGAIN: something on the way was renamed meanwhile, and the kernel cannot vouch for the path.
  for (int i = 0; i < kMaxRaces && fd < 0 && (i == 0 || errno == EAGAIN); ++i) {
    fd = ::syscall(SYS_openat2, root, path.c_str(), &how, sizeof how);
  }
  if (fd >= 0 || (errno != ENOSYS && errno != EPERM)) {
    return static_cast<int>(fd);
  }
  // Old kernels, and containers that forbid what they do not know: without "..", and only links can lead out.
  if (climbs(path)) {
    errno = EXDEV;
    return -1;
  }
  return ::openat(root, ("./" + path).c_str(), kFlags);
}

}  // namespace

File::~File() {
  if (fd_ >= 0) {
    ::close(fd_);
  }
}

int File::open(const std::string& root, const std::string& path) {
  if (root.empty()) {
    fd_ = ::open(path.c_str(), kFlags);
  } else {
    const int folder = ::open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) {
      return errno;
    }
    fd_ = open_beneath(folder, path);
    const int error = errno;
    ::close(folder);
    errno = error;
  }
  struct stat status {};
  if (fd_ < 0 || ::fstat(fd_, &status) != 0) {
    return errno;
  }
  if (S_ISDIR(status.st_mode)) {
    return EISDIR;
  }
  return S_ISREG(status.st_mode) ? 0 : EINVAL;
}

int File::read(char* buffer, std::size_t capacity, std::size_t* size) {
  ssize_t got = -1;
  do {
    got = ::read(fd_, buffer, capacity);
  } while (got < 0 && errno == EINTR);
  *size = got < 0 ? 0 : static_cast<std::size_t>(got);
  return got < 0 ? errno : 0;
}
