#include "host/isolation/running_handler.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace sluice::isolation {
namespace {

/// Unwinding takes about 8 KiB of it, and a plugin's own signal handlers may come on top.
constexpr std::size_t kSignalStack = 64 * 1024;

/// A thread's stack for signals, with a page below it that nobody may touch. Left alone where somebody, such as a
/// sanitizer, has given the thread one already.
class SignalStack {
 public:
  SignalStack() noexcept {
    stack_t present{};
    if (::sigaltstack(nullptr, &present) != 0 || (present.ss_flags & SS_DISABLE) == 0) {
      return;
    }
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    size_ = page + std::max<std::size_t>(kSignalStack, static_cast<std::size_t>(SIGSTKSZ));
    memory_ = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory_ == MAP_FAILED) {
      return;
    }
    ::mprotect(memory_, page, PROT_NONE);
    stack_t ours{};
    ours.ss_sp = static_cast<char*>(memory_) + page;
    ours.ss_size = size_ - page;
    ::sigaltstack(&ours, nullptr);
  }
  ~SignalStack() {
    if (memory_ == MAP_FAILED) {
      return;
    }
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    ::sigaltstack(&none, nullptr);
    ::munmap(memory_, size_);
  }
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  void* memory_ = MAP_FAILED;
  std::size_t size_ = 0;
};

constinit thread_local RunningHandler running;
constinit thread_local bool has_stack = false;

void give_stack() noexcept {
  thread_local const SignalStack stack;
  has_stack = true;
}

}  // namespace

void handler_begins(const RunningHandler& begun) noexcept {
  if (!has_stack) {
    give_stack();
  }
  running = begun;
}

void handler_returns() noexcept { running = RunningHandler{}; }

const RunningHandler& running_handler() noexcept { return running; }

}  // namespace sluice::isolation
