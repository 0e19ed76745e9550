#pragma once

#include <functional>
#include <optional>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/runtime/service.hpp"

namespace sluice::runtime {

/// Keeps the host's word on when it ends, whatever hangs: a store, a plugin's code, a lock, the log's reader. It
/// belongs to whoever takes signals. Thread-safe.
///
/// The end has last words (the drain certificate), said once: by the host itself when it comes to it in time, else by a
/// second thread of the watchdog's, which may hang in them too. Then the process is left without a destructor.
class Watchdog final : public Service {
 public:
  /// How long its last words may take: the process has ended by the time given plus this.
  static constexpr Duration kLastWordsTime = std::chrono::milliseconds(350);
  /// When nobody could say how the run ended.
  static constexpr int kUnknownStatus = 75;

  /// The process's exit code, and what says so.
  struct Ending {
    int status = kUnknownStatus;
    std::function<void()> say;
  };
  using LastWords = std::function<Ending()>;
  /// Ends the process with an exit code.
  using Leave = std::function<void(int status)>;

  explicit Watchdog(Leave leave);
  ~Watchdog() override;

  Result<void> start() override;
  void stop() override;

  /// What it says from now on when it has to.
  void set_last_words(LastWords words);
  /// The process is to have ended by then. A later time than one given before changes nothing.
  void end_by(SteadyTime time);

  /// To be called by whoever wants to say the last words. True once: the process's exit code is `status` from now on,
  /// also when it has to be left in the middle of what follows. False when the watchdog is at it; then everything must
  /// be left as it is until the process ends.
  bool begin_last_words(int status);

 private:
  void watch(const std::stop_token& stop);
  void speak(const std::stop_token& stop);

  // Fixed after construction.
  const Leave leave_;

  Mutex mutex_;
  // One for each thread: whoever hangs in a wait can hold up those who notify the same condition.
  Condition watched_;
  Condition spoken_to_;
  LastWords words_ SLUICE_GUARDED_BY(mutex_);
  SteadyTime end_ SLUICE_GUARDED_BY(mutex_) = SteadyTime::max();
  bool said_by_host_ SLUICE_GUARDED_BY(mutex_) = false;
  bool due_ SLUICE_GUARDED_BY(mutex_) = false;  ///< the watchdog says the last words
  bool said_ SLUICE_GUARDED_BY(mutex_) = false;
  std::optional<int> status_ SLUICE_GUARDED_BY(mutex_);
  // Last, so that they end before what they use.
  ServiceThread speaker_{"last-words"};
  ServiceThread watcher_{"watchdog"};
};

}  // namespace sluice::runtime
