#include "host/isolation/ledger_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/guard.hpp"
#include "base/text/utf8.hpp"

namespace sluice::isolation {
namespace {

constexpr std::size_t kMoreThanAnyLedger = format::file_size(format::kSlotsAtMost) + 1;

/// The file's bytes, aligned as the structs in them want it.
class LedgerBytes {
 public:
  explicit LedgerBytes(int descriptor) {
    struct stat status {};
    if (::fstat(descriptor, &status) != 0) {
      return;
    }
    const std::size_t size = std::min<std::size_t>(static_cast<std::size_t>(status.st_size), kMoreThanAnyLedger);
    lines_.resize(size / sizeof(Line) + 1);
    while (size_ < size) {
      const ssize_t got = ::pread(descriptor, bytes() + size_, size - size_, static_cast<off_t>(size_));
      if (got <= 0) {
        break;
      }
      size_ += static_cast<std::size_t>(got);
    }
  }

  std::size_t size() const { return size_; }
  const format::Head& head() const { return at<format::Head>(0); }
  const CrashRecord& crash() const { return at<CrashRecord>(format::kCrashAt); }
  const format::JobEntry& job(std::size_t index) const {
    return at<format::JobEntry>(format::kJobsAt + index * sizeof(format::JobEntry));
  }
  const format::Slot& slot(std::size_t index) const {
    return at<format::Slot>(format::kSlotsAt + index * sizeof(format::Slot));
  }

 private:
  struct alignas(64) Line {
    std::array<char, 128> bytes;
  };
  char* bytes() { return reinterpret_cast<char*>(lines_.data()); }
  const char* bytes() const { return reinterpret_cast<const char*>(lines_.data()); }
  template <typename T>
  const T& at(std::size_t offset) const {
    return *reinterpret_cast<const T*>(bytes() + offset);
  }

