#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "host/isolation/crash_ledger.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/runtime/service.hpp"
#include "host/work/job_tracing.hpp"
#include "host/work/service_thread.hpp"
#include "host/work/shared_flow.hpp"
#include "host/work/worker_batch.hpp"

namespace sluice::work {

/// A suspect's lane ends when nothing has come to it for so long.
inline constexpr Duration kLaneIdle = std::chrono::seconds(30);

/// An instance of the job's handler for one worker, and where it runs.
struct WorkerInstance {
  std::shared_ptr<plugin::HandlerInstance> handler;
  bool isolated = false;  ///< in a process of its own
};

/// The threads that run handlers, one attempt each at a time: the workers that it begins with, those that take the
/// place of lost ones, and lanes for suspects, as the flow asks for them. A worker destroys its instance when it ends.
class WorkerPool final : public runtime::Service {
 public:
  struct Settings {
    std::vector<std::string> queues;  ///< by the part of their source
    std::uint32_t max_attempts = 0;   ///< shown to handlers; 0: no limit
    Duration timeout{};               ///< of an attempt; zero: none
    JobTracing* tracing = nullptr;    ///< null: nothing is traced; outlives the pool
    /// As queue::Source::holds, asked before each start; may be empty.
    std::function<bool(std::uint32_t)> holds{};
  };
  /// Makes what a thread that comes later works with; called on that thread.
  using MakeInstance = std::function<Result<WorkerInstance>(SeatKind kind)>;

  /// As many workers as there are `instances`; two share a handler only if it is concurrent. `crash_ledger` may be
  /// null.
  WorkerPool(SharedFlow& flow, Settings settings, std::vector<WorkerInstance> instances, MakeInstance make_instance,
             isolation::JobLedger* crash_ledger);

  ~WorkerPool() override;

  Result<void> start() override;
  void stop() override;
  /// Stops the workers whose handler has returned, waiting until `time`; the others end when theirs does.
  void stop_idle_until(SteadyTime time);
  /// Threads that have not come to their end.
  std::uint32_t running();

 private:
  struct Worker {
    Worker(const Clock& clock, Duration timeout, SeatKind its_kind, std::string name)
        : batch(clock, timeout), kind(its_kind), thread(std::move(name)) {}
    WorkerBatch batch;
    const SeatKind kind;
    WorkerInstance instance;
    ServiceThread thread;
  };

  void hire(SeatKind kind);
  Result<void> make(SeatKind kind, WorkerInstance instance) SLUICE_EXCLUDES(mutex_);
  std::vector<Worker*> all() SLUICE_EXCLUDES(mutex_);
  void run(Worker& worker, const std::stop_token& stop);
  bool equip(Worker& worker);
  bool await_work(const Worker& worker, const std::stop_token& stop);
  void work_off(Worker& worker);

  // Fixed after construction.
  SharedFlow& flow_;
  const Settings settings_;
  const MakeInstance make_instance_;
  isolation::JobLedger* const crash_ledger_;

  Mutex mutex_;
  bool stopping_ SLUICE_GUARDED_BY(mutex_) = false;
  std::uint32_t next_number_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::vector<WorkerInstance> first_ SLUICE_GUARDED_BY(mutex_);
  std::list<Worker> workers_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::work
