#include "host/runtime/fleet_service.hpp"

#include <unistd.h>

#include <filesystem>

#include "base/process_mark.hpp"
#include "host/fleet/fleet.hpp"
#include "host/runtime/service.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::runtime {
namespace {

// A burst is seen for at least so long, however often somebody looks.
constexpr Duration kPaceSpan = std::chrono::seconds(10);
// Measured over less time, a rate would be chance.
constexpr Duration kShortestPace = std::chrono::seconds(1);
constexpr double kP95 = 0.95;
// A record is billed by its size.
constexpr std::size_t kMostValues = 10;

fleet::HostRecord identity_of(const ThisHost::Parts& parts) {
  fleet::HostRecord record;
  record.name = parts.name;
  record.pid = ::getpid();
  // In containers many are process 1 of the same name.
  record.instance = fleet::instance_of(record.name, record.pid, parts.incarnation);
  record.process = process_mark(record.pid);
  record.version = parts.version;
  record.host_file = parts.config.file;
  record.started_at = parts.clock.wall_now();
  record.file_log_level = fleet::kLogLevels.at(static_cast<std::size_t>(parts.config.log_level));
  return record;
}

void add_costs(const cost::CostView& view, fleet::HostRecord& record) {
  for (const cost::CostView::Row& row : view.rows) {
    if (!row.hour.none()) {
      record.spent.push_back({row.queue, row.job, row.hour});
    }
  }
  if (!record.spent.empty()) {
    record.spent_in = view.covered;
    record.attribute = view.attribute;
  }
  record.values = view.values.values;
  record.values.resize(std::min(record.values.size(), kMostValues));
}

fleet::RunningRecord record_of(const config::JobConfig& job, const work::RunningHandler& handler, SteadyTime now,
                               WallTime wall) {
  const auto wall_of = [now, wall](SteadyTime time) { return wall + (time - now); };
  fleet::RunningRecord running;
  running.message = handler.message_id;
  running.job = job.name;
  running.queue = work::queue_of(work::queues_of(job), handler.part).name;
  running.handler = job.handler;
  running.worker = handler.worker;
  running.attempt = handler.attempt;
  running.since = wall_of(handler.started_at);
  if (handler.times_out_at != SteadyTime::max()) {
    running.times_out_at = wall_of(handler.times_out_at);
  }
  if (handler.leased_until != SteadyTime::max()) {
    running.leased_until = wall_of(handler.leased_until);
  }
  running.stuck = handler.stuck;
  running.cancelled = handler.stop_requested;
  return running;
}

double rate(std::uint64_t after, std::uint64_t before, double seconds) {
  return static_cast<double>(after - std::min(before, after)) / seconds;
}

using fleet::Answer;
using fleet::Directive;
using fleet::Wish;

std::string text_of(const fleet::HostSteering& standing) {
  std::string text;
  const auto add = [&text](const std::string& more) { text += (text.empty() ? "" : ", ") + more; };
  for (const std::string& queue : standing.paused_queues) {
    add("queue " + queue + " paused");
  }
  for (const std::string& job : standing.paused_jobs) {
    add("job " + job + " paused");
  }
  for (const auto& [job, workers] : standing.workers) {
    add("job " + job + " with " + std::to_string(workers) + " workers");
  }
  if (!standing.log_level.empty()) {
    add("log level " + standing.log_level);
  }
  return text.empty() ? "as the files say" : text;
}

using fleet::BoardPollSchedule;
using queue::Topic;

/// Of a start: afterwards the thread looks again.
constexpr Duration kFirstLookTime = std::chrono::seconds(2);
constexpr Duration kOpenAgain = std::chrono::seconds(10);

}  // namespace

ThisHost::ThisHost(const Parts& parts)
    : parts_(parts),
      began_(parts.clock.steady_now()),
      identity_(identity_of(parts)),
      log_level_(identity_.file_log_level) {}

