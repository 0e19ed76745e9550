#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace sluice::test {

/// A program that runs beside a test, without input and output; killed with the object. It does not outlive the thread
/// that started it, so that a test that crashes leaves nothing behind.
class ChildProcess {
 public:
  /// `arguments` begin with the program's path. Throws std::runtime_error when no process can be made; a program that
  /// is not there ends at once.
  explicit ChildProcess(const std::vector<std::string>& arguments);
  ~ChildProcess() { kill(); }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Waits until something listens on 127.0.0.1:port; false when the process ends first or does not come up.
  bool wait_until_listening(int port) const;
  /// Kills it and waits for its end. Idempotent.
  void kill();

 private:
  pid_t pid_;
};

}  // namespace sluice::test
