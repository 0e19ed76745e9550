#pragma once

#include <sys/types.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "publishing/publishing.hpp"

using publishing::Descriptor;

/// What to run. Borrowed for the time of `Child::start`.
struct Launch {
  const std::string& program;  ///< a path
  const std::vector<std::string>& arguments;
  const std::vector<std::string>& environment;  ///< "NAME=value"
  const std::string& folder;                    ///< to run in; empty: the host's
  std::string_view input;                       ///< what the child reads from its standard input
};

/// A child process in a process group of its own, with pipes on its output. Used by one thread.
///
/// It inherits nothing: no descriptor beyond its standard three, no blocked and no ignored signal. Its input is a file
/// in memory, so a child that does not read it disturbs nobody. The destructor kills the group of a child that still
/// runs, and collects it.
class Child {
 public:
  Child() = default;
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// 0, or the errno that says why there is no child.
  int start(const Launch& launch);

  /// Waits until there is output or the child has ended, at most `limit`.
  void wait(std::chrono::milliseconds limit);
  /// Appends what the child has written up to now to `text`, at most 64 KiB; false at the end or when there is nothing.
  bool read_output(std::string& text) { return read(output_, text); }
  bool read_errors(std::string& text) { return read(errors_, text); }

  /// True once the child itself has ended, whatever its own children do.
  bool ended();
  /// Sends a signal to the child's group. Safe until `collect`: before that, its number can be nobody else's.
  void signal_group(int signal) const;
  /// Takes the ended child off the system's list: its status, as waitpid(2) has it; nothing where somebody else in the
  /// process has collected it.
  std::optional<int> collect();

 private:
  static bool read(Descriptor& pipe, std::string& text);
  int spawn(const Launch& launch, const std::array<int, 3>& standard);

  pid_t pid_ = -1;
  bool ended_ = false;
  Descriptor handle_;  ///< readable when the child ends; absent on kernels before 5.3
  Descriptor output_;
  Descriptor errors_;
};
