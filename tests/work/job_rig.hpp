#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/observe/log.hpp"
#include "host/observe/metrics.hpp"
#include "host/work/job.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::work {

/// How long a test waits for something that should come at once, before it fails.
inline constexpr Duration kPatience = std::chrono::seconds(20);

/// A door that threads wait at until a test opens it. Thread-safe.
class Gate {
 public:
  void open();
  void pass();
  /// Waits until `count` threads have come to the door; false when they do not come.
  bool await_arrivals(int count);

 private:
  Mutex mutex_;
  Condition changed_;
  bool open_ SLUICE_GUARDED_BY(mutex_) = false;
  int arrivals_ SLUICE_GUARDED_BY(mutex_) = 0;
};

/// What the scripted handler does, found by the job's name. `handle` gets the message's id and the ABI's context.
struct Script {
  std::function<sluice_status(const std::string& id, const sluice_context& context)> handle;
  std::function<bool(const std::string& job, int instance)> create;  ///< absent: succeeds
  bool concurrent = true;

  // What happened; guarded by a lock of the rig.
  struct Record {
    int instances = 0;
    int destroyed = 0;
    int most_in_one_instance = 0;
    std::map<std::string, int> started;
    std::set<std::string> finished;
  };
};

/// Counts like the host's metrics.
class CountingMetrics final : public observe::JobMetrics {
 public:
  void add(const observe::JobCounts& counts) override;
  void workers(std::uint64_t configured, std::uint64_t stuck) override;

  std::uint64_t count(const std::string& name) const;
  /// Waits until `condition`, looking whenever something was counted and every few milliseconds; false: it never held.
  bool await(const std::function<bool()>& condition);

 private:
  mutable Mutex mutex_;
  Condition changed_;
  std::uint64_t changes_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::map<std::string, std::uint64_t> counts_ SLUICE_GUARDED_BY(mutex_);
};

/// A job on SimQueues with a scripted handler that goes through the real C table, on the machine's clock.
class JobRig {
 public:
  explicit JobRig(Script script, const std::function<void(JobSpec&)>& adapt = {});
  /// On another source, which stands before or instead of that of `sim`.
  using MakeSource = std::function<std::unique_ptr<queue::Source>(std::unique_ptr<queue::Source> simulated)>;
  JobRig(Script script, const MakeSource& make_source, const std::function<void(JobSpec&)>& adapt = {});
  ~JobRig();

  void send(const std::vector<std::string>& ids, Duration delay = {});
  void send_many(int count);
  /// Waits until the ledger satisfies it; false when it does not in time.
  bool await(const std::function<bool(const LedgerSnapshot&)>& condition);
  bool await_that(const std::function<bool()>& condition) { return metrics.await(condition); }
  Deadline in(Duration span) const { return Deadline::after(clock, span); }
  queue::QueueStats stats(queue::Half half = queue::Half::standard);
  Script::Record record() const;

  SystemClock clock;
  SeededRandom random{42};
  test::SimQueues sim{clock, random};
  test::Desk desk{sim};
  observe::Log log{observe::LogLevel::off, observe::LogFormat::text};
  CountingMetrics metrics;
  std::atomic<int> keys_asked{0};  ///< how often the store was asked for idempotency keys by themselves
  Script script;
  std::unique_ptr<Job> job;
  std::string error;  ///< why there is no job

  /// The table that the job was made with, and the specification as `adapt` left it.
  const sluice_handler& table() const { return table_; }
  JobSpec spec() const { return spec_; }
  /// A source of the job's queue.
  std::unique_ptr<queue::Source> open_source();

 private:
  friend struct RigTable;
  void make(const MakeSource& make_source, const std::function<void(JobSpec&)>& adapt);

  mutable Mutex mutex_;
  Script::Record record_ SLUICE_GUARDED_BY(mutex_);
  sluice_handler table_{};
  JobSpec spec_;
};

inline sluice_status done() { return SLUICE_DONE; }

/// A handler that waits at a gate, deaf to its stop token.
inline Script deaf(Gate& gate) {
  return {.handle =
              [&gate](const std::string&, const sluice_context&) {
                gate.pass();
                return done();
              },
          .create = {}};
}

}  // namespace sluice::work
