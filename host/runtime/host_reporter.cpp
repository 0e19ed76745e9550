#include "host/runtime/host_reporter.hpp"

#include <unistd.h>

#include <filesystem>

#include "base/uuid.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::runtime {

namespace {

// Measured over less time, a rate would be chance.
constexpr Duration kShortestPace = std::chrono::seconds(1);
constexpr double kP95 = 0.95;
constexpr std::size_t kInstanceDigits = 8;
// A record is billed by its size.
constexpr std::size_t kMostValues = 10;

constexpr std::array<std::string_view, 5> kLevels{"trace", "debug", "info", "warn", "error"};

fleet::HostRecord identity_of(const HostReporter::Facts& facts, const Clock& clock, Random& random) {
  fleet::HostRecord record;
  record.name = facts.name;
  record.pid = ::getpid();
  // In containers many are process 1 of the same name.
  record.instance = record.label() + ":" + make_uuid(random).substr(0, kInstanceDigits);
  record.version = facts.version;
  record.host_file = facts.config.file;
  record.started_at = clock.wall_now();
  record.file_log_level = kLevels.at(static_cast<std::size_t>(facts.config.log_level));
  return record;
}

fleet::UsageRecord record_of(const cost::Usage& usage) {
  return {usage.spent.requests, usage.spent.read_units, usage.spent.write_units, usage.messages, usage.kib,
          usage.indexed_kib,    usage.message_seconds,  usage.kib_seconds};
}

void add_costs(const cost::CostView& view, fleet::HostRecord& record) {
  record.spent_in = view.covered;
  for (const cost::CostView::Row& row : view.rows) {
    if (!row.hour.none()) {
      record.spent.push_back({row.queue, row.job, record_of(row.hour)});
    }
  }
  record.attribute = view.attribute;
  for (const cost::TopValues::Named& named : view.values.values) {
    if (record.values.size() < kMostValues) {
      record.values.push_back({named.value, record_of(named.usage)});
    }
  }
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

}  // namespace

HostReporter::HostReporter(const Facts& facts, const JobSet& jobs, const Clock& clock, Random& random)
    : jobs_(jobs),
      clock_(clock),
      book_(facts.book),
      identity_(identity_of(facts, clock, random)),
      log_level_(identity_.file_log_level) {}

fleet::HostRecord HostReporter::describe() const {
  fleet::HostRecord record = identity_;
  record.state = state_;
  {
    const MutexLock lock(mutex_);
    record.address = address_;
    record.log_level = log_level_;
  }
  const SteadyTime now = clock_.steady_now();
  const WallTime wall = clock_.wall_now();
  const auto wall_of = [now, wall](SteadyTime time) { return wall + (time - now); };
  for (const JobSet::Member& member : jobs_.members()) {
    const work::JobActivity activity = member.job->activity();
    record.jobs.push_back(describe(member, activity, now));
    for (const work::RunningHandler& handler : activity.running) {
      fleet::RunningRecord running;
      running.message = handler.message_id;
      running.job = member.plan.config.name;
      const auto queues = work::queues_of(member.plan.config);
      running.queue = queues[std::min<std::size_t>(handler.part, queues.size() - 1)].name;
      running.handler = member.plan.config.handler;
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
      record.running.push_back(std::move(running));
    }
  }
  std::stable_sort(record.running.begin(), record.running.end(),
                   [](const fleet::RunningRecord& a, const fleet::RunningRecord& b) { return a.since < b.since; });
  record.running_total = static_cast<std::uint32_t>(record.running.size());
  record.detailed = true;
  if (book_ != nullptr) {
    add_costs(book_->view(), record);
  }
  return record;
}

fleet::JobRecord HostReporter::describe(const JobSet::Member& member, const work::JobActivity& activity,
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
  record.running = static_cast<std::uint32_t>(activity.running.size());
  record.stuck = static_cast<std::uint32_t>(std::count_if(activity.running.begin(), activity.running.end(),
                                                          [](const auto& handler) { return handler.stuck; }));
  record.claimed = activity.ledger.claimed;
  record.done = activity.ledger.done;
  record.retried = activity.ledger.retried;
  record.rejected = activity.ledger.rejected;
  record.timed_out = activity.times.time_outs();
  record.pace = pace_of(config.name, activity, now);
  return record;
}

fleet::JobPace HostReporter::pace_of(const std::string& job, const work::JobActivity& activity, SteadyTime now) const {
  fleet::JobPace pace;
  pace.slowest = activity.times.slowest();
  const MutexLock lock(mutex_);
  const auto [found, anew] = milestones_.try_emplace(job);
  Milestones& past = found->second;
  // After a reload the job begins to count anew.
  if (anew || past.last.ledger.claimed > activity.ledger.claimed) {
    past = {{now, activity.ledger, activity.times}, {now, activity.ledger, activity.times}};
  }
  const Milestone since = now - past.last.at >= kShortestPace ? past.last : past.before;
  if (now - past.last.at >= kShortestPace) {
    past.before = std::exchange(past.last, {now, activity.ledger, activity.times});
  }
  const double seconds = std::chrono::duration<double>(now - since.at).count();
  if (seconds <= 0) {
    return pace;
  }
  pace.claimed = rate(activity.ledger.claimed, since.ledger.claimed, seconds);
  pace.done = rate(activity.ledger.done, since.ledger.done, seconds);
  pace.failed =
      rate(activity.ledger.retried + activity.ledger.rejected, since.ledger.retried + since.ledger.rejected, seconds);
  pace.mean = activity.times.mean_since(since.times);
  pace.p95 = activity.times.quantile_since(since.times, kP95);
  return pace;
}

void HostCommandHandler::take(const fleet::HostSteering& standing) {
  parts_.jobs.steer([standing](const config::JobConfig& job) {
    const auto workers = standing.workers.find(job.name);
    const auto queues = work::queues_of(job);
    const bool paused = std::any_of(queues.begin(), queues.end(), [&](const config::WeightedQueue& queue) {
      return standing.pauses(job.name, queue.name);
    });
    return work::JobSteering{.paused = paused, .workers = workers == standing.workers.end() ? 0 : workers->second};
  });
  parts_.log.info("steered by operators", {{"now", text_of(standing)}});
  log_at(standing.log_level.empty() ? parts_.reporter.identity().file_log_level : standing.log_level);
}

void HostCommandHandler::log_at(const std::string& level) {
  const auto known = std::find(kLevels.begin(), kLevels.end(), level);
  if (known != kLevels.end()) {
    parts_.log.set(static_cast<observe::LogLevel>(known - kLevels.begin()),
                   static_cast<observe::LogFormat>(parts_.config.log_format));
    parts_.reporter.set_log_level(level);
  }
}

Answer HostCommandHandler::obey(const Directive& order) {
  Answer answer{.directive = order.id};
  const auto refuse = [&answer](std::string why) {
    answer.text = std::move(why);
    return answer;
  };
  if (const auto flaw = fleet::flaw_of(order)) {
    return refuse(*flaw);
  }
  const fleet::HostRecord& self = parts_.reporter.identity();
  if (order.target == fleet::Target::host && !self.is_called(order.name)) {
    return refuse("this host is " + self.label() + ", not " + order.name);
  }
  switch (order.wish) {
    case Wish::drain:
      answer.text = drain();
      break;
    case Wish::reload:
      answer.text = reload();
      break;
    case Wish::cancel_running:
      if (!parts_.jobs.cancel(order.name)) {
        return refuse("no handler works on message " + order.name + " here");
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

void HostCommandHandler::look_now() {
  std::function<void()> look;
  {
    const MutexLock lock(mutex_);
    look = look_;
  }
  if (look) {
    look();
  }
}

}  // namespace sluice::runtime