fleet::HostRecord ThisHost::describe() const {
  fleet::HostRecord record = identity_;
  record.state = state_;
  record.up = parts_.clock.steady_now() - began_;
  if (const observe::ProbeResult health = health_of(parts_.jobs); !health.ok) {
    record.unhealthy = health.text;
  }
  if (record.state == fleet::HostState::running) {
    record.not_ready = unreadiness_of(parts_.jobs, parts_.depths == nullptr ? Lags() : parts_.depths->lags());
  }
  {
    const MutexLock lock(mutex_);
    record.address = address_;
    record.log_level = log_level_;
    record.left_behind = left_behind_;
  }
  const SteadyTime now = parts_.clock.steady_now();
  const WallTime wall = parts_.clock.wall_now();
  for (const JobSet::Member& member : parts_.jobs.members()) {
    record.jobs.push_back(describe(member, member.job->activity(), now));
  }
  for (const auto& [job, handler] : parts_.jobs.running()) {
    record.running.push_back(record_of(job->config(), handler, now, wall));
  }
  std::stable_sort(record.running.begin(), record.running.end(),
                   [](const fleet::RunningRecord& a, const fleet::RunningRecord& b) { return a.since < b.since; });
  record.running_total = static_cast<std::uint32_t>(record.running.size());
  record.detailed = true;
  if (parts_.book != nullptr) {
    add_costs(parts_.book->view(), record);
  }
  return record;
}

fleet::JobRecord ThisHost::describe(const JobSet::Member& member, const work::JobActivity& activity,
                                    SteadyTime now) const {
  const config::JobConfig& config = member.plan.config;
  fleet::JobRecord record;
  record.name = config.name;
  record.queue = work::queue_text(config);
  record.dead_letters = config.source == config::Source::dlq;
  record.handler = config.handler;
  record.plugin = std::filesystem::path(member.plan.plugin_file).filename();
  record.plugin_version = member.plan.plugin_version;
  record.concurrency = activity.workers;
  record.file_concurrency = config.concurrency;
  record.paused = activity.paused;
  record.held_by_budget = activity.held_by_budget;
  record.cut_off = is_cut_off(member, activity);
  record.rate_limit = config.rate_text;
  record.rate = activity.rate;
  record.running = static_cast<std::uint32_t>(activity.running.size());
  record.stuck = static_cast<std::uint32_t>(activity.stuck().size());
  record.claimed = activity.ledger.claimed;
  record.done = activity.ledger.done;
  record.retried = activity.ledger.retried;
  record.rejected = activity.ledger.rejected;
  record.timed_out = activity.times.time_outs();
  record.pace = pace_of(config.name, activity, now);
  return record;
}

fleet::JobPace ThisHost::pace_of(const std::string& job, const work::JobActivity& activity, SteadyTime now) const {
  fleet::JobPace pace;
  pace.slowest = activity.times.slowest();
  const MutexLock lock(mutex_);
  const auto [found, anew] = milestones_.try_emplace(job);
  Milestones& past = found->second;
  // After a reload the job begins to count anew.
  if (anew || past.last.ledger.claimed > activity.ledger.claimed) {
    past = {{now, activity.ledger, activity.times}, {now, activity.ledger, activity.times}};
  }
  const bool rotates = now - past.last.at >= kPaceSpan;
  const Milestone since = rotates ? past.last : past.before;
  if (rotates) {
    past.before = std::exchange(past.last, {now, activity.ledger, activity.times});
  }
  if (now - since.at < kShortestPace) {
    return pace;
  }
  pace.over = now - since.at;
  const double seconds = std::chrono::duration<double>(pace.over).count();
  pace.claimed = rate(activity.ledger.claimed, since.ledger.claimed, seconds);
  pace.done = rate(activity.ledger.done, since.ledger.done, seconds);
  pace.failed =
      rate(activity.ledger.retried + activity.ledger.rejected, since.ledger.retried + since.ledger.rejected, seconds);
  pace.mean = activity.times.mean_since(since.times);
  pace.p95 = activity.times.quantile_since(since.times, kP95);
  return pace;
}

void ThisHost::take(const fleet::HostSteering& standing) {
  parts_.jobs.steer([standing](const config::JobConfig& job) {
    const auto workers = standing.workers.find(job.name);
    const auto queues = work::queues_of(job);
    const bool paused = std::any_of(queues.begin(), queues.end(), [&](const config::WeightedQueue& queue) {
      return standing.pauses(job.name, queue.name);
    });
    return work::JobSteering{.paused = paused, .workers = workers == standing.workers.end() ? 0 : workers->second};
  });
  parts_.log.info("steered by operators", {{"now", text_of(standing)}});
  log_at(standing.log_level.empty() ? identity_.file_log_level : standing.log_level);
}

void ThisHost::log_at(const std::string& level) {
  const auto known = std::find(fleet::kLogLevels.begin(), fleet::kLogLevels.end(), level);
  if (known != fleet::kLogLevels.end()) {
    parts_.log.set(static_cast<observe::LogLevel>(known - fleet::kLogLevels.begin()),
                   static_cast<observe::LogFormat>(parts_.config.log_format));
    const MutexLock lock(mutex_);
    log_level_ = level;
  }
}

