#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <vector>

namespace sluice::test {

/// What a finished process left.
struct Finished {
  int exit_code = -1;  ///< 128 + signal when a signal ended it
  std::string out;
  std::string err;

  std::vector<std::string> out_lines() const;
  std::vector<std::string> err_lines() const;
};

struct BinaryOptions {
  std::string input;                               ///< standard input; empty: at its end at once
  std::string folder;                              ///< working folder
  std::map<std::string, std::string> environment;  ///< besides PATH, HOME and the sanitizers' variables
  std::string stdout_file;                         ///< standard output goes there instead
  bool closed_output = false;                      ///< standard output is a pipe that nobody reads
  bool no_output = false;                          ///< standard output is closed
  std::string program;                             ///< the name it is called by; empty: its own
};

/// Runs the real `sluice` with its own streams, never on a terminal, and waits for its end.
Finished run_binary(const std::vector<std::string>& arguments, const BinaryOptions& options);

/// A `sluice` that runs while the test talks to it; killed with the object if need be.
class RunningBinary {
 public:
  RunningBinary(const std::vector<std::string>& arguments, const BinaryOptions& options);
  ~RunningBinary();
  RunningBinary(const RunningBinary&) = delete;
  RunningBinary& operator=(const RunningBinary&) = delete;

  void write(const std::string& text);
  void close_input();
  /// The next line of standard output; empty at its end. Blocks.
  std::string read_line();
  void signal(int number);
  /// What a descriptor of it leads to; empty while it is closed.
  std::string open_file(int descriptor) const;
  /// Closes input and takes everything until the end.
  Finished finish();

 private:
  pid_t pid_ = -1;
  int input_ = -1;
  int output_ = -1;
  int error_ = -1;
  std::string output_buffer_;
};

/// A temporary folder with a host.toml on SQLite, removed with the object.
class HostFolder {
 public:
  /// By itself it knows the queues `orders` and `q`.
  explicit HostFolder(
      const std::string& host_toml = "[store]\nkind = \"sqlite\"\npath = \"sluice.db\"\n[queues.orders]\n[queues.q]\n");
  ~HostFolder();
  HostFolder(const HostFolder&) = delete;
  HostFolder& operator=(const HostFolder&) = delete;

  const std::string& path() const { return path_; }
  void write(const std::string& name, const std::string& text) const;
  /// Runs the binary in the folder.
  Finished run(const std::vector<std::string>& arguments, const std::string& input = {}) const;

 private:
  std::string path_;
};

}  // namespace sluice::test
