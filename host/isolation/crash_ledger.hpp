#pragma once

#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "host/isolation/crash_handler.hpp"
#include "host/isolation/state_folder.hpp"
#include "host/queue/source.hpp"

/// The crash ledger's file: a head, a crash record, the jobs, and a slot for each message. Native byte order and
/// layout: a ledger is read on the machine that wrote it. A change of any of it is another kVersion; what is added to
/// the end of the head reads as zero in older files.
namespace sluice::isolation::format {

inline constexpr std::uint64_t kMagic = 0x3152474c65756c73;  // "slueLGR1"
inline constexpr std::uint32_t kVersion = 1;

inline constexpr std::size_t kJobs = 256;
inline constexpr std::uint32_t kSlotsAtFirst = 1024;
inline constexpr std::uint32_t kSlotsAtMost = 128 * 1024;
inline constexpr std::size_t kIdLimit = 100;

/// What became of the messages that a dead host held.
struct SettledCounts {
  std::uint32_t counted = 0;   ///< blamed: the attempt counts
  std::uint32_t suspects = 0;  ///< released, and to be run where they can hurt nobody
  std::uint32_t released = 0;
  std::uint32_t gone = 0;       ///< not that host's any more
  std::uint32_t finished = 0;   ///< removed: their handlers had come back with success
  std::uint32_t unsettled = 0;  ///< could not be told to their store; their leases run out
};

/// The same, written by who settled it.
struct Settled {
  std::int64_t time = 0;  ///< nanoseconds of the wall clock; 0: nobody has yet
  SettledCounts counts;
  FixedText<128> by;
};

struct Head {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t size;                ///< of everything before the slots
  std::atomic<std::uint32_t> slots;  ///< how many there are
  std::int32_t process;
  std::int64_t started;  ///< nanoseconds of the wall clock
  FixedText<256> host;
  FixedText<1024> config;
  Settled settled;
  // Later additions: zero in files that know nothing of them.
  FixedText<256> incarnation;             ///< as an owner of parts of queues
  std::atomic<std::uint32_t> unrecorded;  ///< how many messages are held that no slot tells of
  std::int64_t ended;                     ///< nanoseconds of the wall clock, where its drain was not clean; 0: not so
  FixedText<1024> why_unclean;
};

struct JobEntry {
  std::atomic<std::uint32_t> used;
  std::uint32_t dlq;  ///< 1: its queue's other half
  FixedText<160> name;
  FixedText<160> queue;
};

enum SlotState : std::uint32_t {
  kFree = 0,
  kHeld = 1,
  kRunning = 2,
  kGone = 3,  ///< runs, and is not ours any more
  kCommitting = 4,
  kCommittingAlone = 5,
  kFinished = 6,  ///< its handler has come back, and it is to be removed
};

/// Two cache lines, so that a write of power loss never tears one.
struct alignas(64) Slot {
  std::atomic<std::uint32_t> state;
  std::uint16_t job;
  std::uint8_t id_size;
  std::int64_t version;
  std::int64_t locator;
  std::uint32_t attempt;
  std::array<char, kIdLimit> id;
};
static_assert(sizeof(Slot) == 128);

inline constexpr std::size_t kPage = 4096;
constexpr std::size_t whole_pages(std::size_t size) { return (size + kPage - 1) / kPage * kPage; }

inline constexpr std::size_t kCrashAt = kPage;
inline constexpr std::size_t kJobsAt = kCrashAt + whole_pages(sizeof(CrashRecord));
inline constexpr std::size_t kSlotsAt = kJobsAt + whole_pages(kJobs * sizeof(JobEntry));
static_assert(sizeof(Head) <= kPage);

constexpr std::size_t file_size(std::uint32_t slots) { return kSlotsAt + std::size_t{slots} * sizeof(Slot); }

/// A ledger's parts, in memory where it begins at `base`.
struct Parts {
  char* base;