Answer ThisHost::obey(const Directive& order) {
  Answer answer{.directive = order.id};
  const auto refuse = [&answer](std::string why) {
    answer.text = std::move(why);
    return answer;
  };
  if (const auto flaw = fleet::flaw_of(order)) {
    return refuse(*flaw);
  }
  if (order.target == fleet::Target::host && !identity_.is_called(order.name)) {
    return refuse("this host is " + identity_.label() + ", not " + order.name);
  }
  switch (order.wish) {
    case Wish::drain:
      answer.text = parts_.events.ask_drain() ? "draining" : "it drains already";
      break;
    case Wish::reload:
      parts_.events.signal(SIGHUP);
      answer.text = "reloading; its log says what came of it";
      break;
    case Wish::cancel_running:
      if (!parts_.jobs.cancel(order.name, order.value)) {
        return refuse("no handler works on message " + order.name + (order.value.empty() ? "" : " of queue ") +
                      order.value + " here");
      }
      answer.text = "the stop token of message " + order.name + " is set";
      break;
    case Wish::pause:
    case Wish::scale:
    case Wish::log_level:
      return refuse(order.text() + " is no order: it is given on the board of the queue");
  }
  answer.done = true;
  parts_.log.info("steered", {{"order", order.text()}, {"by", order.by}, {"result", answer.text}});
  return answer;
}

FleetService::FleetService(Parts parts, const fleet::HostRecord& identity, QueueNames names)
    : RepeatingService("sluice-fleet", parts.clock),
      parts_(std::move(parts)),
      own_(identity.instance),
      names_(std::move(names)),
      resolver_(identity) {}

void FleetService::open(const std::vector<std::string>& names) {
  const SteadyTime now = parts_.clock.steady_now();
  for (const std::string& name : names) {
    if (std::find(opened_.begin(), opened_.end(), name) != opened_.end()) {
      continue;
    }
    auto board = parts_.queues.open_board(name);
    if (!board) {
      // The job of that queue says why.
      open_again_ = now + kOpenAgain;
      continue;
    }
    opened_.push_back(name);
    const bool known = std::any_of(posts_.begin(), posts_.end(), [&board](const auto& post) {
      return post->board->traits().place == (*board)->traits().place;
    });
    if (!known) {
      Post& post = *posts_.emplace_back(std::make_unique<Post>(std::move(*board), own_, now));
      post.watch = post.board->watch([this] { look_now(); });
    }
  }
}

void FleetService::look_first(const std::vector<std::string>& names) {
  open(names);
  const Deadline deadline = Deadline::after(parts_.clock, kFirstLookTime);
  for (const auto& post : posts_) {
    if (look(*post, deadline)) {
      post->poll_schedule.done(BoardPollSchedule::Duty::look, parts_.clock.steady_now());
    }
  }
}

SteadyTime FleetService::step(const std::stop_token& stop) {
  if (parts_.clock.steady_now() >= open_again_) {
    open_again_ = SteadyTime::min();
    open(names_());
  }
  const bool look = look_.exchange(false);
  bool tell = tell_.exchange(false);
  look_at_self();
  if (auto ended = parts_.ended ? parts_.ended() : std::vector<fleet::HostEnd>(); !ended.empty()) {
    std::move(ended.begin(), ended.end(), std::back_inserter(ended_));
    tell = true;
  }
  SteadyTime wake = parts_.clock.steady_now() + kOpenAgain;
  for (const auto& post : posts_) {
    if (look) {
      post->poll_schedule.look_soon();
    }
    if (tell) {
      post->poll_schedule.tell_soon();
    }
    wake = std::min(wake, attend(*post, stop));
  }
  return wake;
}

void FleetService::end() {
  for (const auto& post : posts_) {
    post->watch.reset();
    take_leave(*post);
  }
}

void FleetService::look_at_self() {
  const fleet::HostRecord self = parts_.control.describe();
  const std::pair health(self.unhealthy.empty(), self.not_ready.empty());
  if (std::exchange(health_, health) != health) {
    tell_now();
  }
}

