#pragma once

#include <csignal>

#include "base/text/utf8.hpp"
#include "host/fleet/board_poll_schedule.hpp"
#include "host/fleet/steering.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/health_report.hpp"
#include "host/runtime/host_events.hpp"
#include "host/runtime/job_set.hpp"

namespace sluice::runtime {

/// This host as its fleet sees it: says what it is and what it is at, and does what operators want; what stands goes to
/// its jobs and log, orders as signals would. Thread-safe.
class ThisHost final : public fleet::HostControl {
 public:
  struct Parts {
    const config::HostConfig& config;
    JobSet& jobs;
    HostEvents& events;
    observe::Log& log;
    const Clock& clock;
    std::string name;
    std::string version;
    std::string incarnation{};             ///< as its crash ledger names it
    const cost::CostBook* book = nullptr;  ///< null: what it costs is not told
    const DepthSampler* depths = nullptr;  ///< null: no lag has a limit
  };

  /// What `parts` refer to outlives it.
  explicit ThisHost(const Parts& parts);

  const fleet::HostRecord& identity() const { return identity_; }
  /// With all that runs, the longest first.
  fleet::HostRecord describe() const override;
  void take(const fleet::HostSteering& standing) override;
  fleet::Answer obey(const fleet::Directive& order) override;

  bool is_running() const { return state_ == fleet::HostState::running; }
  void set_state(fleet::HostState state) { state_ = state; }
  /// The host has ended by a drain that was not clean, and why it was not.
  void set_left_behind(std::string_view why) {
    const MutexLock lock(mutex_);
    left_behind_ = cut_utf8(why, kLongestReason);
    state_ = fleet::HostState::ended;
  }
  /// Of its HTTP side, once that is open.
  void set_address(std::string address) {
    const MutexLock lock(mutex_);
    address_ = std::move(address);
  }

 private:
  /// What a job had done at some moments: paces are measured from the last one that is old enough.
  struct Milestone {
    SteadyTime at{};
    work::LedgerSnapshot ledger;
    work::HandlerTimes times;
  };
  struct Milestones {
    Milestone last;
    Milestone before;
  };

  fleet::JobRecord describe(const JobSet::Member& member, const work::JobActivity& activity, SteadyTime now) const;
  void log_at(const std::string& level);
  fleet::JobPace pace_of(const std::string& job, const work::JobActivity& activity, SteadyTime now) const;

  static constexpr std::size_t kLongestReason = 1'000;  // a record is billed by its size

  // Fixed after construction.
  const Parts parts_;
  const SteadyTime began_;
  const fleet::HostRecord identity_;

  std::atomic<fleet::HostState> state_{fleet::HostState::starting};
  mutable Mutex mutex_;
  std::string address_ SLUICE_GUARDED_BY(mutex_);
  std::string log_level_ SLUICE_GUARDED_BY(mutex_);
  std::string left_behind_ SLUICE_GUARDED_BY(mutex_);
  mutable std::map<std::string, Milestones> milestones_ SLUICE_GUARDED_BY(mutex_);
};

/// A host's place in its fleet: tells of the host on the boards of its queues, and obeys what operators want there, on
/// one thread. A BoardPollSchedule decides when, the DirectiveResolver what. A board that fails is left alone for a
/// while.
class FleetService final : public RepeatingService {
 public:
  /// The queues whose boards are attended now.
  using QueueNames = std::function<std::vector<std::string>()>;
  struct Parts {
    queue::Queues& queues;
    fleet::HostControl& control;
    observe::Log& log;
    const Clock& clock;
    /// Hosts that are known to have ended since the last call; may be empty.
    std::function<std::vector<fleet::HostEnd>()> ended{};
  };

  /// `identity`: who the host is. What `parts` refer to outlives the service.
  FleetService(Parts parts, const fleet::HostRecord& identity, QueueNames names);
  ~FleetService() override { stop(); }

  /// Looks at the boards of these queues once, so that nothing begins that operators do not want; before `start`. Gives
  /// up on a store that does not answer at once: the thread looks again.
  void look_first(const std::vector<std::string>& names);

  /// Somebody has given a directive. Returns at once, from any thread.
  void look_now() {
    look_ = true;
    wake();
  }
  /// The host has something new to tell. The same.
  void tell_now() {
    tell_ = true;
    wake();
  }

 private:
  /// A board and how the host stands to it.
  struct Post {
    Post(std::unique_ptr<queue::NoticeBoard> opened, const std::string& own, SteadyTime now)
        : board(std::move(opened)), poll_schedule(board->traits(), now), sweeper(own) {}

    std::unique_ptr<queue::NoticeBoard> board;
    fleet::BoardPollSchedule poll_schedule;
    fleet::Sweeper sweeper;
    std::optional<std::string> steering;  ///< as it was read last
    std::int64_t seen = 0;                ///< its version
    std::int64_t told = 0;                ///< the version of the host's own record
    std::size_t ends_told = 0;            ///< how many of `ended_`
    bool complained = false;
    std::unique_ptr<queue::NoticeBoard::Watch> watch;
  };

  SteadyTime step(const std::stop_token& stop) override;
  /// The host takes its records down; where it leaves work behind they say so instead.
  void end() override;
  /// Tells at once when the host's health has changed. Its paces are of what is counted here, however seldom they are
  /// told.
  void look_at_self();
  void open(const std::vector<std::string>& names);
  SteadyTime attend(Post& post, const std::stop_token& stop);
  Result<void> look(Post& post, Deadline deadline);
  void obey(Post& post, fleet::Steering steering);
  Result<void> tell(Post& post, Deadline deadline);
  Result<void> sweep(Post& post, Deadline deadline) {
    SLUICE_TRY(hosts, post.board->list(queue::Topic::hosts, deadline));
    for (const queue::Notice& old : post.sweeper.due(*hosts, post.board->now(), parts_.clock.steady_now())) {
      // Whoever else sweeps, or the host itself, may have been quicker.
      static_cast<void>(post.board->take_down(queue::Topic::hosts, old.key, old.version, deadline));
    }
    return {};
  }
  void complain(Post& post, const Error& error) {
    if (!std::exchange(post.complained, true)) {
      parts_.log.warn("the fleet cannot be told of this host, nor this host what operators want; trying again",
                      {{"place", post.board->traits().place}, {"why", error.message()}});
    }
  }
  void take_leave(Post& post);

  const Parts parts_;
  const std::string own_;
  const QueueNames names_;

  // Touched by who looks first, then only by the thread.
  std::vector<std::unique_ptr<Post>> posts_;
  std::vector<std::string> opened_;    ///< names of queues whose boards are among the posts
  std::vector<fleet::HostEnd> ended_;  ///< since the start
  fleet::DirectiveResolver resolver_;
  SteadyTime open_again_ = SteadyTime::min();
  std::pair<bool, bool> health_{true, true};  ///< as was seen last: healthy, ready

  std::atomic<bool> look_{false};
  std::atomic<bool> tell_{false};
};

}  // namespace sluice::runtime
