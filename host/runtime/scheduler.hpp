#pragma once

#include <deque>

#include "config/schedule_times.hpp"
#include "host/observe/log.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/job_plan.hpp"
#include "host/runtime/service.hpp"

namespace sluice::runtime {

/// What hosts tell each other of one schedule, on the board of its queue, under its name. A value.
struct ScheduleNotice {
  std::string definition;  ///< what it does, in words that are the same where it is the same
  std::string host;        ///< that has written it
  std::string file;        ///< of that host
  WallTime last{};         ///< up to here all is sent or let go
  /// The latest time of which a message was stored; nothing: of none yet.
  std::optional<WallTime> sent{};

  std::string write() const;
  /// Nothing of what is no such notice.
  static std::optional<ScheduleNotice> read(std::string_view text);
};

/// What a schedule does, in words that are the same where it is the same. Its queue is not empty.
std::string definition_of(const config::ScheduleConfig& schedule);

/// A schedule of a job that this host runs. A value.
struct Schedule {
  config::ScheduleConfig config;  ///< its queue is never empty
  std::string file;               ///< that has it
};

/// All schedules of the jobs, each with the queue that it sends to.
std::vector<Schedule> schedules_of(const std::vector<JobPlan>& plans);

/// Decides when a message of a schedule is sent, and what the hosts tell each other about it. Every host that has it
/// sends each time that is due, with a deduplication id of name and time, so that one message is stored. What was sent
/// last stands on the board of its queue, for hosts that start; and how each host has it, so that two that differ are
/// told. Not thread-safe.
class Scheduler {
 public:
  /// Of what was missed with catch_up = "all", so many at most.
  static constexpr std::size_t kMostCaughtUp = 100;
  /// A time that is noticed later than this was missed.
  static constexpr Duration kPunctual = std::chrono::seconds(60);
  /// So often a host looks whether another one has the schedule otherwise.
  static constexpr Duration kLookInterval = std::chrono::seconds(30);

  enum class Duty { none, look, send, tell };
  /// What to do now: one thing, which is followed by its answer below, or nothing before `wake`.
  struct Order {
    Duty duty = Duty::none;
    std::string name{};
    std::string queue{};
    config::ScheduleTimes::Time due{};  ///< of what is sent
    queue::NewMessage message{};        ///< send
    queue::Notice notice{};             ///< tell
    WallTime wake = WallTime::max();
  };
  /// A line for the log.
  struct Line {
    bool bad = false;  ///< somebody should do something about it
    std::string text;
  };

  explicit Scheduler(std::string host) : host_(std::move(host)) {}

  /// These schedules from now on; those that are as they were go on undisturbed. Not between an order and its answer.
  void take(const std::vector<Schedule>& schedules, WallTime now);
  Order next(WallTime now);
  void looked(const std::string& name, const Result<queue::Notice>& found, WallTime now);
  void sent(const std::string& name, config::ScheduleTimes::Time due, const queue::SendResult& result, WallTime now);
  void told(const std::string& name, const Result<std::int64_t>& posted, WallTime now);
  std::vector<Line> take_lines() { return std::exchange(lines_, {}); }

 private:
  using Time = config::ScheduleTimes::Time;
  struct Entry {
    Schedule schedule;
    config::ScheduleTimes times;
    std::string definition;
    bool fresh = true;         ///< nothing has been done about it yet
    bool known = false;        ///< the board has been read
    std::int64_t version = 0;  ///< of the notice
    Time last{};               ///< up to here all is sent or let go
    std::optional<Time> sent{};
    std::deque<Time> pending{};
    bool to_tell = false;
    WallTime tell_at{};
    WallTime look_at{};  ///< once it is known
    WallTime retry_at{};
    Duration pause{};
    std::string warned{};   ///< what was said last about another host
    std::string trouble{};  ///< and about the store
  };

  void find_due(Entry& entry, Time now);
  queue::NewMessage message_of(const Entry& entry, Time due) const;
  void compare(Entry& entry, const std::string& definition, const std::string& host, const std::string& file);
  void failed(Entry& entry, const std::string& what, const Error& error, WallTime now);
  void succeeded(Entry& entry);

  const std::string host_;
  std::map<std::string, Entry> entries_;
  std::vector<Line> lines_;
};

/// The thread that sends what schedules have due; it sleeps where there are none. A pause of a job does not touch its
/// schedules: what is paused is the work, and what is due waits in the queue as any message does.
class ScheduleService final : public RepeatingService {
 public:
  /// The references outlive it; `host` is this host's name.
  ScheduleService(queue::Queues& queues, observe::Log& log, const Clock& clock, const std::string& host)
      : RepeatingService("sluice-schedule", clock), queues_(queues), log_(log), scheduler_(host) {}
  ~ScheduleService() override { stop(); }

  /// These schedules from now on. Before `start` or after it, from any thread.
  void take(std::vector<Schedule> schedules) {
    {
      const MutexLock lock(mutex_);
      taken_ = {std::move(schedules), clock_.wall_now()};
    }
    wake();
  }

 private:
  SteadyTime step(const std::stop_token& stop) override;
  void carry_out(const Scheduler::Order& order);
  Result<queue::NoticeBoard*> board_of(const std::string& queue) {
    return opened(boards_, queue, [&] { return queues_.open_board(queue); });
  }

  queue::Queues& queues_;
  observe::Log& log_;

  Mutex mutex_;
  std::optional<std::pair<std::vector<Schedule>, WallTime>> taken_ SLUICE_GUARDED_BY(mutex_);  ///< and when

  // Touched only by the thread.
  Scheduler scheduler_;
  std::map<std::string, std::unique_ptr<queue::Sender>> senders_;
  std::map<std::string, std::unique_ptr<queue::NoticeBoard>> boards_;
};

}  // namespace sluice::runtime
