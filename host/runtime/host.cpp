#include "host/runtime/host.hpp"

#include <filesystem>

#include "base/ranges.hpp"
#include "host/observe/build_info.hpp"
#include "host/queue/joined_source.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::runtime {

namespace {

std::string grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t place = text.size(); place > 3;) {
    place -= 3;
    text.insert(place, ",");
  }
  return text;
}

/// A worker whose Runner is about to be killed is not stuck.
constexpr Duration kBeyondKill = std::chrono::seconds(2);

/// How often the end of an --until-empty run is looked for while the jobs are quiescent; counting a queue costs reads.
constexpr Duration kEmptyCheckInterval = std::chrono::milliseconds(500);
constexpr Duration kQuiescenceLook = std::chrono::milliseconds(20);
constexpr Duration kProgressInterval = std::chrono::seconds(1);
constexpr Duration kStoreRetry = std::chrono::seconds(1);
constexpr Duration kReloadLook = std::chrono::milliseconds(100);
/// What a host that ends may take to say so to the fleet, be there time left of its drain or not.
constexpr Duration kShortestFarewell = std::chrono::milliseconds(50);
constexpr Duration kLongestFarewell = std::chrono::milliseconds(400);

std::string listed(const std::vector<std::string>& names) { return names.empty() ? "none" : joined(names); }

std::string progress_text(const std::string& line, bool terminal) { return terminal ? "\r\033[K" + line : line + "\n"; }

/// Whether a store that cannot be opened for this reason may be there later.
bool waiting_mends(ErrorCode code) {
  return code == ErrorCode::full || code == ErrorCode::unavailable || code == ErrorCode::throttled ||
         code == ErrorCode::timeout;
}

/// What a job draws from: one queue's source, or several joined. `book`, where their cost goes, outlives them.
Result<std::unique_ptr<queue::Source>> open_source(queue::Queues& queues, const config::HostConfig& host,
                                                   const JobPlan& plan, cost::CostBook& book) {
  const config::JobConfig& job = plan.config;
  const auto addresses = work::addresses_of(job);
  const auto metered = [&](std::unique_ptr<queue::Source> source, const queue::QueueAddress& address) {
    return cost::metered(std::move(source), book, job.name, address.queue);
  };
  if (job.queues.empty()) {
    queue::Selection selection = selection_of(job);
    selection.side_by_side = plugin::only_sends(*plan.handler) && plan.arounds.empty();
    SLUICE_TRY(opened, queues.open_selected(addresses.front(), selection));
    return metered(std::move(*opened), addresses.front());
  }
  std::vector<queue::JoinedSource::Part> parts;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    SLUICE_TRY(opened, queues.open_source(addresses[i]));
    const config::QueueConfig settings = host.queue(addresses[i].queue);
    parts.push_back({metered(std::move(*opened), addresses[i]), job.queues[i].weight, settings.visibility_timeout,
                     settings.max_in_flight});
  }
  return std::unique_ptr<queue::Source>(std::make_unique<queue::JoinedSource>(std::move(parts)));
}

/// The budgets of those of its queues that have one.
std::vector<cost::UnitBudget*> budgets_of(const config::JobConfig& job, const cost::CostBook& book) {
  std::vector<cost::UnitBudget*> budgets;
  for (const config::WeightedQueue& queue : work::queues_of(job)) {
    if (cost::UnitBudget* budget = book.budget(queue.name)) {
      budgets.push_back(budget);
    }
  }
  return budgets;
}

/// What a job is made of, by its plan and by what the host file says of its queue. `host` is this host's name.
work::JobSpec job_spec(const JobPlan& plan, const config::HostConfig& config, const std::string& host) {
  const config::QueueConfig queue = config.queue(plan.config.queue);
  work::JobSpec spec;
  spec.config = plan.config;
  spec.handler = plan.handler;
  spec.options = plan.options;
  spec.arounds = plan.arounds;
  spec.max_in_flight = queue.max_in_flight;
  spec.leases = mapped(work::queues_of(plan.config), [&config](const config::WeightedQueue& one) {
    const config::QueueConfig own = config.queue(one.name);
    return work::QueueLease{own.visibility_timeout, own.max_lease};
  });
  spec.host = host;
  spec.store = config.store_of(plan.config.queue).kind;
  spec.isolated = plan.config.isolation == config::Isolation::process;
  if (spec.isolated) {
    spec.stuck_grace = kill_grace(plan.config) + kBeyondKill;
  }
  return spec;
}

}  // namespace

