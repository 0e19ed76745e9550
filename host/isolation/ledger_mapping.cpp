#include "host/isolation/ledger_mapping.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/guard.hpp"
#include "host/isolation/private_folder.hpp"
#include "host/isolation/state_file_error.hpp"

namespace sluice::isolation {
namespace {

Error cannot(const std::string& what, const std::string& file, int code) {
  return state_file_error("the crash ledger " + file + " cannot be " + what, code);
}

/// Makes room for real: a store into a hole of a file on a full disk is a SIGBUS.
int allocate(int descriptor, std::size_t size) { return ::posix_fallocate(descriptor, 0, static_cast<off_t>(size)); }

/// Maps the file's first `size` bytes at `base`, within what was reserved there.
bool map(int descriptor, char* base, std::size_t size) {
  if (::mmap(base, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0) == MAP_FAILED) {
    return false;
  }
  // A child that a plugin forks has no business in here.
  ::madvise(base, size, MADV_DONTFORK);
  return true;
}

}  // namespace

Result<std::unique_ptr<LedgerMapping>> LedgerMapping::create(const std::string& folder, const LedgerOwner& owner,
                                                             const Clock& clock, LedgerStart start) {
  SLUICE_PASS_ON(make_private_folder(folder));
  const std::int64_t now = clock.wall_now().time_since_epoch().count();
  const std::string file = folder + "/" + std::to_string(now) + "-" + std::to_string(::getpid()) + ".ledger";
  // Nobody takes it for one without an owner before it has its name, and by then it is locked.
  const std::string unfinished = file + ".new";
  const int descriptor =
      ::open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, SLUICE_GUARD(file_modes) ? 0600 : 0644);
  if (descriptor < 0) {
    return cannot("made", file, errno);
  }
  const auto give_up = [&](const std::string& what, int code) {
    ::unlink(unfinished.c_str());
    ::close(descriptor);
    return cannot(what, file, code);
  };
  if (::flock(descriptor, LOCK_EX | LOCK_NB) != 0) {
    return give_up("locked", errno);
  }
  const std::size_t size = format::file_size(format::kSlotsAtFirst);
  if (const int code = allocate(descriptor, size); code != 0) {
    return give_up("given room", code);
  }
  const std::size_t reserved = format::file_size(format::kSlotsAtMost);
  void* const base = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return give_up("mapped", errno);
  }
  auto mapping = std::unique_ptr<LedgerMapping>(new LedgerMapping(descriptor, static_cast<char*>(base), file));
  format::Head& head = mapping->head();
  if (!map(descriptor, mapping->base_, size)) {
    const int code = errno;
    ::unlink(unfinished.c_str());
    return cannot("mapped", file, code);
  }
  head.magic = format::kMagic;
  head.version = format::kVersion;
  head.size = format::kSlotsAt;
  head.process = ::getpid();
  head.started = now;
  head.host.assign(owner.host);
  head.config.assign(owner.config);
  head.incarnation.assign(owner.incarnation);
  head.slots.store(format::kSlotsAtFirst);
  // Whoever finds it before its jobs have their parts knows that there was more.
  head.unrecorded.store(start == LedgerStart::late ? 1 : 0);
  if (::rename(unfinished.c_str(), file.c_str()) != 0) {
    const int code = errno;
    ::unlink(unfinished.c_str());
    return cannot("made", file, code);
  }
  return mapping;
}

LedgerMapping::LedgerMapping(int descriptor, char* base, std::string file)
    : descriptor_(descriptor),
      base_(base),
      file_(std::move(file)),
      memory_{base_, format::file_size(format::kSlotsAtMost)} {
  survive_truncation(&memory_);
}

LedgerMapping::~LedgerMapping() {
  bool empty = true;
  if (is_at_its_path()) {
    const std::uint32_t slots = head().slots.load();
    for (std::uint32_t i = 0; i < slots && empty; ++i) {
      const std::uint32_t state = slot(i).state.load();
      empty = state != format::kHeld && state != format::kRunning;
    }
    if (empty && crash().state.load() == CrashRecord::none) {
      ::unlink(file_.c_str());
    }
  }
  survive_truncation(nullptr);
  ::munmap(base_, format::file_size(format::kSlotsAtMost));
  ::close(descriptor_);
}

bool LedgerMapping::is_at_its_path() const {
  struct stat named {};
  struct stat opened {};
  return ::stat(file_.c_str(), &named) == 0 && ::fstat(descriptor_, &opened) == 0 && named.st_ino == opened.st_ino &&
         named.st_dev == opened.st_dev;
}

bool LedgerMapping::is_whole() const {
  struct stat status {};
  const std::uint32_t slots = reinterpret_cast<const format::Head*>(base_)->slots.load();
  return is_at_its_path() && ::fstat(descriptor_, &status) == 0 &&
         status.st_size >= static_cast<off_t>(format::file_size(slots)) && !memory_.cut_off.load();
}

std::size_t LedgerMapping::take_job() {
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < format::kJobs; ++i) {
    if (job(i).used.load() == 0) {
      job(i).used.store(1);
      return i;
    }
  }
  return format::kJobs;
}

void LedgerMapping::give_back_job(std::size_t index) {
  const MutexLock lock(mutex_);
  job(index).used.store(0);
}

bool LedgerMapping::grow() {
  const std::uint32_t slots = head().slots.load();
  const std::uint32_t more = std::min(slots * 2, format::kSlotsAtMost);
  if (more == slots) {
    return false;
  }
  const std::size_t size = format::file_size(more);
  // The pages that are in use are mapped anew at the same addresses, to the same bytes.
  if (!is_whole() || allocate(descriptor_, size) != 0 || !map(descriptor_, base_, size)) {
    return false;
  }
  head().slots.store(more);
  return true;
}

std::uint32_t LedgerMapping::take_block() {
  const MutexLock lock(mutex_);
  if (!free_blocks_.empty()) {
    const std::uint32_t first = free_blocks_.back();
    free_blocks_.pop_back();
    return first;
  }
  if (handed_out_ + kBlock > head().slots.load() && !grow()) {
    return format::kSlotsAtMost;
  }
  const std::uint32_t first = handed_out_;
  handed_out_ += kBlock;
  return first;
}

void LedgerMapping::give_back_block(std::uint32_t first) {
  const MutexLock lock(mutex_);
  free_blocks_.push_back(first);
}

}  // namespace sluice::isolation
