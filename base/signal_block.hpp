#pragma once

#include <csignal>
#include <initializer_list>

namespace sluice {

/// Blocks signals in this thread for a scope. A thread that is started in it has them blocked for good, so that a
/// library's threads neither run the program's handlers nor take what it waits for, and no broken pipe ends it.
/// Left open are faults, which a program may want to report, and the profilers' clock.
class SignalBlock {
 public:
  SignalBlock() {
    sigset_t blocked;
    ::sigfillset(&blocked);
    for (const int open : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPROF}) {
      ::sigdelset(&blocked, open);
    }
    ::pthread_sigmask(SIG_SETMASK, &blocked, &before_);
  }
  ~SignalBlock() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalBlock(const SignalBlock&) = delete;
  SignalBlock& operator=(const SignalBlock&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace sluice
