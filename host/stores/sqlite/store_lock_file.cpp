#include "host/stores/sqlite/store_lock_file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <system_error>
#include <utility>

#include "base/bell.hpp"
#include "base/guard.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kBells = 1'024;
constexpr std::size_t kTurnBell = kBells;  // for who waits for the turn
constexpr mode_t kMode = 0600;

// The bytes of the file that are locked: by who has the turn to write, shared by all that have the store open, and by
// who has the next turn. Far behind what the file holds all that have it open say, by which byte they lock, what files
// they have.
constexpr off_t kTurnByte = 0;
constexpr off_t kOpenByte = 1;
constexpr off_t kNextByte = 2;
constexpr off_t kFileNumbers = off_t{1} << 61;
constexpr off_t kLogBytes = kFileNumbers;
constexpr off_t kIndexBytes = 2 * kFileNumbers;
constexpr off_t kStoreBytes = 3 * kFileNumbers;

// Who waits for the turn is told when it is given back, but not by a process that is killed; and where the system does
// not tell. Then it looks so often.
constexpr Duration kLookAnyway = std::chrono::milliseconds(5);
constexpr Duration kLookUntold = std::chrono::microseconds(200);
// A turn is not waited for longer: who has it, or the next one, may be stopped. SQLite's own lock keeps writers apart.
constexpr Duration kTurnPatience = std::chrono::milliseconds(200);
// Where the system does not tell of rings, they are looked for so often.
constexpr int kPollMs = 100;

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

/// What tells of writes to the file, for as long as it is open; none where the system does not.
Descriptor watch_on(int file) {
  Descriptor watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  // By its descriptor: the name may lead elsewhere by now.
  const bool told = ::inotify_add_watch(watch.get(), path_of(file).c_str(), IN_MODIFY) >= 0;
  return told ? std::move(watch) : Descriptor();
}

/// What it has told so far is known; that something was written is all that it says.
void clear(int watch) {
  std::array<char, 4'096> events;
  while (watch >= 0 && ::read(watch, events.data(), events.size()) > 0) {
  }
}

off_t place_of(std::size_t bell) { return static_cast<off_t>(bell * sizeof(std::uint64_t)); }

}  // namespace

/// Tells those who wait for rings of other processes. A resource.
class StoreLockFile::Listener {
 public:
  explicit Listener(const StoreLockFile& lock_file) : watch_(watch_on(lock_file.file_.get())) {
    if (wake_.descriptor() >= 0) {
      thread_.emplace([this](const std::stop_token& stop) { listen(stop); });
    }
  }
  ~Listener() {
    if (thread_) {
      thread_->request_stop();
      wake_.ring();
      thread_.reset();
    }
  }

  Doorbell::Subscription add(std::function<void()> look) {
    auto subscription = lookers_.subscribe({}, std::move(look));
    // What rang before it stood in the list was told to nobody.
    wake_.ring();
    return subscription;
  }

 private:
  void listen(const std::stop_token& stop) {
    std::array<pollfd, 2> files{pollfd{wake_.descriptor(), POLLIN, 0}, pollfd{watch_.get(), POLLIN, 0}};
    while (!stop.stop_requested()) {
      ::poll(files.data(), files.size(), watch_.open() ? -1 : kPollMs);
      wake_.hush();
      clear(watch_.get());
      lookers_.ring_here({});
    }
  }

  const Descriptor watch_;
  const Bell wake_;
  Doorbell lookers_;  ///< all under one address
  std::optional<StoreThread> thread_;
};

std::unique_ptr<StoreLockFile> StoreLockFile::open(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, kMode));
  struct stat status {};
  if (!file.open() || ::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return nullptr;
  }
  return std::unique_ptr<StoreLockFile>(new StoreLockFile(std::move(file)));
}

StoreLockFile::StoreLockFile(Descriptor file) : file_(std::move(file)) {}

StoreLockFile::~StoreLockFile() = default;

bool StoreLockFile::lock(short kind, off_t byte) const {
  struct flock range = range_of(kind, byte);
  return ::fcntl(file_.get(), F_OFD_SETLK, &range) == 0;
}

/// Whether it was `done` before the time was over.
template <typename Done>
bool StoreLockFile::look_until(Duration patience, Done done) {
  if (!turns_) {
    turns_ = watch_on(file_.get());
  }
  const SteadyTime limit = machine_after(patience);
  while (true) {
    clear(turns_->get());
    if (done()) {
      return true;
    }
    const Duration left = std::min<Duration>(limit - machine_now(), turns_->open() ? kLookAnyway : kLookUntold);
    if (left <= Duration::zero()) {
      return false;
    }
    const timespec time{.tv_sec = 0, .tv_nsec = left.count()};
    pollfd file{turns_->get(), POLLIN, 0};
    ::ppoll(&file, 1, &time, nullptr);
  }
}