  Head& head() const { return at<Head>(0); }
  CrashRecord& crash() const { return at<CrashRecord>(kCrashAt); }
  JobEntry& job(std::size_t index) const { return at<JobEntry>(kJobsAt + index * sizeof(JobEntry)); }
  Slot& slot(std::size_t index) const { return at<Slot>(kSlotsAt + index * sizeof(Slot)); }

 private:
  template <typename Part>
  Part& at(std::size_t offset) const {
    return *reinterpret_cast<Part*>(base + offset);
  }
};

}  // namespace sluice::isolation::format

/// What this process holds and runs, in a file that outlives it.
namespace sluice::isolation {

/// Whether statements that a message's handler has staged are being committed, and whether with others'.
enum class Committing : std::uint8_t { no, together, alone };

/// A job's part of the crash ledger; this one keeps nothing. All methods are noexcept, make no system call
/// and take at most 100 ns together for one message. `started`, `together` and `left` are called by the worker that
/// runs the message, `ended` by whoever it has ended for, the others under the job's lock.
class JobLedger : boost::noncopyable {
 public:
  virtual ~JobLedger() = default;

  /// Claimed: ours from now on. `attempt` as Message::attempt.
  virtual HeldSlot hold(const queue::Delivery& /*delivery*/) noexcept { return 0; }
  /// An extension has changed the receipt.
  virtual void renew(HeldSlot /*slot*/, const queue::Receipt& /*receipt*/) noexcept {}
  /// The handler begins on this thread with the message of this id: a crash is blamed on it.
  virtual void started(HeldSlot /*slot*/, std::string_view /*id*/) noexcept {}
  /// What this thread has started and not ended is in one call: a crash is blamed on none of it alone.
  virtual void together() noexcept {}
  /// The handler has returned, and its message is at work elsewhere until `ended`.
  virtual void left() noexcept {}
  /// It has come back. `finished`: all that is left is to remove the message; whoever finds this ledger does that.
  virtual void ended(HeldSlot /*slot*/, bool /*finished*/) noexcept {}
  /// After `ended`: what ends the process from now on may be what is committed.
  virtual void committing(HeldSlot /*slot*/, Committing /*how*/) noexcept {}
  /// Settled while its handler has not come back: nobody needs to settle it, and `drop` follows when it has.
  virtual void given_back(HeldSlot /*slot*/) noexcept {}
  /// Settled or lost: not ours any more. The slot is void. Called once for each `hold`, also where that gave 0.
  virtual void drop(HeldSlot /*slot*/) noexcept {}
};

/// Whose ledger it is. A value.
struct LedgerOwner {
  std::string host;           ///< its name
  std::string config;         ///< the host file, absolute: which stores its queues lie in
  std::string incarnation{};  ///< as an owner of parts of queues; empty: it owns none
};

/// A job on one of its queues, as its part of the ledger names it.
struct LedgerJob {
  HandlerFacts facts;
  queue::QueueAddress address;
};

/// When in the life of its host a ledger is made.
enum class LedgerStart {
  first,  ///< before anything is held
  late,   ///< jobs may hold something already
};

class JobSlots;

/// The crash ledger of this process: a file in memory that the kernel keeps when the process is gone, locked for as
/// long as it lives: one whose lock can be had has no living owner. Thread-safe; shared by the host and its jobs. No
/// system call is made while messages pass, unless the file grows. It disappears with the object, unless it tells of a
/// crash or of an end that was not clean.
class HostLedger : boost::noncopyable {
 public:
  /// Makes a file in `folder` (made too, 0700). An Error that names cause and mend where that cannot be: the host goes
  /// on without. One that is made late says that it does not tell of everything, until `has_all_jobs`.
  static Result<std::shared_ptr<HostLedger>> create(const std::string& folder, const LedgerOwner& owner,
                                                    const Clock& clock, LedgerStart start = LedgerStart::first);
  ~HostLedger();

  /// Once, of a ledger that was made late: every job that holds something has its part.
  void has_all_jobs() { parts_.head().unrecorded.fetch_sub(1); }