std::string ProgressLine::next(const work::LedgerSnapshot& total, SteadyTime now) {
  const double seconds = std::chrono::duration<double>(now - last_).count();
  const std::uint64_t ended = total.ended();
  const double rate = seconds > 0 ? static_cast<double>(ended - last_ended_) / seconds : 0;
  last_ = now;
  last_ended_ = ended;

  std::string text;
  for (const work::EndingCount& ending : work::kEndingCounts) {
    // The first is what was done, which is told in any case.
    if (const std::uint64_t count = total.*ending.count; count > 0 || text.empty()) {
      text += (text.empty() ? "" : ", ") + grouped(count) + " " + std::string(ending.name);
    }
  }
  if (total.in_flight() > 0) {
    text += ", " + grouped(total.in_flight()) + " in flight";
  }
  return text + "; " + grouped(static_cast<std::uint64_t>(rate)) + "/s";
}

Host::Host(HostGround& ground, const HostParts& parts)
    : ground_(ground),
      parts_(parts),
      ward_({ground.config, ground.name, *ground.queues, *ground.queues, ground.plugins, parts.log, parts.clock,
             parts.random, parts.events}),
      jobs_(
          [this](const JobPlan& plan) -> Result<std::unique_ptr<work::Job>> {
            auto job = make_job(plan);
            return job ? std::move(job) : cannot_start(plan, job.error());
          },
          [this](const Error& error) { parts_.log.error(error.message()); }, parts.clock),
      emptiness_(*ground.queues, parts.clock),
      depths_([this] { return jobs_.addresses(); }, *ground.queues, parts.clock, ground.config.depth_interval,
              lag_limits_of(ground.config)),
      this_host_({ground.config, jobs_, parts.events, parts.log, parts.clock, ground.name,
                  observe::build_info().version, ground.queues->incarnation(), ground.book.get(), &depths_}),
      fleet_({*ground.queues, this_host_, parts.log, parts.clock, [this] { return ward_.take_ended(); }},
             this_host_.identity(), [this] { return mapped(jobs_.addresses(), &queue::QueueAddress::queue); }),
      rates_({*ground.queues, jobs_, parts.log, parts.clock}, this_host_.identity().instance),
      schedules_(*ground.queues, parts.log, parts.clock, ground.name) {}

Result<std::unique_ptr<work::Job>> Host::make_job(const JobPlan& plan) {
  SLUICE_TRY(source, open_source(*ground_.queues, ground_.config, plan, *ground_.book));
  SLUICE_TRY(runners, ward_.runners_for(plan));
  const work::JobSeams seams{
      parts_.clock,
      parts_.random,
      parts_.log,
      ground_.metrics.job(plan.config.name, work::queue_text(plan.config)),
      ward_.ledger_for(plan),
      *std::move(runners),
      [this, name = plan.config.queue](const Error& error) { return parts_.explain(name, error); },
      [this](const std::string& queue) { return ground_.queues->open_keys(queue); },
      ground_.telemetry->tracer(),
      parts_.watch,
      budgets_of(plan.config, *ground_.book)};
  return work::Job::create(job_spec(plan, ground_.config, ground_.name), std::move(*source), seams);
}

Result<void> Host::prepare(std::vector<JobPlan> plans) {
  SLUICE_PASS_ON(open_http());
  SLUICE_PASS_ON(open_wake());
  SLUICE_PASS_ON(ward_.start());
  open_control();
  plans_ = std::move(plans);
  schedules_.take(schedules_of(plans_));
  auto first = jobs_.prepare(plans_);
  while (!first && waiting_mends(first.error().code()) && SLUICE_GUARD(full_disk_waited_for)) {
    parts_.log.warn("waiting for the store", {{"error", first.error().message()}});
    if (!parts_.errand.wait_for(kStoreRetry)) {
      break;
    }
    first = jobs_.prepare(plans_);
  }
  SLUICE_PASS_ON(first);
  first_jobs_ = std::move(*first);
  fleet_.look_first(queues_of(plans_));
  return {};
}