  std::vector<Line> lines_;
  std::size_t size_ = 0;
};

std::string clean(std::string_view text) { return clean_utf8(text, text.size() * 3); }

Error unusable(const std::string& file, const std::string& why) {
  return Error(ErrorCode::corrupt, "the crash ledger " + file + " " + why);
}

/// Nothing for a slot that is free or makes no sense; which of the two, `unreadable` counts.
std::optional<HeldMessage> read_slot(const LedgerBytes& bytes, std::size_t index, std::size_t& unreadable) {
  const format::Slot& slot = bytes.slot(index);
  const std::uint32_t state = slot.state.load();
  if (state == format::kFree || state == format::kGone) {
    return std::nullopt;
  }
  if (state > format::kFinished || slot.job >= format::kJobs || slot.id_size == 0 || slot.id_size > format::kIdLimit) {
    ++unreadable;
    return std::nullopt;
  }
  const format::JobEntry& job = bytes.job(slot.job);
  HeldMessage held;
  held.job = clean(job.name.view());
  held.address = {std::string(job.queue.view()), job.dlq != 0 ? queue::Half::dlq : queue::Half::standard};
  held.receipt = {std::string(slot.id.data(), slot.id_size), slot.version, slot.locator};
  held.attempt = slot.attempt;
  held.suspect = slot.suspect != 0;
  held.running = state == format::kRunning;
  held.finished = state == format::kFinished;
  held.committing = state == format::kCommittingAlone ? Committing::alone
                    : state == format::kCommitting    ? Committing::together
                                                      : Committing::no;
  return held;
}

std::vector<std::string> queues_of(const LedgerBytes& bytes) {
  std::set<std::string> queues;
  for (std::size_t i = 0; i < format::kJobs; ++i) {
    if (const format::JobEntry& job = bytes.job(i); job.used.load() != 0) {
      queues.emplace(job.queue.view());
    }
  }
  return {queues.begin(), queues.end()};
}

Result<LedgerContents> parse(const std::string& file, const LedgerBytes& bytes) {
  if (bytes.size() < sizeof(format::Head) || bytes.head().magic != format::kMagic) {
    return unusable(file, "is no ledger, or was never finished");
  }
  const format::Head& head = bytes.head();
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
  contents.host = clean(head.host.view());
  contents.config = head.config.view();
  contents.process = head.process;
  contents.started = WallTime(Duration(head.started));
  contents.incarnation = head.incarnation.view();
  contents.queues = queues_of(bytes);
  contents.settlement = {head.settled.counts, WallTime(Duration(head.settled.time)), clean(head.settled.by.view())};
  contents.crash = read_crash(bytes.crash());
  const bool blames = contents.crash && contents.crash->blamed;
  for (std::uint32_t i = 0; i < slots; ++i) {
    if (auto held = read_slot(bytes, i, contents.unreadable)) {
      held->blamed = blames && contents.crash->slot == i + 1 && bytes.crash().message.view() == held->receipt.id;
      contents.held.push_back(*std::move(held));
    }
  }
  contents.complete = head.unrecorded.load() == 0 && contents.unreadable == 0;
  return contents;
}

int open_ledger(const std::string& file, int flags) {
  return ::open(file.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

Error cannot_open(const std::string& file, int code) {
  return Error(code == ENOENT ? ErrorCode::not_found : ErrorCode::denied,
               "the crash ledger " + file + " cannot be opened: " + std::strerror(code));
}

bool write_all(int descriptor, const void* data, std::size_t size, std::size_t offset) {
  return ::pwrite(descriptor, data, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
}

}  // namespace

Result<LedgerContents> read_ledger(const std::string& file) {
  const int descriptor = open_ledger(file, O_RDONLY);
  if (descriptor < 0) {
    return cannot_open(file, errno);
  }
  const LedgerBytes bytes(descriptor);
  ::close(descriptor);
  return parse(file, bytes);
}

bool has_owner(const std::string& file) {
  const int descriptor = open_ledger(file, O_RDONLY);
  const bool owned = descriptor >= 0 && ::flock(descriptor, LOCK_SH | LOCK_NB) != 0;
  if (descriptor >= 0) {
    ::close(descriptor);
  }
  return owned;
}

Result<std::unique_ptr<OrphanLedger>> OrphanLedger::take(const std::string& file) {
  // For reading, so that whoever waits for ledgers to be closed by their writers is not woken by those who look.
  const int descriptor = open_ledger(file, O_RDONLY);
  if (descriptor < 0 && errno == ENOENT) {
    return std::unique_ptr<OrphanLedger>();
  }
  if (descriptor < 0) {
    return cannot_open(file, errno);
  }
  // Between the open and the lock somebody else may have settled it, and given it another name.
  const bool owned = SLUICE_GUARD(ledger_owner_lock) && ::flock(descriptor, LOCK_EX | LOCK_NB) != 0;
  if (owned || !is_file_at(file, descriptor)) {
    ::close(descriptor);
    return std::unique_ptr<OrphanLedger>();
  }
  auto contents = parse(file, LedgerBytes(descriptor));
  if (!contents) {
    ::close(descriptor);
    return contents.error();
  }
  return std::unique_ptr<OrphanLedger>(new OrphanLedger(descriptor, std::move(*contents)));
}

Result<void> OrphanLedger::archive(const LedgerSettlement& settlement) {
  const LedgerBytes before(descriptor_);
  const int writable = open_ledger(contents_.file, O_RDWR);
  // What was held moves together, so that the rest of the file can go.
  std::uint32_t kept = 0;
  bool written = writable >= 0;
  for (std::uint32_t i = 0; i < before.head().slots.load(); ++i) {
    const format::Slot& slot = before.slot(i);
    if (const std::uint32_t state = slot.state.load(); state != format::kFree && state != format::kGone) {
      written = written && write_all(writable, &slot, sizeof(slot), format::file_size(kept));
      ++kept;
    }
  }
  format::Settled settled;
  settled.time = settlement.time.time_since_epoch().count();
  settled.counts = static_cast<const format::SettledCounts&>(settlement);
  settled.by.assign(settlement.by);
  written = written && write_all(writable, &settled, sizeof(settled), offsetof(format::Head, settled)) &&
            write_all(writable, &kept, sizeof(kept), offsetof(format::Head, slots)) &&
            ::ftruncate(writable, static_cast<off_t>(format::file_size(kept))) == 0;
  const int code = errno;
  if (writable >= 0) {
    ::close(writable);
  }
  if (!written) {
    return Error(ErrorCode::denied, "the crash ledger " + contents_.file + " cannot be kept: " + std::strerror(code));
  }
  const std::string done = std::filesystem::path(contents_.file).replace_extension(".done").string();
  if (::rename(contents_.file.c_str(), done.c_str()) != 0) {
    return Error(ErrorCode::denied, "the crash ledger " + contents_.file + " cannot be kept: " + std::strerror(errno));
  }
  return {};
}

}  // namespace sluice::isolation
