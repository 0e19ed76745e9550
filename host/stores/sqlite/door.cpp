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

// The bytes of the file that are locked: by who has the turn to write, and shared by all that have the store open.
constexpr off_t kTurnByte = 0;
constexpr off_t kOpenByte = 1;

struct flock range_of(short kind, off_t byte) {
  struct flock range {};
  range.l_type = kind;
  range.l_whence = SEEK_SET;
  range.l_start = byte;
  range.l_len = 1;
  return range;
}

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

void Door::stay() const {
  struct flock range = range_of(F_RDLCK, kOpenByte);
  static_cast<void>(::fcntl(file_, F_OFD_SETLK, &range));
}

bool Door::others_stay() const {
  struct flock range = range_of(F_WRLCK, kOpenByte);
  return ::fcntl(file_, F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
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
