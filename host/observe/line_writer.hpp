#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace sluice::observe {

/// Writes lines to a descriptor on a thread of its own, so that nobody who has something to say waits for whoever reads
/// it. Thread-safe.
///
/// What is waiting is bounded: a line for which there is no room is refused. What cannot be written (a full disk, a
/// reader that has gone) is dropped.
class LineWriter {
 public:
  static constexpr std::size_t kRoom = std::size_t{1} << 20;
  /// How long destruction waits for a reader that has stalled.
  static constexpr Duration kLastWait = std::chrono::milliseconds(300);

  /// Does not own the descriptor, which outlives it. Throws std::system_error when no thread can be made.
  explicit LineWriter(int descriptor);
  /// Writes what is left as far as the reader takes it.
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  /// Never blocks. `lines` ends with a line break. False, and nothing of it will be written, when there is no room.
  bool put(std::string_view lines);
  /// Waits until everything put so far has been written or dropped; false when that takes longer than `limit`.
  bool flush(Duration limit);

 private:
  void run(const std::stop_token& stop);
  void write(std::string_view text, const std::stop_token& stop) const;

  // Fixed after construction.
  const int descriptor_;
  const std::size_t chunk_;  ///< as much as a pipe that is not full takes without blocking

  Mutex mutex_;
  Condition changed_;
  std::string waiting_ SLUICE_GUARDED_BY(mutex_);
  bool writing_ SLUICE_GUARDED_BY(mutex_) = false;
  // Last, so that it ends before what it uses.
  std::jthread thread_;
};

}  // namespace sluice::observe
