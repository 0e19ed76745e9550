#pragma once

#include <sys/types.h>

#include <boost/core/noncopyable.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/message.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

/// A store's file, its log and the log's index by what they are, not by their names: no other files have these numbers
/// while a process has them open.
struct FileNumbers {
  std::uint64_t store = 0;
  std::uint64_t log = 0;
  std::uint64_t index = 0;
};

/// The file beside a store ("-door") at which its processes meet: writers take turns there, senders ring for those who
/// wait for messages, and everybody says which files he has open. It holds no data, and is not mapped, so that whatever
/// becomes of its content costs time, never a message or a process. Thread-safe, except for the turn, which one thread
/// takes and gives back.
class StoreLockFile {
 public:
  /// Opens it, and makes it where it is absent. Nothing where that is not possible.
  static std::unique_ptr<StoreLockFile> open(const std::string& path);
  ~StoreLockFile();

  // The turn to write. Who waits for it has the next one, and keeps it from all who come later, so that a process that
  // writes without a pause holds up nobody. The kernel gives back both of a process that is killed. SQLite's own lock
  // keeps writers apart whatever becomes of turns.

  /// Waits while another process has it, but not for one that keeps it.
  void take_turn();
  void give_turn_back();

  /// Says, until the door is destroyed, that the store is open here, and with which files.
  void stay(const FileNumbers& files) const;
  /// Whether it is open elsewhere.
  bool others_stay() const;
  /// Whether it is open elsewhere with another file than this one, which is at the store's path now.
  bool others_stay_with_other_store(std::uint64_t store) const;
  /// Whether it is open elsewhere with another log, or another index of it, than these.
  bool others_stay_with_other_log(const FileNumbers& files) const;

  /// Where a half is rung for. Several may share one.
  std::size_t bell_of(const QueueAddress& address) const;
  /// Another number after each ring.
  std::uint64_t rings(std::size_t bell) const;
  void ring(std::size_t bell) const;
  /// As long as that lives `look` is called, by one thread for all, when somebody may have rung. Throws
  /// std::system_error where that thread cannot be made.
  Doorbell::Subscription listen(std::function<void()> look);

 private:
  class Listener;

  explicit StoreLockFile(Descriptor file);
  bool lock(short kind, off_t byte) const;
  template <typename Done>
  bool look_until(Duration patience, Done done);
  bool is_locked(off_t first, off_t count) const;
  bool is_locked_but_for(off_t bytes, std::uint64_t file) const;

  const Descriptor file_;
  std::once_flag listening_;
  std::unique_ptr<Listener> listener_;
  // Of who takes turns: what tells of others, once he had to wait; and whether somebody keeps a turn.
  std::optional<Descriptor> turns_;
  bool stalled_ = false;
};

/// Has the turn, where there is a door, until it is given back or the scope ends.
class Turn : boost::noncopyable {
 public:
  explicit Turn(StoreLockFile* lock_file) : lock_file_(lock_file) {
    if (lock_file_ != nullptr) {
      lock_file_->take_turn();
    }
  }
  ~Turn() { give_back(); }

  void give_back() {
    if (StoreLockFile* lock_file = std::exchange(lock_file_, nullptr)) {
      lock_file->give_turn_back();
    }
  }

 private:
  StoreLockFile* lock_file_;
};

/// Wakes a job when its half has been rung for: at most once between two claims, and not at all while it claims anyway.
///
/// A claim that found less than it asked for arms the watch. Rings of other processes are waited for by a thread of the
/// door's; where that cannot be made, only those of this process are heard.
class BellWatch {
 public:
  /// `door` may be null. `on_ready` is called from any thread, with no lock held.
  BellWatch(StoreLockFile* lock_file, const QueueAddress& address, std::function<void()> on_ready);
  /// Waits for a call under way. Nothing is called afterwards.
  ~BellWatch() = default;

  /// How often it has rung; before a claim.
  std::uint64_t heard() const;
  /// After a claim that left nothing. Calls `on_ready` at once if it has rung since `heard`.
  void arm(std::uint64_t heard);
  /// It has rung in this process.
  void ring();

 private:
  void look();

  // Fixed after construction.
  StoreLockFile* const lock_file_;
  const std::size_t bell_;
  const std::function<void()> on_ready_;

  mutable Mutex mutex_;
  // Guarded by mutex_.
  bool armed_ SLUICE_GUARDED_BY(mutex_) = true;
  std::uint64_t heard_ SLUICE_GUARDED_BY(mutex_) = 0;      ///< before the claim that armed it
  std::uint64_t rung_here_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< counted where there is no door

  Doorbell::Subscription listening_;  ///< the first to go
};

}  // namespace sluice::queue::sqlite