Result<void> Host::start() {
  parts_.errand.carry_out([this] {
    auto probed = probe_queues(queues_of(plans_), *ground_.queues, parts_.clock, parts_.log, parts_.explain);
    return Errand::Rest([this, probed = std::move(probed)] { probed_ = probed; });
  });
  if (!probed_ || parts_.events.terminating()) {
    return probed_;
  }
  ward_.recover_first(plans_);
  SLUICE_PASS_ON(jobs_.start(std::exchange(first_jobs_, {})));
  SLUICE_PASS_ON(depths_.start());
  SLUICE_PASS_ON(rates_.start());
  SLUICE_PASS_ON(schedules_.start());
  SLUICE_PASS_ON(wake_ ? wake_->start() : Result<void>());
  this_host_.set_state(fleet::HostState::running);
  // Last, so that its first record says that it runs.
  return fleet_.start();
}

Result<void> Host::open_http() {
  if (ground_.config.http_listen.empty()) {
    return {};
  }
  observe::HttpHandlers handlers;
  const auto sources = [this] {
    return HealthSources{jobs_, ground_.config, ground_.telemetry->statuses(), depths_.lags(), ward_.ledger_trouble()};
  };
  handlers.health = [sources] { return health_of(sources()); };
  handlers.ready = [this, sources] { return readiness_of(this_host_.is_running(), sources()); };
  handlers.metrics = [this] {
    depths_.asked();
    jobs_.publish_workers();
    return ground_.metrics.text();
  };
  handlers.scale = [this](std::string_view queue) {
    depths_.asked();
    return scale_of(queue, jobs_, depths_.depth(std::string(queue)), depths_.interval(), parts_.clock.steady_now());
  };
  ground_.metrics.collect_from([this] { return depth_figures(depths_, parts_.clock.steady_now()); });
  ground_.metrics.collect_from([this] { return ledger_figures(ward_.ledger_trouble().empty()); });
  ground_.metrics.collect_from([this] { return sender_figures(ground_.telemetry->statuses()); });
  ground_.metrics.collect_from([this] { return cost_figures(ground_.book->view(), ground_.book->prices()); });
  ground_.metrics.collect_from([this] { return plugin_figures(boards_of(jobs_)); });
  SLUICE_TRY(endpoint, observe::HttpEndpoint::open(ground_.config.http_listen, std::move(handlers)));
  http_ = std::move(*endpoint);
  SLUICE_PASS_ON(http_->start());
  this_host_.set_address(http_->address());
  parts_.log.info("listening", {{"http", http_->address()}});
  return {};
}

Result<void> Host::open_wake() {
  if (ground_.config.wake.listen.empty()) {
    return {};
  }
  SLUICE_TRY(wake, WakeService::open({*ground_.queues, ground_.metrics, parts_.log, parts_.clock}, ground_.config.wake,
                                     this_host_.identity().instance, [this] { return jobs_.addresses(); }));
  wake_ = std::move(*wake);
  parts_.log.info("listening", {{"wake", wake_->address()}});
  return {};
}

void Host::open_control() {
  auto opened =
      ControlSocket::open(ControlFolder::of(ground_.config), [this](const ControlRequest& request, uid_t user) {
        if (request.verb == ControlVerb::look) {
          fleet_.look_now();
          return ControlAnswer{.text = "looks at what operators want"};
        }
        return answer_of(this_host_, request, user);
      });
  const Result<void> started = opened ? (*opened)->start() : opened.error();
  if (started) {
    control_ = std::move(*opened);
    return;
  }
  parts_.log.warn("no control socket: this host can be steered through its store and by signals only",
                  {{"why", started.error().message()}, {"mend", "let the host write to [host] state_dir"}});
}

