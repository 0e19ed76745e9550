#include "host/isolation/crash_handler.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <boost/core/demangle.hpp>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>

#include "base/text/utf8.hpp"
#include "host/plugin/elf_file.hpp"

namespace sluice::isolation {
namespace {

/// Unwinding takes about 8 KiB of it, and a plugin's own signal handlers may come on top.
constexpr std::size_t kSignalStack = 64 * 1024;

/// A thread's stack for signals, with a guard page below. Left alone where somebody has given the thread one already.
class SignalStack : boost::noncopyable {
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

 private:
  void* memory_ = MAP_FAILED;
  std::size_t size_ = 0;
};

constinit thread_local RunningHandler running;
/// The message's id, which may be gone before the handler returns: others end what it has begun with.
constinit thread_local FixedText<512> running_id{};
constinit thread_local bool has_stack = false;

void give_stack() noexcept {
  thread_local const SignalStack stack;
  has_stack = true;
}

/// Frames of the signal handler itself lie on top.
constexpr int kRawLimit = static_cast<int>(kStackLimit) + 16;

/// The dynamic linker has no name for the program itself.
std::array<char, PATH_MAX> program_path{};

struct Place {
  std::string_view module;
  std::uint64_t offset = 0;
};

Place find_place(std::uint64_t address) noexcept {
  // Takes no lock, where dladdr() may wait for a thread that loads a library.
  dl_find_object found{};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): registers hold numbers
  if (::_dl_find_object(reinterpret_cast<void*>(address), &found) != 0 || found.dlfo_link_map == nullptr) {
    return {{}, address};
  }
  const link_map* const map = found.dlfo_link_map;
  const char* name = map->l_name != nullptr && map->l_name[0] != '\0' ? map->l_name : program_path.data();
  return {name, address - map->l_addr};
}

std::uint32_t module_index(CrashRecord& record, std::string_view name) noexcept {
  for (std::uint32_t i = 0; i < record.module_count; ++i) {
    if (record.modules[i].view() == name) {
      return i;
    }
  }
  if (record.module_count == kModuleLimit || name.empty()) {
    return kModuleLimit;
  }
  record.modules[record.module_count].assign(name);
  return record.module_count++;
}

void add_frame(CrashRecord& record, std::uint64_t address) noexcept {
  if (record.frame_count == kStackLimit) {
    return;
  }
  const Place place = find_place(address);
  record.frames[record.frame_count] = {place.offset, module_index(record, place.module), 0};
  ++record.frame_count;
}

struct Interrupted {
  std::uint64_t instruction = 0;
  std::uint64_t stack = 0;
  std::uint64_t link = 0;  ///< the register that holds where to return to, on machines that have one
};

Interrupted interrupted(const ucontext_t& context) noexcept {
#if defined(__x86_64__)
  const auto& registers = context.uc_mcontext.gregs;
  return {static_cast<std::uint64_t>(registers[REG_RIP]), static_cast<std::uint64_t>(registers[REG_RSP]), 0};
#elif defined(__aarch64__)
  return {context.uc_mcontext.pc, context.uc_mcontext.sp, context.uc_mcontext.regs[30]};
#elif defined(__riscv)
  return {context.uc_mcontext.__gregs[REG_PC], context.uc_mcontext.__gregs[REG_SP],
          context.uc_mcontext.__gregs[REG_RA]};
#else
#error "name this machine's registers here"
#endif
}

/// Loads what `capture_stack` needs, which must not be loaded inside a signal handler.
void prepare_stack_capture() {
  const ssize_t size = ::readlink("/proc/self/exe", program_path.data(), program_path.size() - 1);
  program_path[size > 0 ? static_cast<std::size_t>(size) : 0] = '\0';
  // The first call loads the unwinder, which allocates.
  std::array<void*, 4> frames{};
  static_cast<void>(::backtrace(frames.data(), static_cast<int>(frames.size())));
}

/// Writes the calling thread's stack into the record as modules and offsets, from the place where the signal met it.
/// `context` as the signal handler was given it; null: from the caller on. Async-signal-safe as far as the
/// compiler's unwinder is: where the stack itself is damaged it may fault.
void capture_stack(CrashRecord& record, const ucontext_t* context) noexcept {
  record.frame_count = 0;
  record.module_count = 0;
  const Interrupted at = context != nullptr ? interrupted(*context) : Interrupted{};
  if (context != nullptr) {
    // Written before anybody walks the stack, which may be what is broken.
    add_frame(record, at.instruction);
  }
  std::array<void*, kRawLimit> raw{};
  const int count = ::backtrace(raw.data(), kRawLimit);
  int first = 0;
  while (context != nullptr && first < count && reinterpret_cast<std::uint64_t>(raw[first]) != at.instruction) {
    ++first;
  }
  if (first < count) {
    for (int i = first + 1; i < count; ++i) {
      add_frame(record, reinterpret_cast<std::uint64_t>(raw[i]));
    }
    return;
  }
  // A jump to nowhere: what it was called from lies on top of the stack, or in a register.
  if (at.link != 0) {
    add_frame(record, at.link);
  } else if (at.stack != 0 && at.stack % sizeof(std::uint64_t) == 0) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): registers hold numbers
    add_frame(record, *reinterpret_cast<const std::uint64_t*>(at.stack));
  }
}

