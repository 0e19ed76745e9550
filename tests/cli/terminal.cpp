#include "tests/cli/terminal.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

namespace sluice::test {

TerminalSession on_terminal(const HostFolder& folder, std::vector<std::string> words, const std::string& prompt,
                            const std::string& answer, const std::string& input) {
  words.insert(words.begin(), SLUICE_BINARY);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (auto& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  const std::string input_file = folder.path() + "/typed";
  folder.write("typed", input);
  int terminal = -1;
  const winsize size{.ws_row = 24, .ws_col = 80, .ws_xpixel = 0, .ws_ypixel = 0};
  const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (pid == 0) {
    const int file = input.empty() ? STDIN_FILENO : ::open(input_file.c_str(), O_RDONLY);
    if (::chdir(folder.path().c_str()) == 0 && ::dup2(file, STDIN_FILENO) == STDIN_FILENO) {
      ::execv(SLUICE_BINARY, arguments.data());
    }
    ::_exit(127);
  }
  TerminalSession session;
  bool answered = prompt.empty();
  std::array<char, 4096> bytes;
  for (;;) {
    const auto count = ::read(terminal, bytes.data(), bytes.size());
    if (count <= 0) {
      break;
    }
    session.text.append(bytes.data(), static_cast<std::size_t>(count));
    if (!answered && session.text.find(prompt) != std::string::npos) {
      answered = true;
      EXPECT_EQ(::write(terminal, answer.data(), answer.size()), static_cast<ssize_t>(answer.size()));
    }
  }
  ::close(terminal);
  int status = 0;
  ::waitpid(pid, &status, 0);
  session.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return session;
}

}  // namespace sluice::test