  /// False: its file was removed, replaced or cut off: the next host will not know what is held.
  bool is_whole() const;

  /// The host ends itself, by a drain that left something behind.
  void note_unclean_end(WallTime now, std::string_view why) {
    parts_.head().why_unclean.assign(why);
    parts_.head().ended = now.time_since_epoch().count();
  }

  /// Where the crash handler writes.
  CrashRecord& crash_record() { return parts_.crash(); }

 private:
  friend class JobSlots;

  HostLedger(Descriptor descriptor, char* base, std::string file);
  /// The index of an entry that nobody used; kJobs when there is none.
  std::uint16_t take_job(const LedgerJob& job);
  /// The first of kBlock slots that nobody uses, growing the file when it must; kSlotsAtMost when there are none.
  std::uint32_t take_block();
  void give_back(const std::vector<std::uint16_t>& jobs, const std::vector<std::uint32_t>& blocks);
  bool grow() SLUICE_REQUIRES(mutex_);

  // Fixed after construction. The addresses stay what they are as the file grows.
  const Descriptor descriptor_;
  const format::Parts parts_;
  const std::string file_;
  FileMemory memory_;  ///< synchronises itself
  // Guarded by mutex_.
  Mutex mutex_;
  std::vector<std::uint32_t> free_blocks_ SLUICE_GUARDED_BY(mutex_);
  std::uint32_t handed_out_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< slots below have been in a block
};

/// A job's part of a host's ledger. Until `attach` there is none: it counts what is held, which stays without a slot
/// until it is dropped. Beyond format::kJobs entries, and where there is no room, it counts too, and tells no more of
/// what is held. It may outlive the host's pointer to the ledger; what it still holds in the end is left to its leases.
class JobSlots final : public JobLedger {
 public:
  /// One for each of the job's queues, in the order of a receipt's `part`.
  explicit JobSlots(std::vector<LedgerJob> queues) : queues_(std::move(queues)) {}
  ~JobSlots() override {
    if (ledger_) {
      ledger_->give_back(jobs_, blocks_);
      count_unrecorded(-unrecorded_);
    }
  }

  /// The ledger is there. Once, by any thread; how many messages are held at this moment.
  std::uint32_t attach(std::shared_ptr<HostLedger> ledger) SLUICE_EXCLUDES(mutex_);

  HeldSlot hold(const queue::Delivery& delivery) noexcept override;
  void renew(HeldSlot held, const queue::Receipt& receipt) noexcept override {
    if (held != 0) {
      at(held).version = receipt.version;
      at(held).locator = receipt.locator;
    }
  }
  void started(HeldSlot held, std::string_view id) noexcept override {
    if (held != 0) {
      at(held).state.store(format::kRunning, std::memory_order_release);
    }
    handler_begins({&queues_.front().facts, id, held});
  }
  void together() noexcept override { handler_begins({&queues_.front().facts, kOneOfABatch, kNoSlot}); }
  void left() noexcept override { handler_returns(); }
  void ended(HeldSlot slot, bool finished) noexcept override;
  void committing(HeldSlot slot, Committing how) noexcept override;
  void given_back(HeldSlot slot) noexcept override;
  void drop(HeldSlot slot) noexcept override;

 private:
  format::Slot& at(HeldSlot slot) { return live_.load(std::memory_order_relaxed)->parts_.slot(slot - 1); }
  void count_unrecorded(std::int32_t change) noexcept SLUICE_EXCLUDES(mutex_);
  bool take_block() noexcept;

