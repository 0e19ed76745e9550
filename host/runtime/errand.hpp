#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "base/mutex.hpp"
#include "host/runtime/service.hpp"

namespace sluice::runtime {

/// One piece of work at a time for a thread of its own: all that runs code of plugins or waits for disks, so that the
/// main thread goes on taking signals meanwhile. Used by the main thread.
class Errand final : public Service {
 public:
  /// What is left to do on the main thread once the work is done.
  using Rest = std::function<void()>;
  using Work = std::function<Rest()>;

  /// `done` is called on the errand's thread when there is something to take.
  explicit Errand(std::function<void()> done) : done_(std::move(done)) {}
  ~Errand() override;

  Result<void> start() override;
  /// Waits for the work under way.
  void stop() override;

  /// Not while one is under way.
  void send(Work work);
  /// For the work: waits so long, or until a stop was asked for, which it tells by false.
  bool wait_for(Duration span);
  /// From `send` until its rest has been taken.
  bool under_way() const;
  /// The rest of the work that has ended, once; nothing otherwise.
  std::optional<Rest> take();

 private:
  void run(const std::stop_token& stop);

  // Fixed after construction.
  const std::function<void()> done_;

  mutable Mutex mutex_;
  Condition changed_;
  std::optional<Work> work_ SLUICE_GUARDED_BY(mutex_);
  std::optional<Rest> rest_ SLUICE_GUARDED_BY(mutex_);
  bool under_way_ SLUICE_GUARDED_BY(mutex_) = false;
  Mutex stopping_;  ///< held while joining, so that every stop() returns only once the thread has ended
  // Last, so that it ends before what it uses.
  std::jthread thread_;
};

}  // namespace sluice::runtime
