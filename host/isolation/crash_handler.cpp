#include "host/isolation/crash_handler.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <string_view>

#include "host/isolation/crash_stack.hpp"
#include "host/isolation/running_handler.hpp"

namespace sluice::isolation {
namespace {

constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kInternal = 70;
/// How long a second thread that crashes waits for the first, whose end is its own too.
constexpr int kOtherThreadMs = 5000;

CrashRecord without_file{};
std::atomic<CrashRecord*> record_in_use{&without_file};
/// A child that a plugin forks has our handlers until it starts another program: what happens to it is not ours.
std::atomic<pid_t> watched_process{0};
std::atomic<CrashNotice> notice_in_use{CrashNotice::line};
std::atomic<FileMemory*> file_memory{nullptr};
constinit thread_local bool crashing = false;
constinit thread_local FixedText<512> uncaught{};

/// One line of text without an allocation.
class SignalLine {
 public:
  SignalLine& add(std::string_view text) noexcept {
    const std::size_t fits = std::min(text.size(), bytes_.size() - 1 - size_);
    std::copy_n(text.data(), fits, bytes_.data() + size_);
    size_ += fits;
    return *this;
  }
  SignalLine& add(std::int64_t number) noexcept {
    std::array<char, 24> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
    return add(std::string_view(digits.data(), static_cast<std::size_t>(end - digits.data())));
  }
  void write() noexcept {
    bytes_[size_] = '\n';
    static_cast<void>(::write(STDERR_FILENO, bytes_.data(), size_ + 1) < 0);
  }

 private:
  std::array<char, 2048> bytes_{};
  std::size_t size_ = 0;
};

std::string_view fault_name(int signal) noexcept {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGFPE:
      return "SIGFPE";
    case SIGILL:
      return "SIGILL";
    default:
      return "SIGABRT";
  }
}

std::int64_t wall_time() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

/// The sixth number of /proc/self/statm, in bytes.
std::uint64_t private_memory() noexcept {
  const int file = ::open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return 0;
  }
  std::array<char, 128> text{};
  const ssize_t size = ::read(file, text.data(), text.size());
  ::close(file);
  const char* at = text.data();
  const char* const end = text.data() + std::max<ssize_t>(size, 0);
  for (int spaces = 0; at < end && spaces < 5; ++at) {
    spaces += *at == ' ' ? 1 : 0;
  }
  std::uint64_t pages = 0;
  std::from_chars(at, end, pages);
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

bool is_ours() noexcept { return ::getpid() == watched_process.load(std::memory_order_relaxed); }

/// The record, when this thread is the first to write it.
CrashRecord* begin_record() noexcept {
  CrashRecord* record = record_in_use.load();
  std::uint32_t expected = CrashRecord::none;
  return record->state.compare_exchange_strong(expected, CrashRecord::begun) ? record : nullptr;
}

void write_facts(CrashRecord& record, CrashCause cause, bool blame) noexcept {
  record.cause = static_cast<std::uint32_t>(cause);
  record.time = wall_time();
  record.memory = private_memory();
  const RunningHandler& running = running_handler();
  record.blamed = blame && running.facts != nullptr ? 1 : 0;
  record.slot = record.blamed != 0 ? running.slot : 0;
  if (record.blamed != 0) {
    record.job.assign(running.facts->job);
    record.handler.assign(running.facts->handler);
    record.plugin.assign(running.facts->plugin);
    record.message.assign(running.message);
  }
  record.what.assign(uncaught.view());
  record.state.store(CrashRecord::written);
}

void write_line(const CrashRecord& record) noexcept {
  if (notice_in_use.load() == CrashNotice::none) {
    return;
  }
  SignalLine line;
  line.add("sluice: ");
  if (record.cause == static_cast<std::uint32_t>(CrashCause::exit)) {
    line.add("the handler called exit(").add(record.exit_code).add(")");
  } else {
    line.add(fault_name(record.signal));
  }
  if (record.blamed != 0) {
    line.add(" in handler '").add(record.handler.view()).add("' of ").add(record.plugin.view()).add(", job '");
    line.add(record.job.view()).add("', message ").add(record.message.view());
  } else {
    line.add(" on a thread that runs no handler");
  }
  if (record.what.size != 0) {
    line.add(": an exception that nobody caught: ").add(record.what.view());
  }
  if (&record != &without_file) {
    line.add("; 'sluice crashes' has the stack");
  }
  line.write();
}

/// What the signal would have done. A fault comes again as soon as its instruction is run again.
void take_default_action(int signal, const siginfo_t& info) noexcept {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  ::sigaction(signal, &action, nullptr);
  if (info.si_code <= 0) {
    ::syscall(SYS_tgkill, ::getpid(), ::syscall(SYS_gettid), signal);
  }
}

void wait_for_first(const CrashRecord& record) noexcept {
  for (int waited = 0; waited < kOtherThreadMs && record.state.load() != CrashRecord::complete; waited += 10) {
    static_cast<void>(::poll(nullptr, 0, 10));
  }
}

/// Whether the fault was about a page of the file's memory, which can be touched from now on.
bool replace_lost_page(const siginfo_t& info) noexcept {
  FileMemory* const memory = file_memory.load();
  if (memory == nullptr || info.si_code != BUS_ADRERR) {
    return false;
  }
  const std::size_t offset = reinterpret_cast<std::size_t>(info.si_addr) - reinterpret_cast<std::size_t>(memory->base);
  if (offset >= memory->size) {
    return false;
  }
  const int before = errno;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const bool replaced = ::mmap(memory->base + offset / page * page, page, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
  errno = before;
  memory->cut_off.store(memory->cut_off.load() || replaced);
  return replaced;
}

void on_fault(int signal, siginfo_t* info, void* context) {
  if (signal == SIGBUS && replace_lost_page(*info)) {
    return;
  }
  // Walking a damaged stack may fault in turn; what was written by then stands.
  if (!is_ours() || crashing) {
    take_default_action(signal, *info);
    return;
  }
  crashing = true;
  CrashRecord* record = begin_record();
  if (record == nullptr) {
    wait_for_first(*record_in_use.load());
    take_default_action(signal, *info);
    return;
  }
  const bool sent = info->si_code <= 0;
  record->signal = signal;
  record->address = sent ? 0 : reinterpret_cast<std::uint64_t>(info->si_addr);
  write_facts(*record, CrashCause::signal, !sent || info->si_pid == ::getpid());
  write_line(*record);
  capture_stack(*record, static_cast<const ucontext_t*>(context));
  record->state.store(CrashRecord::complete);
  take_default_action(signal, *info);
}

void on_look(int signal, siginfo_t*, void* context) {
  const int before = errno;
  if (CrashRecord* record = is_ours() ? begin_record() : nullptr) {
    record->signal = signal;
    write_facts(*record, CrashCause::look, true);
    capture_stack(*record, static_cast<const ucontext_t*>(context));
    record->state.store(CrashRecord::complete);
  }
  errno = before;
}

[[noreturn]] void on_terminate() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      uncaught.assign(error.what());
    } catch (...) {
      uncaught.assign("not a std::exception");
    }
  }
  std::abort();
}

