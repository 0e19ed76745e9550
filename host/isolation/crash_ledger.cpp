#include "host/isolation/crash_ledger.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <set>

#include "base/assert.hpp"
#include "base/guard.hpp"

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

constexpr std::size_t kMoreThanAnyLedger = format::file_size(format::kSlotsAtMost) + 1;

/// The file's bytes, aligned as the structs in them want it.
class LedgerBytes {
 public:
  explicit LedgerBytes(int descriptor) {
    struct stat status {};
    static_cast<void>(::fstat(descriptor, &status));
    const std::size_t size = std::min<std::size_t>(static_cast<std::size_t>(status.st_size), kMoreThanAnyLedger);
    lines_.resize(size / sizeof(Line) + 1);
    while (size_ < size) {
      const ssize_t got = ::pread(descriptor, parts().base + size_, size - size_, static_cast<off_t>(size_));
      if (got <= 0) {
        break;
      }
      size_ += static_cast<std::size_t>(got);
    }
  }

  std::size_t size() const { return size_; }
  format::Parts parts() { return {reinterpret_cast<char*>(lines_.data())}; }

 private:
  struct alignas(64) Line {
    std::array<char, 128> bytes;
  };

  std::vector<Line> lines_;
  std::size_t size_ = 0;
};

Error unusable(const std::string& file, const std::string& why) {
  return Error(ErrorCode::corrupt, "the crash ledger " + file + " " + why);
}

/// Nothing for a slot that is free or makes no sense; which of the two, `unreadable` counts.
std::optional<HeldMessage> read_slot(const format::Parts& parts, std::size_t index, std::size_t& unreadable) {
  const format::Slot& slot = parts.slot(index);
  const std::uint32_t state = slot.state.load();
  if (state == format::kFree || state == format::kGone) {
    return std::nullopt;
  }
  if (state > format::kFinished || slot.job >= format::kJobs || slot.id_size == 0 || slot.id_size > format::kIdLimit) {
    ++unreadable;
    return std::nullopt;
  }
  const format::JobEntry& job = parts.job(slot.job);
  HeldMessage held;
  held.job = job.name.text();
  held.address = {std::string(job.queue.view()), job.dlq != 0 ? queue::Half::dlq : queue::Half::standard};
  held.receipt = {std::string(slot.id.data(), slot.id_size), slot.version, slot.locator};
  held.attempt = slot.attempt;
  held.running = state == format::kRunning;
  held.finished = state == format::kFinished;
  held.committing = state == format::kCommittingAlone ? Committing::alone
                    : state == format::kCommitting    ? Committing::together
                                                      : Committing::no;
  return held;
}

std::vector<std::string> queues_of(const format::Parts& parts) {
  std::set<std::string> queues;
  for (std::size_t i = 0; i < format::kJobs; ++i) {
    if (const format::JobEntry& job = parts.job(i); job.used.load() != 0) {
      queues.emplace(job.queue.view());
    }
  }
  return {queues.begin(), queues.end()};
}

Result<LedgerContents> parse(const std::string& file, int descriptor) {
  LedgerBytes bytes(descriptor);
  const format::Parts parts = bytes.parts();
  const format::Head& head = parts.head();
  if (bytes.size() < sizeof(format::Head) || head.magic != format::kMagic) {
    return unusable(file, "is no ledger, or was never finished");
  }
  if (head.version != format::kVersion || head.size != format::kSlotsAt) {
    return unusable(file, "was written by another version of sluice (format " + std::to_string(head.version) +
                              "; this one reads " + std::to_string(format::kVersion) + ")");
  }
  const std::uint32_t slots = head.slots.load();
  if (slots > format::kSlotsAtMost || bytes.size() < format::file_size(slots)) {
    return unusable(file, "is cut off");
  }
  LedgerContents contents;
  contents.file = file;
  contents.host = head.host.text();
  contents.config = head.config.view();
  contents.process = head.process;
  contents.started = WallTime(Duration(head.started));
  contents.incarnation = head.incarnation.view();
  contents.queues = queues_of(parts);
  contents.settlement = {head.settled.counts, WallTime(Duration(head.settled.time)), head.settled.by.text()};
  contents.crash = read_crash(parts.crash());
  if (head.ended != 0) {
    contents.unclean_end = {WallTime(Duration(head.ended)), head.why_unclean.text()};
  }
  const bool blames = contents.crash && contents.crash->blamed;
  for (std::uint32_t i = 0; i < slots; ++i) {
    contents.given_back += parts.slot(i).state.load() == format::kGone ? 1 : 0;
    if (auto held = read_slot(parts, i, contents.unreadable)) {
      held->blamed = blames && contents.crash->slot == i + 1 && parts.crash().message.view() == held->receipt.id;
      contents.held.push_back(*std::move(held));
    }
  }
  contents.complete = head.unrecorded.load() == 0 && contents.unreadable == 0;
  return contents;
}