void Host::run(bool until_empty, bool progress) {
  HostEvents& events = parts_.events;
  const bool terminal = isatty(STDERR_FILENO) == 1;
  ProgressLine line(parts_.clock.steady_now());
  SteadyTime next_line = parts_.clock.steady_now() + kProgressInterval;
  while (!events.terminating()) {
    parts_.errand.finish();
    if (events.take_reload() || (reload_waits_ && !jobs_.exchanging() && !parts_.errand.under_way())) {
      begin_reload();
    }
    const SteadyTime now = parts_.clock.steady_now();
    if (progress && now >= next_line) {
      parts_.log.print(progress_text(line.next(jobs_.total(), now), terminal));
      next_line = now + kProgressInterval;
    }
    if (until_empty && (empty() || jobs_.denial())) {
      break;  // what the role may not do it will not come to, however long it waits
    }
    events.wait_until(std::min(next_look(until_empty), progress ? next_line : SteadyTime::max()));
  }
  if (progress) {
    const std::string last = line.next(jobs_.total(), parts_.clock.steady_now());
    parts_.log.print(progress_text(last, terminal) + (terminal ? "\n" : ""));
  }
}

SteadyTime Host::next_look(bool until_empty) const {
  const SteadyTime now = parts_.clock.steady_now();
  return std::min(until_empty ? now + kQuiescenceLook : SteadyTime::max(),
                  reload_waits_ ? now + kReloadLook : SteadyTime::max());
}

bool Host::empty() {
  if (std::exchange(counted_empty_, false)) {
    // A job that sent on to a queue counted before would have been busy meanwhile.
    return jobs_.quiescent();
  }
  if (parts_.clock.steady_now() < next_empty_check_ || parts_.errand.under_way() || !jobs_.quiescent()) {
    return false;
  }
  parts_.errand.send([this, addresses = jobs_.addresses()] {
    return Errand::Rest([this, counted = emptiness_.empty(addresses)] { take_count(counted); });
  });
  return false;
}

void Host::take_count(const Result<bool>& empty) {
  next_empty_check_ = parts_.clock.steady_now() + kEmptyCheckInterval;
  counted_empty_ = empty && *empty;
  const std::string why = empty ? "" : empty.error().message();
  if (!why.empty() && why != uncountable_) {
    parts_.log.warn("cannot tell whether the queues are empty, so this run does not end by itself", {{"why", why}});
  }
  uncountable_ = why;
}

void Host::begin_reload() {
  if (jobs_.exchanging() || parts_.errand.under_way()) {
    reload_waits_ = true;
    parts_.log.info("reload waits for what is under way");
    return;
  }
  reload_waits_ = false;
  if (control_) {
    control_->reload_begins();
  }
  parts_.errand.send([this] {
    return Errand::Rest([this, next = plan_reload()] {
      if (next) {
        reload(*next);
      }
    });
  });
}

/// A reload reads job files and plugins; who has edited the host file beside them is told what that takes.
std::string Host::look_at_host_file() const {
  const auto read = config::load_host_config(ground_.config.file, config::process_environment());
  if (!read) {
    for (const config::ConfigError& error : read.error()) {
      parts_.log.warn("the host file has an error; this host runs on, and would not start again: " + error.text());
    }
    return "; the host file has an error, and this host would not start again: " + read.error().front().text();
  }
  const auto keys = config::changed_keys(ground_.config, *read);
  if (keys.empty()) {
    return {};
  }
  parts_.log.warn("the host file has changed, and these keys wait for a restart",
                  {{"file", ground_.config.file}, {"keys", joined(keys)}});
  return "; " + ground_.config.file +
         " is read at the start only, so these of its keys wait for a restart: " + joined(keys);
}

std::optional<JobSet::Exchange> Host::plan_reload() {
  host_file_remark_ = look_at_host_file();
  auto plans = load_job_plans(ground_.config, ground_.plugins, [this](const config::JobConfig& job) {
    const Handlers handlers = handlers_of(job, ground_.plugins);
    return std::none_of(handlers.begin(), handlers.end(),
                        [this](const auto* handler) { return ground_.plugins.is_stale(handler); }) &&
           jobs_.runs(job, handlers);
  });
  if (!plans) {
    refuse_reload(mapped(plans.error(), &config::ConfigError::text));
    return std::nullopt;
  }
  auto next = jobs_.prepare(*plans);
  if (!next) {
    refuse_reload({next.error().message()});
    return std::nullopt;
  }
  ward_.recover(*plans);
  next_schedules_ = schedules_of(*plans);
  return std::move(*next);
}