void handle(int signal, void (*function)(int, siginfo_t*, void*)) {
  struct sigaction action {};
  action.sa_sigaction = function;
  // While a fault is handled the record may turn out to have lost its page, which is another one.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  ::sigfillset(&action.sa_mask);
  for (const int fault : kFaults) {
    ::sigdelset(&action.sa_mask, fault);
  }
  ::sigaction(signal, &action, nullptr);
}

/// Called by `exit` below, before anything of the process is taken down under the other threads' feet.
void report_exit(int status) noexcept {
  if (running_handler().facts == nullptr || !is_ours()) {
    return;
  }
  if (CrashRecord* record = begin_record()) {
    record->exit_code = status;
    write_facts(*record, CrashCause::exit, true);
    write_line(*record);
    capture_stack(*record, nullptr);
    record->state.store(CrashRecord::complete);
  }
  ::_exit(kInternal);
}

}  // namespace

void install_crash_handler(CrashRecord* record, CrashNotice notice) {
  notice_in_use.store(notice);
  record_in_use.store(record != nullptr ? record : &without_file);
  if (watched_process.exchange(::getpid()) == ::getpid()) {
    return;
  }
  prepare_stack_capture();
  for (const int signal : kFaults) {
    struct sigaction present {};
    if (::sigaction(signal, nullptr, &present) == 0 && present.sa_handler == SIG_DFL) {
      handle(signal, &on_fault);
    }
  }
  std::set_terminate(&on_terminate);
}

void survive_truncation(FileMemory* memory) { file_memory.store(memory); }

void install_look_handler(int signal) { handle(signal, &on_look); }

}  // namespace sluice::isolation

/// Stands before the C library's for the whole program, plugins included: there the atexit functions and static
/// destructors would run while other threads still use what they destroy, and those would be blamed.
extern "C" void exit(int status) noexcept {
  sluice::isolation::report_exit(status);
  using Exit = void (*)(int);
  reinterpret_cast<Exit>(::dlsym(RTLD_NEXT, "exit"))(status);
  ::abort();
}