constexpr std::array kFaults{SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kInternal = 70;
/// How long a second thread that crashes waits for the first, whose end is its own too.
constexpr int kOtherThreadMs = 5000;
/// How long a reader of standard error that has stalled keeps the process from its end.
constexpr int kReaderMs = 300;

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
    pollfd ready{STDERR_FILENO, POLLOUT, 0};
    if (::poll(&ready, 1, kReaderMs) > 0) {
      static_cast<void>(::write(STDERR_FILENO, bytes_.data(), size_ + 1) < 0);
    }
  }

 private:
  /// No more than a pipe takes that is not full.
  std::array<char, 2048> bytes_{};
  std::size_t size_ = 0;
};

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

void write_line(const CrashRecord& record) noexcept {
  if (notice_in_use.load() == CrashNotice::none) {
    return;
  }
  SignalLine line;
  line.add("sluice: ");
  if (record.cause == static_cast<std::uint32_t>(CrashCause::exit)) {
    line.add("the handler called exit(").add(record.exit_code).add(")");
  } else {
    line.add("SIG").add(::sigabbrev_np(record.signal));
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

/// Writes what a signal handler's `context` shows; null: from the caller on, of whose stack it is no part itself.
[[gnu::always_inline]] inline void write_record(CrashRecord& record, CrashCause cause, bool blame,
                                                const ucontext_t* context) noexcept {
  record.cause = static_cast<std::uint32_t>(cause);
  record.time = wall_time();
  record.memory = private_memory();
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
  if (cause != CrashCause::look) {
    write_line(record);
  }
  capture_stack(record, context);
  record.state.store(CrashRecord::complete);
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
  write_record(*record, CrashCause::signal, !sent || info->si_pid == ::getpid(),
               static_cast<const ucontext_t*>(context));
  take_default_action(signal, *info);
}

void on_look(int signal, siginfo_t*, void* context) {
  const int before = errno;
  if (CrashRecord* record = is_ours() ? begin_record() : nullptr) {
    record->signal = signal;
    write_record(*record, CrashCause::look, true, static_cast<const ucontext_t*>(context));
  }
  errno = before;
}

[[noreturn]] void on_terminate() {
  if (const std::exception_ptr thrown = std::current_exception()) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::exception& error) {
      const char* const what = error.what();
      uncaught.assign(what == nullptr ? "" : what);
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
  if (running.facts == nullptr || !is_ours()) {
    return;
  }
  if (CrashRecord* record = begin_record()) {
    record->exit_code = status;
    write_record(*record, CrashCause::exit, true, nullptr);
  } else {
    // What another thread tells of ends the process in its own way.
    static_cast<void>(::poll(nullptr, 0, kOtherThreadMs));
  }
  ::_exit(kInternal);
}

/// A jump through a null pointer names the member's offset and says something; other addresses differ from run to run.
constexpr std::uint64_t kTellingAddress = 0x10000;
constexpr std::size_t kShownFrames = 12;

std::string hex(std::uint64_t number) {
  std::array<char, 20> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number, 16).ptr;
  return "0x" + std::string(digits.data(), end);
}

/// The functions that an ELF file names; none for a file that has none.
class Functions {
 public:
  explicit Functions(const std::string& file) {
    if (auto elf = plugin::ElfFile::open(file)) {
      elf_ = *std::move(elf);
      functions_ = elf_->functions();
    }
  }

  /// As function_at.
  std::string name_at(std::uint64_t offset) const {
    const Elf64_Sym* nearest = nullptr;
    for (const Elf64_Sym& function : functions_) {
      if (function.st_value <= offset && (nearest == nullptr || function.st_value >= nearest->st_value)) {
        nearest = &function;
      }
    }
    const std::uint64_t distance = nearest == nullptr ? 0 : offset - nearest->st_value;
    if (nearest == nullptr || (nearest->st_size != 0 && distance >= nearest->st_size)) {
      return {};
    }
    return boost::core::demangle(elf_->name_of(*nearest).c_str()) + "+" + hex(distance);
  }

 private:
  std::unique_ptr<plugin::ElfFile> elf_;
  std::vector<Elf64_Sym> functions_;
};

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// Where the file of a module is: a plugin that was loaded from memory is known by its descriptor only.
std::string module_file(const std::string& name, const std::string& plugin) {
  const bool by_descriptor = name.starts_with("/proc/") && name.find("/fd/") != std::string::npos;
  return by_descriptor && !plugin.empty() ? plugin : name;
}

bool is_fault(int signal) { return signal == SIGSEGV || signal == SIGBUS; }

}  // namespace