  const std::vector<LedgerJob> queues_;
  // Synchronises itself. Of `ledger_`, once that is there: messages that pass need no lock.
  std::atomic<HostLedger*> live_{nullptr};
  Mutex mutex_;  ///< held while the ledger is attached, and while one counts that finds none
  // Fixed once it is attached.
  std::shared_ptr<HostLedger> ledger_;
  std::vector<std::uint16_t> jobs_;  ///< their entries; format::kJobs: it has none
  // Touched only under the job's lock, and by `attach`.
  std::vector<HeldSlot> free_;
  std::vector<std::uint32_t> blocks_;
  std::int32_t unrecorded_ = 0;  ///< held without a slot
};

// Crash ledgers as those see them who read them: the next host, and `sluice crashes`.

/// A message that a host held when it ended. A value.
struct HeldMessage {
  std::string job;
  queue::QueueAddress address;
  queue::Receipt receipt;
  std::uint32_t attempt = 0;
  bool running = false;   ///< its handler was at work
  bool blamed = false;    ///< the crash record names it
  bool finished = false;  ///< its handler had come back, and it was to be removed
  Committing committing = Committing::no;
};

/// What was done about the messages that a host left. A value.
struct LedgerSettlement : format::SettledCounts {
  WallTime time{};  ///< WallTime{}: nothing yet
  std::string by;   ///< the host that did it
};

/// How a host ended itself whose drain left something behind. A value.
struct UncleanEnd {
  WallTime time{};
  std::string why;
};

/// A value.
struct LedgerContents {
  std::string file;
  std::string host;
  std::string config;  ///< its host file
  std::int32_t process = 0;
  WallTime started{};
  std::string incarnation;          ///< as an owner of parts of queues; empty: it owned none
  std::vector<std::string> queues;  ///< that its jobs worked on
  bool complete = true;             ///< it held nothing that is not among `held`
  std::vector<HeldMessage> held;
  std::optional<CrashReport> crash;
  LedgerSettlement settlement;
  std::size_t given_back = 0;  ///< messages that it had settled itself before their handlers came back
  std::size_t unreadable = 0;  ///< slots that make no sense, and are passed over
  std::optional<UncleanEnd> unclean_end{};

  /// What ended the host, as far as anything says so.
  std::string cause() const;
};

/// Reads a ledger as it is at this moment, whoever has it. `corrupt` for a file that is none, is cut off, or comes from
/// another version of the format; `not_found` when it is gone.
Result<LedgerContents> read_ledger(const std::string& file);

/// True while a process lives that keeps this ledger, or settles it.
bool has_owner(const std::string& file);

/// A ledger without a living owner, locked: nobody else settles it meanwhile. A resource, of one thread.
class OrphanLedger : boost::noncopyable {
 public:
  /// Null when its owner lives, somebody else has it, or it is gone. Errors as read_ledger's.
  static Result<std::unique_ptr<OrphanLedger>> take(const std::string& file);

  const LedgerContents& contents() const { return contents_; }

  /// Notes what was done and gives the file the name under which it is history, without its empty room.
  Result<void> archive(const LedgerSettlement& settlement);
  /// For one that has nothing to tell.
  void remove() { ::unlink(contents_.file.c_str()); }

 private:
  OrphanLedger(Descriptor descriptor, LedgerContents contents)
      : descriptor_(std::move(descriptor)), contents_(std::move(contents)) {}

  const Descriptor descriptor_;
  LedgerContents contents_;
};

/// The folder of ledgers. Used by one thread at a time; a folder that is not there is empty.
class LedgerFolder {
 public:
  explicit LedgerFolder(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// Of hosts that live, and of those that nobody has settled yet; oldest first.
  std::vector<std::string> open_ledgers() const { return files_in(path_, ".ledger"); }
  /// Of hosts that ended in a crash and were settled; oldest first.
  std::vector<std::string> history() const { return files_in(path_, ".done"); }
  /// Keeps the newest of the history.
  void forget_all_but(std::size_t kept) const {
    const std::vector<std::string> done = history();
    for (std::size_t i = 0; i + kept < done.size(); ++i) {
      ::unlink(done[i].c_str());
    }
  }
  /// Gives a file that cannot be read a name that nobody looks for; the new name.
  std::string set_aside(const std::string& file) const {
    const std::string aside = file + ".unreadable";
    return ::rename(file.c_str(), aside.c_str()) == 0 ? aside : file;
  }

 private:
  std::string path_;
};

}  // namespace sluice::isolation
