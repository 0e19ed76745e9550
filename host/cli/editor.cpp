#include "host/cli/editor.hpp"

#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace sluice::cli {

namespace {

Error system_error(const std::string& what, int code) {
  return {ErrorCode::internal, what + ": " + std::strerror(code)};
}

/// SIGINT and SIGQUIT are for the editor as long as it runs: both processes are on the terminal.
class SignalsIgnored {
 public:
  SignalsIgnored() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGINT, &ignore, &interrupt_);
    ::sigaction(SIGQUIT, &ignore, &quit_);
  }
  ~SignalsIgnored() {
    ::sigaction(SIGINT, &interrupt_, nullptr);
    ::sigaction(SIGQUIT, &quit_, nullptr);
  }
  SignalsIgnored(const SignalsIgnored&) = delete;
  SignalsIgnored& operator=(const SignalsIgnored&) = delete;

 private:
  struct sigaction interrupt_ {};
  struct sigaction quit_ {};
};

int spawn_shell(pid_t& child, std::string script, std::string path) {
  std::string shell = "sh";
  std::string option = "-c";
  std::array<char*, 6> words{shell.data(), option.data(), script.data(), shell.data(), path.data(), nullptr};
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t defaults;
  ::sigemptyset(&defaults);
  ::sigaddset(&defaults, SIGINT);
  ::sigaddset(&defaults, SIGQUIT);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  const int failed = ::posix_spawn(&child, "/bin/sh", nullptr, &attributes, words.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  return failed;
}

}  // namespace

Result<EditorFile> EditorFile::create(const std::string& text) {
  std::error_code failed;
  const auto folder = std::filesystem::temp_directory_path(failed);
  std::string path = (failed ? std::filesystem::path("/tmp") : folder) / "sluice-edit-XXXXXX.json";
  const int descriptor = ::mkstemps(path.data(), static_cast<int>(std::strlen(".json")));
  if (descriptor < 0) {
    return system_error("cannot make the file " + path + " to edit", errno);
  }
  EditorFile file(path);
  std::size_t written = 0;
  while (written < text.size()) {
    const auto count = ::write(descriptor, text.data() + written, text.size() - written);
    if (count < 0 && errno != EINTR) {
      const Error error = system_error("cannot write " + path, errno);
      ::close(descriptor);
      return error;
    }
    written += count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  ::close(descriptor);
  return file;
}

EditorFile::EditorFile(EditorFile&& other) noexcept : path_(std::exchange(other.path_, {})), kept_(other.kept_) {}

EditorFile::~EditorFile() {
  if (!path_.empty() && !kept_) {
    ::unlink(path_.c_str());
  }
}

Result<std::string> EditorFile::read() const {
  std::ifstream file(path_, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) {
    return Error(ErrorCode::internal, "cannot read " + path_ + " again");
  }
  return text;
}

std::string editor_command(bool terminal) {
  for (const char* const name : {"VISUAL", "EDITOR"}) {
    const char* const command = std::getenv(name);
    if (command != nullptr && *command != '\0') {
      return command;
    }
  }
  return terminal ? "vi" : "";
}

Result<void> run_editor(const std::string& command, const std::string& path) {
  const SignalsIgnored ignored;
  pid_t child = -1;
  if (const int failed = spawn_shell(child, command + " \"$1\"", path); failed != 0) {
    return system_error("cannot run the editor " + command, failed);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return {};
  }
  return Error(ErrorCode::cancelled, "the editor " + command + " ended with " +
                                         (WIFEXITED(status) ? "code " + std::to_string(WEXITSTATUS(status))
                                                            : "signal " + std::to_string(WTERMSIG(status))));
}

}  // namespace sluice::cli
