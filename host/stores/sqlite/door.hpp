#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "host/queue/message.hpp"

namespace sluice::queue::sqlite {

/// A store's file, its log and the log's index by what they are, not by their names: no other files have these numbers
/// while a process has them open.
struct FileNumbers {
  std::uint64_t store = 0;
  std::uint64_t log = 0;
  std::uint64_t index = 0;
};

/// The file beside a store ("-door") at which its processes meet: writers queue at it in the kernel instead of looking
/// again and again, and senders ring there for those who wait for messages. It holds no data: one that is absent or
/// damaged costs time, never a message. Thread-safe, except for the turn, which one thread takes and gives back.
class Door {
 public:
  /// Opens it, and makes it where it is absent. Nothing where that is not possible.
  static std::unique_ptr<Door> open(const std::string& path);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // The turn to write. Who has just had it lets those go first who waited meanwhile, so that a process that writes
  // without a pause holds up nobody. The kernel gives back the turn of a process that is killed.

  /// Waits for as long as another process has it.
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
  /// Grows with each ring.
  std::uint32_t rings(std::size_t bell) const;
  void ring(std::size_t bell);
  /// Returns when there were more rings than `heard`, and now and then without a reason.
  void wait(std::size_t bell, std::uint32_t heard);

 private:
  struct Shared;

  Door(int file, Shared* shared) : file_(file), shared_(shared) {}
  bool lock(short kind, bool wait) const;
  bool is_locked(off_t first, off_t count) const;
  bool is_locked_but_for(off_t bytes, std::uint64_t file) const;

  const int file_;
  Shared* const shared_;
  // Of who takes turns: whether others waited during his last one, and which that was.
  bool lets_go_first_ = false;
  std::uint32_t last_turn_ = 0;
};

/// Has the turn, where there is a door, until it is given back or the scope ends.
class Turn {
 public:
  explicit Turn(Door* door) : door_(door) {
    if (door_ != nullptr) {
      door_->take_turn();
    }
  }
  ~Turn() { give_back(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  void give_back() {
    if (Door* door = std::exchange(door_, nullptr)) {
      door->give_turn_back();
    }
  }

 private:
  Door* door_;
};

}  // namespace sluice::queue::sqlite