Descriptor open_ledger(const std::string& file, int flags) {
  return Descriptor(::open(file.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

Error cannot_open(const std::string& file, int code) {
  return Error(code == ENOENT ? ErrorCode::not_found : ErrorCode::denied,
               "the crash ledger " + file + " cannot be opened: " + std::strerror(code));
}

bool write_all(int descriptor, const void* data, std::size_t size, std::size_t offset) {
  return ::pwrite(descriptor, data, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

}  // namespace

Result<std::shared_ptr<HostLedger>> HostLedger::create(const std::string& folder, const LedgerOwner& owner,
                                                       const Clock& clock, LedgerStart start) {
  SLUICE_PASS_ON(make_state_folder(folder));
  const std::int64_t now = clock.wall_now().time_since_epoch().count();
  const std::string file = folder + "/" + std::to_string(now) + "-" + std::to_string(::getpid()) + ".ledger";
  // Nobody takes it for one without an owner before it has its name, and by then it is locked.
  const std::string unfinished = file + ".new";
  Descriptor made(
      ::open(unfinished.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, SLUICE_GUARD(file_modes) ? 0600 : 0644));
  if (!made.open()) {
    return cannot("made", file, errno);
  }
  const auto give_up = [&](const std::string& what, int code) {
    ::unlink(unfinished.c_str());
    return cannot(what, file, code);
  };
  if (::flock(made.get(), LOCK_EX | LOCK_NB) != 0) {
    return give_up("locked", errno);
  }
  const std::size_t size = format::file_size(format::kSlotsAtFirst);
  if (const int code = allocate(made.get(), size); code != 0) {
    return give_up("given room", code);
  }
  const std::size_t reserved = format::file_size(format::kSlotsAtMost);
  void* const base = ::mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    return give_up("mapped", errno);
  }
  if (!map(made.get(), static_cast<char*>(base), size)) {
    const int code = errno;
    ::munmap(base, reserved);
    return give_up("mapped", code);
  }
  auto ledger = std::shared_ptr<HostLedger>(new HostLedger(std::move(made), static_cast<char*>(base), file));
  format::Head& head = ledger->parts_.head();
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
    return give_up("made", errno);
  }
  return ledger;
}

HostLedger::HostLedger(Descriptor descriptor, char* base, std::string file)
    : descriptor_(std::move(descriptor)),
      parts_{base},
      file_(std::move(file)),
      memory_{base, format::file_size(format::kSlotsAtMost)} {
  survive_truncation(&memory_);
}

HostLedger::~HostLedger() {
  if (is_file_at(file_, descriptor_.get()) && crash_record().state.load() == CrashRecord::none &&
      parts_.head().ended == 0) {
    ::unlink(file_.c_str());
  }
  survive_truncation(nullptr);
  ::munmap(parts_.base, format::file_size(format::kSlotsAtMost));
}

bool HostLedger::is_whole() const {
  struct stat status {};
  return is_file_at(file_, descriptor_.get()) && ::fstat(descriptor_.get(), &status) == 0 &&
         status.st_size >= static_cast<off_t>(format::file_size(parts_.head().slots.load())) && !memory_.cut_off.load();
}

std::uint16_t HostLedger::take_job(const LedgerJob& taken) {
  const MutexLock lock(mutex_);
  std::uint16_t index = 0;
  while (index < format::kJobs && parts_.job(index).used.load() != 0) {
    ++index;
  }
  if (index < format::kJobs) {
    format::JobEntry& entry = parts_.job(index);
    entry.used.store(1);
    entry.dlq = taken.address.half == queue::Half::dlq ? 1 : 0;
    entry.name.assign(taken.facts.job);
    entry.queue.assign(taken.address.queue);
  }
  return index;
}

bool HostLedger::grow() {
  const std::uint32_t slots = parts_.head().slots.load();
  const std::uint32_t more = std::min(slots * 2, format::kSlotsAtMost);
  if (more == slots) {
    return false;
  }
  const std::size_t size = format::file_size(more);
  // The pages that are in use are mapped anew at the same addresses, to the same bytes.
  if (!is_whole() || allocate(descriptor_.get(), size) != 0 || !map(descriptor_.get(), parts_.base, size)) {
    return false;
  }
  parts_.head().slots.store(more);
  return true;
}

std::uint32_t HostLedger::take_block() {
  const MutexLock lock(mutex_);
  if (!free_blocks_.empty()) {
    const std::uint32_t first = free_blocks_.back();
    free_blocks_.pop_back();
    return first;
  }
  if (handed_out_ + kBlock > parts_.head().slots.load() && !grow()) {
    return format::kSlotsAtMost;
  }
  return std::exchange(handed_out_, handed_out_ + kBlock);
}

void HostLedger::give_back(const std::vector<std::uint16_t>& jobs, const std::vector<std::uint32_t>& blocks) {
  const MutexLock lock(mutex_);
  for (const std::uint32_t first : blocks) {
    for (std::uint32_t i = 0; i < kBlock; ++i) {
      parts_.slot(first + i).state.store(format::kFree);
    }
    free_blocks_.push_back(first);
  }
  for (const std::uint16_t index : jobs) {
    if (index < format::kJobs) {
      parts_.job(index).used.store(0);
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
  ledger_->parts_.head().unrecorded.fetch_add(held, std::memory_order_relaxed);
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
    ledger->parts_.head().unrecorded.fetch_add(static_cast<std::uint32_t>(change), std::memory_order_relaxed);
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
  slot.version = delivery.receipt.version;
  slot.locator = delivery.receipt.locator;
  slot.attempt = delivery.message.attempt;
  slot.id_size = static_cast<std::uint8_t>(id.size());
  std::memcpy(slot.id.data(), id.data(), id.size());
  slot.state.store(format::kHeld, std::memory_order_release);
  return held;
}

void JobSlots::ended(HeldSlot held, bool finished) noexcept {
  handler_returns(held);
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

void JobSlots::given_back(HeldSlot held) noexcept {
  std::uint32_t expected = format::kRunning;
  if (held != 0) {
    at(held).state.compare_exchange_strong(expected, format::kGone, std::memory_order_acq_rel);
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
  if (at(held).state.compare_exchange_strong(expected, format::kGone, std::memory_order_acq_rel) ||
      expected == format::kGone) {
    return;
  }
  at(held).state.store(format::kFree, std::memory_order_release);
  free_.push_back(held);
}

std::string LedgerContents::cause() const {
  if (crash) {
    return crash->summary();
  }
  return unclean_end ? "drained, but not clean: " + (unclean_end->why.empty() ? "nothing says why" : unclean_end->why)
                     : "nothing says why: killed, out of memory, or power lost";
}

Result<LedgerContents> read_ledger(const std::string& file) {
  const Descriptor opened = open_ledger(file, O_RDONLY);
  return opened.open() ? parse(file, opened.get()) : cannot_open(file, errno);
}

bool has_owner(const std::string& file) {
  const Descriptor opened = open_ledger(file, O_RDONLY);
  return opened.open() && ::flock(opened.get(), LOCK_SH | LOCK_NB) != 0;
}

Result<std::unique_ptr<OrphanLedger>> OrphanLedger::take(const std::string& file) {
  // For reading, so that whoever waits for ledgers to be closed by their writers is not woken by those who look.
  Descriptor opened = open_ledger(file, O_RDONLY);
  if (!opened.open()) {
    return errno == ENOENT ? Result<std::unique_ptr<OrphanLedger>>(std::unique_ptr<OrphanLedger>())
                           : cannot_open(file, errno);
  }
  // Between the open and the lock somebody else may have settled it, and given it another name.
  const bool owned = SLUICE_GUARD(ledger_owner_lock) && ::flock(opened.get(), LOCK_EX | LOCK_NB) != 0;
  if (owned || !is_file_at(file, opened.get())) {
    return std::unique_ptr<OrphanLedger>();
  }
  SLUICE_TRY(contents, parse(file, opened.get()));
  return std::unique_ptr<OrphanLedger>(new OrphanLedger(std::move(opened), std::move(*contents)));
}

Result<void> OrphanLedger::archive(const LedgerSettlement& settlement) {
  LedgerBytes bytes(descriptor_.get());
  const format::Parts before = bytes.parts();
  Descriptor writable = open_ledger(contents_.file, O_RDWR);
  // What was held moves together, so that the rest of the file can go.
  std::uint32_t kept = 0;
  std::uint32_t blamed = before.crash().slot;
  bool written = writable.open();
  for (std::uint32_t i = 0; i < before.head().slots.load(); ++i) {
    const format::Slot& slot = before.slot(i);
    if (slot.state.load() != format::kFree) {
      written = written && write_all(writable.get(), &slot, sizeof(slot), format::file_size(kept));
      ++kept;
      blamed = before.crash().slot == i + 1 ? kept : blamed;
    }
  }
  format::Settled settled;
  settled.time = settlement.time.time_since_epoch().count();
  settled.counts = static_cast<const format::SettledCounts&>(settlement);
  settled.by.assign(settlement.by);
  written = written && write_all(writable.get(), &settled, sizeof(settled), offsetof(format::Head, settled)) &&
            write_all(writable.get(), &blamed, sizeof(blamed), format::kCrashAt + offsetof(CrashRecord, slot)) &&
            write_all(writable.get(), &kept, sizeof(kept), offsetof(format::Head, slots)) &&
            ::ftruncate(writable.get(), static_cast<off_t>(format::file_size(kept))) == 0;
  writable.close();
  const std::string done = std::filesystem::path(contents_.file).replace_extension(".done").string();
  if (!written || ::rename(contents_.file.c_str(), done.c_str()) != 0) {
    return Error(ErrorCode::denied, "the crash ledger " + contents_.file + " cannot be kept: " + std::strerror(errno));
  }
  return {};
}

}  // namespace sluice::isolation
