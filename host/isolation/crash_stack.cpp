#include "host/isolation/crash_stack.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdint>

namespace sluice::isolation {
namespace {

/// Frames of the signal handler itself lie on top.
constexpr int kRawLimit = static_cast<int>(kStackLimit) + 16;

/// The dynamic linker has no name for the program itself.
std::array<char, PATH_MAX> program_path{};

struct Place {
  std::string_view module;
  std::uint64_t offset = 0;
};

Place find_place(std::uint64_t address) noexcept {
  const link_map* map = nullptr;
#if defined(DLFO_STRUCT_HAS_EH_DBASE)
  // Takes no lock, where dladdr() may wait for a thread that loads a library.
  dl_find_object found{};
  if (::_dl_find_object(reinterpret_cast<void*>(address), &found) == 0) {
    map = found.dlfo_link_map;
  }
#else
  Dl_info ignored{};
  void* extra = nullptr;
  if (::dladdr1(reinterpret_cast<void*>(address), &ignored, &extra, RTLD_DL_LINKMAP) != 0) {
    map = static_cast<const link_map*>(extra);
  }
#endif
  if (map == nullptr) {
    return {{}, address};
  }
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

}  // namespace

void prepare_stack_capture() {
  const ssize_t size = ::readlink("/proc/self/exe", program_path.data(), program_path.size() - 1);
  program_path[size > 0 ? static_cast<std::size_t>(size) : 0] = '\0';
  // The first call loads the unwinder, which allocates.
  std::array<void*, 4> frames{};
  static_cast<void>(::backtrace(frames.data(), static_cast<int>(frames.size())));
}

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
    add_frame(record, *reinterpret_cast<const std::uint64_t*>(at.stack));
  }
}

}  // namespace sluice::isolation
