#include "host/stores/sqlite/door.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <ctime>

#include "base/guard.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kBells = 1'024;
constexpr mode_t kMode = 0600;

// The bytes of the file that are locked: by who has the turn to write, and shared by all that have the store open. Far
// behind what the file holds each of these says, by which byte it locks, what files it has.
constexpr off_t kTurnByte = 0;
constexpr off_t kOpenByte = 1;
constexpr off_t kFileNumbers = off_t{1} << 61;
constexpr off_t kLogBytes = kFileNumbers;
constexpr off_t kIndexBytes = 2 * kFileNumbers;
constexpr off_t kStoreBytes = 3 * kFileNumbers;

struct flock range_of(short kind, off_t byte, off_t count = 1) {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = count;
  return range;
}

/// Which of the bytes for such files is this one's.
off_t number_of(std::uint64_t file) { return static_cast<off_t>(file % static_cast<std::uint64_t>(kFileNumbers)); }

// A bell counts its rings in all bits but the lowest, which says that somebody waits: so a ring that nobody waits for
// calls no system. The count of turns is kept in the same way.
constexpr std::uint32_t kWaiting = 1;
constexpr std::uint32_t kRing = 2;

// Who lets others go first waits no longer for them: they may have been killed.
constexpr timespec kCourtesy{.tv_sec = 0, .tv_nsec = 2'000'000};

using Word = std::atomic<std::uint32_t>;
static_assert(sizeof(Word) == sizeof(std::uint32_t) && Word::is_always_lock_free);

void count(Word& word) {
  std::uint32_t before = word.load();
  while (!word.compare_exchange_weak(before, (before & ~kWaiting) + kRing)) {
  }
  if ((before & kWaiting) != 0) {
    ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }
}

/// Returns once it is not `seen` any more, at the latest after `limit`, and now and then without a reason.
void wait_for_change(Word& word, std::uint32_t seen, const timespec* limit) {
  std::uint32_t now = seen * kRing;
  if (word.compare_exchange_strong(now, now | kWaiting) || now == (seen * kRing | kWaiting)) {
    ::syscall(SYS_futex, &word, FUTEX_WAIT, seen * kRing | kWaiting, limit, nullptr, 0);
  }
}

}  // namespace

/// What the file holds, in the memory of all its processes.
struct Door::Shared {
  std::array<Word, kBells> bells;
  Word turns;   ///< counted as rings are
  Word wanted;  ///< 1: somebody waits for the turn
};

std::unique_ptr<Door> Door::open(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kMode);
  if (file < 0) {
    return nullptr;
  }
  struct stat status {};
  const bool long_enough =
      ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
      (status.st_size >= static_cast<off_t>(sizeof(Shared)) || ::posix_fallocate(file, 0, sizeof(Shared)) == 0);
  void* shared =
      long_enough ? ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0) : MAP_FAILED;
  if (shared == MAP_FAILED) {
    ::close(file);
    return nullptr;
  }
  return std::unique_ptr<Door>(new Door(file, static_cast<Shared*>(shared)));
}

Door::~Door() {
  ::munmap(shared_, sizeof(Shared));
  ::close(file_);
}

bool Door::lock(short kind, bool wait) const {
  struct flock range = range_of(kind, kTurnByte);
  int result = 0;
  do {
    result = ::fcntl(file_, wait ? F_OFD_SETLKW : F_OFD_SETLK, &range);
  } while (result != 0 && errno == EINTR);
  return result == 0;
}

void Door::take_turn() {
  if (std::exchange(lets_go_first_, false) && SLUICE_GUARD(writers_take_turns)) {
    wait_for_change(shared_->turns, last_turn_, &kCourtesy);
  }
  // Where the kernel refuses, SQLite's own lock still keeps writers apart.
  if (!lock(F_WRLCK, false)) {
    shared_->wanted = 1;
    lock(F_WRLCK, true);
  }
  count(shared_->turns);
}

void Door::give_turn_back() {
  last_turn_ = shared_->turns.load() / kRing;
  lets_go_first_ = shared_->wanted.exchange(0) != 0;
  lock(F_UNLCK, false);
}

void Door::stay(const FileNumbers& files) const {
  for (const off_t byte : {kOpenByte, kLogBytes + number_of(files.log), kIndexBytes + number_of(files.index),
                           kStoreBytes + number_of(files.store)}) {
    struct flock range = range_of(F_RDLCK, byte);
    static_cast<void>(::fcntl(file_, F_OFD_SETLK, &range));
  }
}

bool Door::is_locked(off_t first, off_t count) const {
  if (count == 0) {
    return false;  // to the kernel that is all there is behind it
  }
  struct flock range = range_of(F_WRLCK, first, count);
  return ::fcntl(file_, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

bool Door::others_stay() const { return is_locked(kOpenByte, 1); }

bool Door::is_locked_but_for(off_t bytes, std::uint64_t file) const {
  const off_t own = number_of(file);
  return is_locked(bytes, own) || is_locked(bytes + own + 1, kFileNumbers - own - 1);
}

bool Door::others_stay_with_other_store(std::uint64_t store) const { return is_locked_but_for(kStoreBytes, store); }

bool Door::others_stay_with_other_log(const FileNumbers& files) const {
  return is_locked_but_for(kLogBytes, files.log) || is_locked_but_for(kIndexBytes, files.index);
}

std::size_t Door::bell_of(const QueueAddress& address) const {
  std::uint32_t hash = address.half == Half::dlq ? 0x811C9DC4U : 0x811C9DC5U;
  for (const char c : address.queue) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193U;
  }
  return (hash ^ hash >> 16U) % kBells;
}

std::uint32_t Door::rings(std::size_t bell) const { return shared_->bells[bell].load() / kRing; }

void Door::ring(std::size_t bell) { count(shared_->bells[bell]); }

void Door::wait(std::size_t bell, std::uint32_t heard) { wait_for_change(shared_->bells[bell], heard, nullptr); }

}  // namespace sluice::queue::sqlite