SteadyTime FleetService::attend(Post& post, const std::stop_token& stop) {
  while (true) {
    const BoardPollSchedule::Order order = post.poll_schedule.next(parts_.clock.steady_now());
    if (order.duty == BoardPollSchedule::Duty::none || stop.stop_requested()) {
      return order.wake;
    }
    const Deadline deadline = Deadline::after(parts_.clock, kCallTime);
    const auto performed = order.duty == BoardPollSchedule::Duty::look   ? look(post, deadline)
                           : order.duty == BoardPollSchedule::Duty::tell ? tell(post, deadline)
                                                                         : sweep(post, deadline);
    const SteadyTime now = parts_.clock.steady_now();
    if (!performed) {
      complain(post, performed.error());
      post.poll_schedule.failed(order.duty, now);
      continue;
    }
    post.poll_schedule.done(order.duty, now);
    if (!post.poll_schedule.failing() && std::exchange(post.complained, false)) {
      parts_.log.info("the fleet is told of this host again", {{"place", post.board->traits().place}});
    }
  }
}

Result<void> FleetService::look(Post& post, Deadline deadline) {
  SLUICE_TRY(notice, post.board->read(Topic::steering, {}, deadline));
  post.seen = notice->version;
  if (post.steering == notice->text) {
    return {};
  }
  auto steering = fleet::read_steering(notice->text);
  if (!steering) {
    // What stood before stands on.
    return steering.error();
  }
  post.steering = notice->text;
  if (steering->watched_until) {
    const Duration left = *steering->watched_until - post.board->now();
    const bool watched = post.poll_schedule.watched(parts_.clock.steady_now());
    post.poll_schedule.watched_until(parts_.clock.steady_now() + left);
    if (!watched && left > Duration::zero()) {
      post.poll_schedule.tell_soon();
    }
  }
  obey(post, std::move(*steering));
  return {};
}

void FleetService::obey(Post& post, fleet::Steering steering) {
  const std::string& place = post.board->traits().place;
  const fleet::HostSteering before = resolver_.standing();
  const std::vector<fleet::Directive> orders = resolver_.read(place, std::move(steering));
  if (resolver_.standing() != before) {
    parts_.control.take(resolver_.standing());
  }
  for (const fleet::Directive& order : orders) {
    fleet::Answer answer = parts_.control.obey(order);
    // Of a message that runs elsewhere there is nothing to say.
    if (answer.done || order.wish != fleet::Wish::cancel_running) {
      resolver_.answered(place, std::move(answer));
    }
  }
  post.poll_schedule.tell_soon();
}

Result<void> FleetService::tell(Post& post, Deadline deadline) {
  const SteadyTime now = parts_.clock.steady_now();
  fleet::HostRecord record = parts_.control.describe();
  record.seen = post.seen;
  record.answers = resolver_.answers(post.board->traits().place, record.jobs);
  record.detailed = post.poll_schedule.watched(now);
  if (!record.detailed) {
    record.running.clear();
  }
  const std::size_t most_bytes = post.board->traits().most_bytes;
  if (!record.detailed) {
    // By this size the next one is due, and that is announced.
    post.poll_schedule.size(fleet::write_record(record, most_bytes).size(), posts_.size());
  }
  record.every = post.poll_schedule.interval(now);
  const std::string text = fleet::write_record(record, most_bytes);
  auto posted = post.board->post(Topic::hosts, {.key = own_, .text = text, .version = post.told}, deadline);
  if (!posted && posted.error().code() == ErrorCode::conflict) {
    // Somebody has swept it away, or an answer was lost.
    SLUICE_TRY(found, post.board->read(Topic::hosts, own_, deadline));
    posted = post.board->post(Topic::hosts, {.key = own_, .text = text, .version = found->version}, deadline);
  }
  SLUICE_PASS_ON(posted);
  post.told = *posted;
  for (; post.ends_told < ended_.size(); ++post.ends_told) {
    SLUICE_PASS_ON(note_end(*post.board, ended_[post.ends_told], deadline));
  }
  return {};
}

void FleetService::take_leave(Post& post) {
  if (post.told == 0) {
    return;
  }
  const Deadline deadline = Deadline::at(end_by());
  if (parts_.control.describe().state == fleet::HostState::ended) {
    static_cast<void>(tell(post, deadline));
    return;
  }
  const auto down = post.board->take_down(Topic::hosts, own_, post.told, deadline);
  if (!down && down.error().code() == ErrorCode::conflict) {
    if (const auto found = post.board->read(Topic::hosts, own_, deadline)) {
      static_cast<void>(post.board->take_down(Topic::hosts, own_, found->version, deadline));
    }
  }
}

}  // namespace sluice::runtime