void handler_begins(const RunningHandler& begun) noexcept {
  if (!has_stack) {
    give_stack();
  }
  // A signal in between sees nobody whom it could blame, never one message's name beside another one's.
  running.facts = nullptr;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  running_id.assign(begun.message);
  running.message = running_id.view();
  running.slot = begun.slot;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  running.facts = begun.facts;
}

void handler_returns() noexcept { running = RunningHandler{}; }

void handler_returns(HeldSlot slot) noexcept {
  if (running.slot == slot || running.slot == kNoSlot) {
    handler_returns();
  }
}

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

namespace sluice::isolation {

std::string function_at(const std::string& file, std::uint64_t offset) { return Functions(file).name_at(offset); }

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

std::optional<CrashReport> read_crash(const CrashRecord& record, const OpenModules& opened) {
  const std::uint32_t state = record.state.load();
  if (state < CrashRecord::written || state > CrashRecord::complete) {
    return std::nullopt;
  }
  CrashReport report;
  report.cause = static_cast<CrashCause>(record.cause);
  report.signal = record.signal;
  report.exit_code = record.exit_code;
  report.address = record.address;
  report.time = WallTime(Duration(record.time));
  report.memory = record.memory;
  report.slot = record.slot;
  report.blamed = record.blamed != 0;
  report.job = record.job.text();
  report.handler = record.handler.text();
  report.plugin = record.plugin.text();
  report.message = record.message.text();
  report.what = record.what.text();
  std::map<std::string, Functions> functions;
  const std::size_t frames = std::min<std::size_t>(record.frame_count, kStackLimit);
  const std::size_t modules = std::min<std::size_t>(record.module_count, kModuleLimit);
  for (std::size_t i = 0; i < frames; ++i) {
    const CrashRecord::Frame frame = record.frames[i];  // a copy: a process that lives may write over it
    StackFrame& shown = report.stack.emplace_back();
    shown.offset = frame.offset;
    if (frame.module >= modules) {
      shown.text = hex(frame.offset);
      continue;
    }
    const std::string module = record.modules[frame.module].text();
    const auto open = opened.find(module);
    shown.module = open != opened.end() ? open->second.file : module_file(module, report.plugin);
    const std::string& bytes = open != opened.end() ? open->second.bytes : shown.module;
    const Functions& known = functions.try_emplace(module, bytes).first->second;
    // All but the first are where a call returns to, which may be past the end of the function that made it.
    const std::string name = known.name_at(i == 0 ? frame.offset : frame.offset - 1);
    shown.text =
        (name.empty() ? hex(frame.offset) : clean_utf8(name, std::string::npos)) + " in " + file_name(shown.module);
  }
  return report;
}

std::string CrashReport::summary() const {
  std::string text = cause == CrashCause::exit   ? "the handler called exit(" + std::to_string(exit_code) + ")"
                     : cause == CrashCause::look ? std::string("killed")
                                                 : signal_name(signal);
  if (cause == CrashCause::signal && is_fault(signal) && address < kTellingAddress) {
    text += " at address " + hex(address);
  }
  if (blamed) {
    text += " in handler '" + handler + "' of " + file_name(plugin);
  }
  if (!what.empty()) {
    text += ": an exception that nobody caught: " + what;
  }
  return text;
}

std::string CrashReport::stack_text() const {
  std::string text;
  for (std::size_t i = 0; i < std::min(stack.size(), kShownFrames); ++i) {
    text += (i == 0 ? "" : " < ") + stack[i].text;
  }
  return text;
}

std::string CrashReport::failure_text(std::size_t limit) const {
  const std::string frames = stack_text();
  std::string text = summary() + (frames.empty() ? "" : "; stack: " + frames);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return clean_utf8(text, limit);
}

}  // namespace sluice::isolation