void Host::reload(JobSet::Exchange next) {
  JobSet::Changes changes = next.changes;
  const std::vector<std::string> old = on_old_code(next.leaving);
  changes.unchanged -= std::min(changes.unchanged, old.size());
  jobs_.exchange(std::move(next), ground_.config.drain_timeout);
  schedules_.take(next_schedules_);
  rates_.look();
  tell_reload({changes, {}, ground_.plugins.rejected()});
  if (!old.empty() && !parts_.reloaded) {
    parts_.log.warn("jobs run on with their old code", {{"jobs", joined(old)}});
  }
  std::string text = "reloaded; added: " + listed(changes.added) + "; changed: " + listed(changes.changed) +
                     "; removed: " + listed(changes.removed) + "; unchanged: " + std::to_string(changes.unchanged) +
                     (old.empty() ? "" : "; still with their old code: " + joined(old));
  for (const plugin::RejectedPlugin& rejected : ground_.plugins.rejected()) {
    text += "; not used: " + rejected.why;
  }
  answer_reload({.text = text + host_file_remark_});
}

std::vector<std::string> Host::on_old_code(const std::vector<std::string>& leaving) const {
  std::vector<std::string> old;
  const auto& rejected = ground_.plugins.rejected();
  for (const JobSet::Member& member : jobs_.members()) {
    const std::string& name = member.plan.config.name;
    const std::string& file = member.plan.plugin_file;
    if (contains(leaving, name)) {
      continue;
    }
    std::error_code code;
    const bool is_gone = !std::filesystem::exists(file, code) && !code;
    const std::filesystem::path path(file);
    // It, or its folder.
    const bool is_rejected = std::any_of(rejected.begin(), rejected.end(), [&](const auto& one) {
      return one.file == file || std::filesystem::path(one.file) / path.filename() == path;
    });
    if (is_gone || is_rejected) {
      old.push_back(name + (is_gone ? " (" + file + " is gone)" : ""));
    }
  }
  return old;
}

void Host::refuse_reload(const std::vector<std::string>& reasons) {
  tell_reload({{}, reasons, ground_.plugins.rejected()});
  answer_reload(ControlAnswer::refusal(joined(reasons, "\n")));
}

void Host::tell_reload(const ReloadNews& result) const {
  if (parts_.reloaded) {
    parts_.reloaded(result);
    return;
  }
  for (const plugin::RejectedPlugin& rejected : result.unused) {
    parts_.log.warn("plugin not used", {{"file", rejected.file}, {"why", rejected.why}});
  }
  for (const std::string& reason : result.refusals) {
    parts_.log.error("not reloaded: " + reason);
  }
  if (result.refusals.empty()) {
    parts_.log.info("reloaded", {{"added", listed(result.changes.added)},
                                 {"changed", listed(result.changes.changed)},
                                 {"removed", listed(result.changes.removed)},
                                 {"unchanged", result.changes.unchanged}});
  }
}

void Host::begin_drain() {
  this_host_.set_state(fleet::HostState::draining);
  fleet_.tell_now();
  schedules_.begin_leave(SteadyTime::max());
  if (wake_) {
    wake_->withdraw();
  }
  jobs_.begin_drain(Deadline::after(parts_.clock, ground_.config.drain_timeout));
}

JobSet::Drained Host::drain() {
  this_host_.set_state(fleet::HostState::draining);
  parts_.log.info("draining", {{"within", config::format_duration(ground_.config.drain_timeout)}});
  const Deadline deadline = Deadline::after(parts_.clock, ground_.config.drain_timeout);
  JobSet::Drained drained = jobs_.drain(deadline);
  if (!drained.clean) {
    this_host_.set_left_behind(joined(drained.left_behind));
  }
  const SteadyTime now = parts_.clock.steady_now();
  const SteadyTime last = std::clamp(deadline.time(), now + kShortestFarewell, now + kLongestFarewell);
  rates_.begin_leave(last);
  services_ended_ = fleet_.leave(last);
  services_ended_ = schedules_.leave(last) && services_ended_;
  services_ended_ = rates_.leave(last) && services_ended_;
  services_ended_ = (!wake_ || wake_->leave(last)) && services_ended_;
  // Last: it may be in the middle of a slow count, which must not cost the others their time.
  services_ended_ = depths_.leave(last) && services_ended_;
  return drained;
}

}  // namespace sluice::runtime
