#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace {

constexpr std::size_t kReadSize = 64 * 1024;
constexpr unsigned kNoExecSeal = 8;  // MFD_NOEXEC_SEAL, of Linux 6.3

/// Moves a descriptor out of the way of 0, 1 and 2, which a host without standard streams hands out.
int above_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) {
    return fd;
  }
  const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int error = errno;
  ::close(fd);
  errno = error;
  return moved;
}

int open_pipe(Descriptor& reader, Descriptor& writer) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return errno;
  }
  reader.reset(above_standard(ends[0]));
  writer.reset(above_standard(ends[1]));
  if (!reader.open() || !writer.open() || ::fcntl(reader.get(), F_SETFL, O_NONBLOCK) != 0) {
    return errno;
  }
  return 0;
}

int open_input(std::string_view text, Descriptor& file) {
  int fd = ::memfd_create("message", MFD_CLOEXEC | kNoExecSeal);
  if (fd < 0 && errno == EINVAL) {
    fd = ::memfd_create("message", MFD_CLOEXEC);
  }
  file.reset(above_standard(fd));
  if (!file.open()) {
    return errno;
  }
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t size = ::write(file.get(), text.data() + written, text.size() - written);
    if (size < 0 && errno != EINTR) {
      return errno;
    }
    written += size < 0 ? 0 : static_cast<std::size_t>(size);
  }
  return ::lseek(file.get(), 0, SEEK_SET) == 0 ? 0 : errno;
}

/// The C form of a list of strings: borrowed, ends in a null pointer.
std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) {
    pointers.push_back(
        const_cast<char*>(text.c_str()));  // posix_spawn does not write to them; its type is older than const.
  }
  pointers.push_back(nullptr);
  return pointers;
}

/// What posix_spawn does between the fork and the exec.
class SpawnPlan {
 public:
  SpawnPlan() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnPlan() {
    posix_spawnattr_destroy(&attributes_);
    posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  int prepare(const std::string& folder, const std::array<int, 3>& standard) {
    int error = 0;
    const auto then = [&error](int result) { error = error == 0 ? result : error; };
    for (int target = 0; target < 3; ++target) {
      then(posix_spawn_file_actions_adddup2(&actions_, standard[static_cast<std::size_t>(target)], target));
    }
    then(posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1));
    if (!folder.empty()) {
      then(posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str()));
    }
    // The host blocks its signals and ignores SIGPIPE; a command expects neither.
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    then(posix_spawnattr_setsigmask(&attributes_, &none));
    then(posix_spawnattr_setsigdefault(&attributes_, &all));
    then(posix_spawnattr_setpgroup(&attributes_, 0));
    then(
        posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF));
    return error;
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Child::~Child() {
  if (pid_ > 0) {
    signal_group(SIGKILL);
    collect();
  }
}

int Child::start(const Launch& launch) {
  Descriptor input;
  Descriptor output;
  Descriptor errors;
  int error = open_input(launch.input, input);
  error = error != 0 ? error : open_pipe(output_, output);
  error = error != 0 ? error : open_pipe(errors_, errors);
  return error != 0 ? error : spawn(launch, {input.get(), output.get(), errors.get()});
}

int Child::spawn(const Launch& launch, const std::array<int, 3>& standard) {
  SpawnPlan plan;
  if (const int error = plan.prepare(launch.folder, standard); error != 0) {
    return error;
  }
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, launch.program.c_str(), plan.actions(), plan.attributes(),
                                  pointers_to(launch.arguments).data(), pointers_to(launch.environment).data());
  if (error != 0) {
    return error;
  }
  pid_ = pid;
  handle_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  return 0;
}

void Child::wait(std::chrono::milliseconds limit) {
  // poll passes over negative descriptors.
  std::array<pollfd, 3> waits{{{handle_.get(), POLLIN, 0}, {output_.get(), POLLIN, 0}, {errors_.get(), POLLIN, 0}}};
  ::poll(waits.data(), waits.size(), static_cast<int>(limit.count()));
}

bool Child::read(Descriptor& pipe, std::string& text) {
  if (!pipe.open()) {
    return false;
  }
  char buffer[kReadSize];
  const ssize_t size = ::read(pipe.get(), buffer, sizeof buffer);
  if (size > 0) {
    text.append(buffer, static_cast<std::size_t>(size));
    return true;
  }
  if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
    pipe.reset();
  }
  return false;
}

bool Child::ended() {
  if (!ended_) {
    siginfo_t info{};
    const int result = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    ended_ = (result == 0 && info.si_pid == pid_) || (result != 0 && errno == ECHILD);
  }
  return ended_;
}

void Child::signal_group(int signal) const {
  if (pid_ > 0) {
    ::kill(-pid_, signal);
  }
}

std::optional<int> Child::collect() {
  int status = 0;
  pid_t result = -1;
  do {
    result = ::waitpid(pid_, &status, 0);
  } while (result < 0 && errno == EINTR);
  return result == std::exchange(pid_, -1) ? std::optional(status) : std::nullopt;
}
