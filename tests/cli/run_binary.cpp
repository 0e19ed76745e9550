#include "tests/cli/run_binary.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace sluice::test {

namespace {

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) {
      throw std::runtime_error("pipe");
    }
    read_end = ends[0];
    write_end = ends[1];
  }
  int read_end;
  int write_end;
};

std::vector<std::string> environment_of(const BinaryOptions& options) {
  std::map<std::string, std::string> environment = options.environment;
  for (const char* name : {"PATH", "HOME", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"}) {
    if (const char* value = std::getenv(name)) {
      environment.emplace(name, value);
    }
  }
  std::vector<std::string> entries;
  entries.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    entries.push_back(name + "=" + value);
  }
  return entries;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (auto& text : texts) {
    result.push_back(text.data());
  }
  result.push_back(nullptr);
  return result;
}

struct Streams {
  int input;
  int output;
  int error;
};

pid_t spawn(const std::vector<std::string>& arguments, const BinaryOptions& options, const Streams& streams) {
  const std::string program = options.program.empty() ? SLUICE_BINARY : options.program;
  std::vector<std::string> words{program};
  words.insert(words.end(), arguments.begin(), arguments.end());
  auto environment = environment_of(options);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (!options.folder.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, options.folder.c_str());
  }
  posix_spawn_file_actions_adddup2(&actions, streams.input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, streams.output, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, streams.error, STDERR_FILENO);
  if (options.no_output) {
    posix_spawn_file_actions_addclose(&actions, STDOUT_FILENO);
  }
  // What this process ignores, the child would too.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigemptyset(&defaults);
  sigaddset(&defaults, SIGPIPE);
  sigaddset(&defaults, SIGINT);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int failed =
      ::posix_spawn(&pid, program.c_str(), &actions, &attributes, pointers(words).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    throw std::runtime_error("cannot start " + program);
  }
  return pid;
}

int wait_for(pid_t pid) {
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// Feeds and drains a child's streams at once, so that neither side waits for the other.
void pump(int input, std::string_view text, int output, int error, Finished& finished) {
  ::fcntl(input, F_SETFL, O_NONBLOCK);
  std::array<pollfd, 3> watched{pollfd{output, POLLIN, 0}, pollfd{error, POLLIN, 0}, pollfd{input, POLLOUT, 0}};
  const auto end = [&watched](std::size_t index) {
    ::close(watched[index].fd);
    watched[index].fd = -1;
  };
  if (text.empty()) {
    end(2);
  }
  std::array<char, 65536> bytes;
  while (watched[0].fd >= 0 || watched[1].fd >= 0) {
    ::poll(watched.data(), watched.size(), -1);
    for (const std::size_t index : {0U, 1U}) {
      if (watched[index].fd >= 0 && watched[index].revents != 0) {
        const auto count = ::read(watched[index].fd, bytes.data(), bytes.size());
        if (count <= 0) {
          end(index);
          continue;
        }
        (index == 0 ? finished.out : finished.err).append(bytes.data(), static_cast<std::size_t>(count));
      }
    }
    if (watched[2].fd >= 0 && watched[2].revents != 0) {
      const auto count = ::write(watched[2].fd, text.data(), text.size());
      if (count > 0) {
        text.remove_prefix(static_cast<std::size_t>(count));
      }
      if (count < 0 || text.empty()) {
        end(2);
      }
    }
  }
  if (watched[2].fd >= 0) {
    end(2);
  }
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

std::vector<std::string> Finished::out_lines() const { return lines_of(out); }
std::vector<std::string> Finished::err_lines() const { return lines_of(err); }

Finished run_binary(const std::vector<std::string>& arguments, const BinaryOptions& options) {
  // A child that ends before it has read everything is not this process's end.
  std::signal(SIGPIPE, SIG_IGN);
  const Pipe input;
  const Pipe output;
  const Pipe error;
  int out = output.write_end;
  if (!options.stdout_file.empty()) {
    out = ::open(options.stdout_file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  }
  if (options.closed_output) {
    ::close(output.read_end);
  }
  const pid_t pid = spawn(arguments, options, {input.read_end, out, error.write_end});
  ::close(input.read_end);
  ::close(output.write_end);
  ::close(error.write_end);
  if (out != output.write_end) {
    ::close(out);
  }
  Finished finished;
  pump(input.write_end, options.input, options.closed_output ? -1 : output.read_end, error.read_end, finished);
  finished.exit_code = wait_for(pid);
  return finished;
}

RunningBinary::RunningBinary(const std::vector<std::string>& arguments, const BinaryOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  const Pipe input;
  const Pipe output;
  const Pipe error;
  pid_ = spawn(arguments, options, {input.read_end, output.write_end, error.write_end});
  ::close(input.read_end);
  ::close(output.write_end);
  ::close(error.write_end);
  input_ = input.write_end;
  output_ = output.read_end;
  error_ = error.read_end;
}

RunningBinary::~RunningBinary() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    wait_for(pid_);
  }
  for (const int descriptor : {input_, output_, error_}) {
    if (descriptor >= 0) {
      ::close(descriptor);
    }
  }
}

void RunningBinary::write(const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto count = ::write(input_, rest.data(), rest.size());
    if (count <= 0) {
      return;
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

void RunningBinary::close_input() {
  ::close(input_);
  input_ = -1;
}

std::string RunningBinary::read_line() {
  std::array<char, 4096> bytes;
  for (;;) {
    if (const auto end = output_buffer_.find('\n'); end != std::string::npos) {
      std::string line = output_buffer_.substr(0, end);
      output_buffer_.erase(0, end + 1);
      return line;
    }
    const auto count = ::read(output_, bytes.data(), bytes.size());
    if (count <= 0) {
      return {};
    }
    output_buffer_.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

std::string RunningBinary::open_file(int descriptor) const {
  std::error_code closed;
  return std::filesystem::read_symlink("/proc/" + std::to_string(pid_) + "/fd/" + std::to_string(descriptor), closed);
}

void RunningBinary::signal(int number) { ::kill(pid_, number); }

Finished RunningBinary::finish() {
  Finished finished;
  finished.out = output_buffer_;
  pump(input_, {}, output_, error_, finished);
  input_ = output_ = error_ = -1;
  finished.exit_code = wait_for(pid_);
  pid_ = -1;
  return finished;
}

HostFolder::HostFolder(const std::string& host_toml) {
  std::string pattern = (std::filesystem::temp_directory_path() / "sluice-cli-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) {
    throw std::runtime_error("mkdtemp");
  }
  path_ = pattern;
  std::filesystem::create_directory(path_ + "/jobs.d");
  std::filesystem::create_directory(path_ + "/plugins");
  if (!host_toml.empty()) {
    write("host.toml", host_toml);
  }
}

HostFolder::~HostFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void HostFolder::write(const std::string& name, const std::string& text) const {
  std::ofstream(path_ + "/" + name, std::ios::binary) << text;
}

Finished HostFolder::run(const std::vector<std::string>& arguments, const std::string& input) const {
  return run_binary(arguments, {.input = input, .folder = path_, .environment = {}, .stdout_file = {}});
}

}  // namespace sluice::test
