#include "host/isolation/crash_ledger.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "base/assert.hpp"
#include "base/guard.hpp"
#include "host/isolation/state_folder.hpp"

namespace sluice::isolation {

namespace {

/// Slots are handed to jobs in blocks.
constexpr std::uint32_t kBlock = 64;

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

Result<std::shared_ptr<HostLedger>> HostLedger::create(const std::string& folder, const LedgerOwner& owner,
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
  if (!map(descriptor, static_cast<char*>(base), size)) {
    const int code = errno;
    ::munmap(base, reserved);
    return give_up("mapped", code);
  }
  auto ledger = std::shared_ptr<HostLedger>(new HostLedger(descriptor, static_cast<char*>(base), file));
  format::Head& head = ledger->head();
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
  return ledger;
}

HostLedger::HostLedger(int descriptor, char* base, std::string file)
    : descriptor_(descriptor),
      base_(base),
      file_(std::move(file)),
      memory_{base_, format::file_size(format::kSlotsAtMost)} {
  survive_truncation(&memory_);
}

HostLedger::~HostLedger() {
  if (is_file_at(file_, descriptor_)) {
    bool empty = crash_record().state.load() == CrashRecord::none;
    const std::uint32_t slots = head().slots.load();
    for (std::uint32_t i = 0; i < slots && empty; ++i) {
      const std::uint32_t state = slot(i).state.load();
      empty = state != format::kHeld && state != format::kRunning;
    }
    if (empty) {
      ::unlink(file_.c_str());
    }
  }
  survive_truncation(nullptr);
  ::munmap(base_, format::file_size(format::kSlotsAtMost));
  ::close(descriptor_);
}

std::unique_ptr<JobLedger> HostLedger::open(const std::vector<LedgerJob>& queues) {
  auto opened = std::make_unique<JobSlots>(queues);
  opened->attach(shared_from_this());
  return opened;
}

bool HostLedger::is_whole() const {
  struct stat status {};
  return is_file_at(file_, descriptor_) && ::fstat(descriptor_, &status) == 0 &&
         status.st_size >= static_cast<off_t>(format::file_size(head().slots.load())) && !memory_.cut_off.load();
}

std::uint16_t HostLedger::take_job(const LedgerJob& taken) {
  const MutexLock lock(mutex_);
  std::uint16_t index = 0;
  while (index < format::kJobs && job(index).used.load() != 0) {
    ++index;
  }
  if (index < format::kJobs) {
    format::JobEntry& entry = job(index);
    entry.used.store(1);
    entry.dlq = taken.address.half == queue::Half::dlq ? 1 : 0;
    entry.name.assign(taken.facts.job);
    entry.queue.assign(taken.address.queue);
  }
  return index;
}

bool HostLedger::grow() {
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

std::uint32_t HostLedger::take_block() {
  const MutexLock lock(mutex_);
  if (!free_blocks_.empty()) {
    const std::uint32_t first = free_blocks_.back();
    free_blocks_.pop_back();
    return first;
  }
  if (handed_out_ + kBlock > head().slots.load() && !grow()) {
    return format::kSlotsAtMost;
  }
  return std::exchange(handed_out_, handed_out_ + kBlock);
}

void HostLedger::give_back(const std::vector<std::uint16_t>& jobs, const std::vector<std::uint32_t>& blocks) {
  const MutexLock lock(mutex_);
  for (const std::uint32_t first : blocks) {
    for (std::uint32_t i = 0; i < kBlock; ++i) {
      slot(first + i).state.store(format::kFree);
    }
    free_blocks_.push_back(first);
  }
  for (const std::uint16_t index : jobs) {
    if (index < format::kJobs) {
      job(index).used.store(0);
    }
  }
}

std::uint32_t JobSlots::attach(std::shared_ptr<HostLedger> ledger) {
  const MutexLock lock(mutex_);
  ledger_ = std::move(ledger);
  for (const LedgerJob& queue : queues_) {
    jobs_.push_back(ledger_->take_job(queue));
  }
  const auto held = static_cast<std::uint32_t>(unrecorded_);
  ledger_->head().unrecorded.fetch_add(held, std::memory_order_relaxed);
  live_.store(ledger_.get(), std::memory_order_release);
  return held;
}

void JobSlots::count_unrecorded(std::int32_t change) noexcept {
  HostLedger* ledger = live_.load(std::memory_order_acquire);
  if (ledger == nullptr) {
    // The count goes over to the ledger as one, so that it is exact whenever that comes.
    const MutexLock lock(mutex_);
    ledger = live_.load(std::memory_order_relaxed);
    unrecorded_ += ledger == nullptr ? change : 0;
  }
  if (ledger != nullptr) {
    unrecorded_ += change;
    ledger->head().unrecorded.fetch_add(static_cast<std::uint32_t>(change), std::memory_order_relaxed);
  }
}

bool JobSlots::take_block() noexcept {
  const std::uint32_t first = ledger_->take_block();
  if (first == format::kSlotsAtMost) {
    return false;
  }
  try {
    blocks_.push_back(first);
    free_.reserve(blocks_.size() * kBlock);
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (std::uint32_t i = kBlock; i > 0; --i) {
    free_.push_back(first + i);
  }
  return true;
}

HeldSlot JobSlots::hold(const queue::Delivery& delivery) noexcept {
  const std::string& id = delivery.receipt.id;
  SLUICE_ASSERT(delivery.receipt.part < queues_.size());
  if (live_.load(std::memory_order_acquire) == nullptr || jobs_[delivery.receipt.part] == format::kJobs ||
      id.size() > format::kIdLimit || (free_.empty() && !take_block())) {
    count_unrecorded(1);
    return 0;
  }
  const HeldSlot held = free_.back();
  free_.pop_back();
  format::Slot& slot = at(held);
  slot.job = jobs_[delivery.receipt.part];
  slot.suspect = delivery.suspect ? 1 : 0;
  slot.version = delivery.receipt.version;
  slot.locator = delivery.receipt.locator;
  slot.attempt = delivery.message.attempt;
  slot.id_size = static_cast<std::uint8_t>(id.size());
  std::memcpy(slot.id.data(), id.data(), id.size());
  slot.state.store(format::kHeld, std::memory_order_release);
  return held;
}

void JobSlots::ended(HeldSlot held, bool finished) noexcept {
  handler_returns();
  if (held == 0) {
    return;
  }
  std::uint32_t expected = format::kRunning;
  if (!at(held).state.compare_exchange_strong(expected, finished ? format::kFinished : format::kHeld,
                                              std::memory_order_acq_rel) &&
      expected == format::kGone) {
    at(held).state.store(format::kFree, std::memory_order_release);
  }
}

void JobSlots::committing(HeldSlot held, Committing how) noexcept {
  if (held != 0) {
    at(held).state.store(how == Committing::alone      ? format::kCommittingAlone
                         : how == Committing::together ? format::kCommitting
                                                       : format::kHeld,
                         std::memory_order_release);
  }
}

void JobSlots::drop(HeldSlot held) noexcept {
  if (held == 0) {
    count_unrecorded(-1);
    return;
  }
  std::uint32_t expected = format::kRunning;
  // Whoever lost the lease of a handler that does not return may not give its place to another message: the handler's
  // return, or its crash, would be taken for that one's. The place is lost with it.
  if (at(held).state.compare_exchange_strong(expected, format::kGone, std::memory_order_acq_rel)) {
    return;
  }
  at(held).state.store(format::kFree, std::memory_order_release);
  free_.push_back(held);
}

}  // namespace sluice::isolation