void StoreLockFile::take_turn() {
  const auto taken = [this] {
    return (lock(F_WRLCK, kNextByte) || !SLUICE_GUARD(writers_take_turns)) && lock(F_WRLCK, kTurnByte);
  };
  const bool at_once = taken();
  stalled_ = !at_once && (stalled_ || !look_until(kTurnPatience, taken));
  lock(F_UNLCK, kNextByte);
  if (!at_once) {
    ring(kTurnBell);
  }
}

void StoreLockFile::give_turn_back() {
  lock(F_UNLCK, kTurnByte);
  if (is_locked(kNextByte, 1)) {
    ring(kTurnBell);
  }
}

void StoreLockFile::stay(const FileNumbers& files) const {
  for (const off_t byte : {kOpenByte, kLogBytes + number_of(files.log), kIndexBytes + number_of(files.index),
                           kStoreBytes + number_of(files.store)}) {
    lock(F_RDLCK, byte);
  }
}

bool StoreLockFile::is_locked(off_t first, off_t count) const {
  if (count == 0) {
    return false;  // to the kernel that is all there is behind it
  }
  struct flock range = range_of(F_WRLCK, first, count);
  return ::fcntl(file_.get(), F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK;
}

bool StoreLockFile::others_stay() const { return is_locked(kOpenByte, 1); }

bool StoreLockFile::is_locked_but_for(off_t bytes, std::uint64_t file) const {
  const off_t own = number_of(file);
  return is_locked(bytes, own) || is_locked(bytes + own + 1, kFileNumbers - own - 1);
}

bool StoreLockFile::others_stay_with_other_store(std::uint64_t store) const {
  return is_locked_but_for(kStoreBytes, store);
}

bool StoreLockFile::others_stay_with_other_log(const FileNumbers& files) const {
  return is_locked_but_for(kLogBytes, files.log) || is_locked_but_for(kIndexBytes, files.index);
}

std::size_t StoreLockFile::bell_of(const QueueAddress& address) const {
  // All builds that share a file ring the same ones.
  std::uint32_t hash = address.half == Half::dlq ? 0x811C9DC4U : 0x811C9DC5U;
  for (const char c : address.queue) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x01000193U;
  }
  return (hash ^ hash >> 16U) % kBells;
}

std::uint64_t StoreLockFile::rings(std::size_t bell) const {
  std::uint64_t rings = 0;
  return ::pread(file_.get(), &rings, sizeof rings, place_of(bell)) == sizeof rings ? rings : 0;
}

void StoreLockFile::ring(std::size_t bell) const {
  // Two that ring at once need not count: it has to be another number than any that was heard before.
  const std::uint64_t next =
      std::max(rings(bell) + 1, static_cast<std::uint64_t>(machine_now().time_since_epoch().count()));
  static_cast<void>(::pwrite(file_.get(), &next, sizeof next, place_of(bell)) == sizeof next);
}

Doorbell::Subscription StoreLockFile::listen(std::function<void()> look) {
  std::call_once(listening_, [this] { listener_ = std::make_unique<Listener>(*this); });
  return listener_->add(std::move(look));
}

BellWatch::BellWatch(StoreLockFile* lock_file, const QueueAddress& address, std::function<void()> on_ready)
    : lock_file_(lock_file),
      bell_(lock_file == nullptr ? 0 : lock_file->bell_of(address)),
      on_ready_(std::move(on_ready)) {
  {
    const MutexLock lock(mutex_);
    heard_ = lock_file_ == nullptr ? 0 : lock_file_->rings(bell_);
  }
  if (lock_file_ != nullptr) {
    try {
      listening_ = lock_file_->listen([this] { look(); });
    } catch (const std::system_error&) {
      // Without another thread the job finds by polling what comes from elsewhere.
    }
  }
}

std::uint64_t BellWatch::heard() const {
  if (lock_file_ != nullptr) {
    return lock_file_->rings(bell_);
  }
  const MutexLock lock(mutex_);
  return rung_here_;
}

void BellWatch::arm(std::uint64_t heard) {
  {
    const MutexLock lock(mutex_);
    armed_ = true;
    heard_ = heard;
  }
  if (this->heard() != heard) {
    ring();
  }
}

void BellWatch::ring() {
  {
    const MutexLock lock(mutex_);
    ++rung_here_;
    if (!std::exchange(armed_, false)) {
      return;
    }
  }
  on_ready_();
}

void BellWatch::look() {
  {
    const MutexLock lock(mutex_);
    if (!armed_ || lock_file_->rings(bell_) == heard_) {
      return;
    }
  }
  ring();
}

}  // namespace sluice::queue::sqlite
