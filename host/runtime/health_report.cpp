#include "host/runtime/health_report.hpp"

#include <numeric>
#include <set>

#include "base/ranges.hpp"
#include "base/text/decimal.hpp"
#include "base/text/json_string.hpp"
#include "host/plugin/metric_board.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::runtime {
namespace {

constexpr Duration kStatsTimeout = std::chrono::seconds(20);
/// A queue with a limit to its lag is counted no more often.
constexpr Duration kCountAgain = std::chrono::seconds(1);
// To count what nobody tells costs reads of all that lies there, up to 1 MB a shard of a leased table.
constexpr Duration kCountUntold = std::chrono::minutes(5);
/// For the looks at all queues together before a start.
constexpr Duration kProbeTimeout = std::chrono::seconds(15);

bool forbids_start(ErrorCode code) {
  return code == ErrorCode::queue_missing || code == ErrorCode::denied || code == ErrorCode::corrupt ||
         code == ErrorCode::invalid;
}

using observe::Figure;
using observe::FigureFamily;
using Labels = std::vector<std::pair<std::string, std::string>>;

/// A figure for each of the families.
void add(std::vector<FigureFamily>& families, const Labels& labels, std::initializer_list<double> values) {
  auto family = families.begin();
  for (const double value : values) {
    (family++)->figures.push_back({labels, value});
  }
}

/// One for each thing that is told of a usage.
std::vector<FigureFamily> usage_families(const std::string& prefix, const std::string& whose) {
  return {{prefix + "messages_total", "Messages claimed " + whose, true, {}},
          {prefix + "requests_total", "Requests to DynamoDB " + whose, true, {}},
          {prefix + "read_units_total", "Read capacity units used " + whose, true, {}},
          {prefix + "write_units_total", "Write capacity units used " + whose, true, {}},
          {prefix + "money_total", "What those units cost by the prices of [cost] " + whose, true, {}}};
}

void add(std::vector<FigureFamily>& families, const Labels& labels, const cost::Usage& usage,
         const cost::Prices& prices) {
  const cost::Spent& spent = usage.spent;
  add(families, labels, {usage.messages, spent.requests, spent.read_units, spent.write_units, prices.of(spent)});
  families.back().figures.back().labels.emplace_back("currency", prices.currency());
}

void move_into(std::vector<FigureFamily>& all, std::vector<FigureFamily>&& more) {
  std::move(more.begin(), more.end(), std::back_inserter(all));
}

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

void add_budgets(const cost::CostView& view, std::vector<FigureFamily>& all) {
  FigureFamily limits{"sluice_budget_units_per_second", "What this host may spend on a queue a second", false, {}};
  FigureFamily held{"sluice_budget_held", "1 while work on the queue waits for its budget", false, {}};
  FigureFamily waited{
      "sluice_budget_wait_seconds_total", "How long work on the queue has waited for its budget", true, {}};
  for (const cost::CostView::Budget& budget : view.budgets) {
    for (const auto& [unit, limit] :
         {std::pair("write", budget.limits.write_units), std::pair("read", budget.limits.read_units)}) {
      if (limit > 0) {
        limits.figures.push_back({{{"queue", budget.queue}, {"unit", unit}}, limit});
      }
    }
    held.figures.push_back({{{"queue", budget.queue}}, budget.holds ? 1.0 : 0.0});
    waited.figures.push_back({{{"queue", budget.queue}}, seconds(budget.waited)});
  }
  move_into(all, {std::move(limits), std::move(held), std::move(waited)});
}

constexpr unsigned kOk = 200;
constexpr unsigned kNotFound = 404;
constexpr unsigned kUnavailable = 503;
/// Numbers that are so many intervals old, and a minute at least, are none: the queue cannot be counted.
constexpr int kStaleIntervals = 10;

/// The workers of this host's jobs on the queue's own half.
struct Crew {
  std::uint64_t workers = 0;
  std::uint64_t running = 0;
  bool paused = true;  ///< all of them
  bool held = false;   ///< one of them, by a budget
};

Crew crew_of(const std::string& queue, const JobSet& jobs) {
  Crew crew;
  for (const JobSet::Member& member : jobs.members()) {
    const auto addresses = work::addresses_of(member.plan.config);
    const queue::QueueAddress here{queue, queue::Half::standard};
    if (std::find(addresses.begin(), addresses.end(), here) == addresses.end()) {
      continue;
    }
    const work::JobActivity activity = member.job->activity();
    crew.workers += activity.workers;
    crew.running += activity.running.size();
    crew.paused = crew.paused && activity.paused;
    crew.held = crew.held || activity.held_by_budget;
  }
  crew.paused = crew.paused && crew.workers > 0;
  return crew;
}

std::string seconds_text(Duration duration) { return fixed_decimal(seconds(duration), 3); }

observe::HttpReply unavailable(const std::string& queue, const std::string& why) {
  return {kUnavailable, "{\"queue\": " + json_quoted(queue) + ", \"error\": " + json_quoted(why) + "}\n"};
}

observe::HttpReply unknown(const std::string& queue, const std::set<std::string>& known) {
  return {kNotFound, "{\"error\": " + json_quoted("no job of this host works on queue " + queue) + ", \"queues\": [" +
                         joined(mapped(known, json_quoted), ",") + "]}\n"};
}

/// "store", "store archive" or "outbox orders": where a queue lies.
std::string place_of(const std::string& queue, const config::HostConfig& config) {
  if (const auto outbox = config::outbox_named(queue)) {
    return "outbox " + *outbox;
  }
  const std::string store = config.queue(queue).store;
  return store.empty() ? "store" : "store " + store;
}

std::string seconds_of(Duration span) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(span).count()) + " s";
}

// "lag orders" for "outbox:orders".
observe::Component lag_component(const std::string& queue, const DepthSampler::Lag& lag) {
  std::string text = lag.unknown.empty() ? "the oldest row has waited " + seconds_of(lag.age) + " (counted " +
                                               seconds_of(lag.counted_ago) + " ago)"
                                         : "how long the oldest row has waited is not known: " + lag.unknown;
  if (lag.limit > Duration::zero()) {
    text += ", lag_limit is " + seconds_of(lag.limit);
  }
  return {"lag " + queue.substr(config::kOutboxPrefix.size()), !lag.beyond(), std::move(text)};
}

void add_places(const HealthSources& sources, std::vector<observe::Component>& all) {
  std::map<std::string, observe::Component> places;
  for (const JobSet::Member& member : sources.jobs.members()) {
    const std::optional<Error> trouble = member.job->activity().trouble;
    for (const config::WeightedQueue& queue : work::queues_of(member.plan.config)) {
      const std::string name = place_of(queue.name, sources.config);
      observe::Component& place = places.try_emplace(name, observe::Component{name, true, "ok"}).first->second;
      if (trouble && place.ok) {
        place.ok = false;
        place.text = "job " + member.plan.config.name + " cannot work: " + trouble->message();
      }
    }
  }
  for (auto& [name, place] : places) {
    all.push_back(std::move(place));
  }
}

std::vector<observe::Component> components_of(const HealthSources& sources) {
  std::vector<observe::Component> all;
  add_places(sources, all);
  const std::string& trouble = sources.ledger_trouble;
  all.push_back({"crash ledger", trouble.empty(), trouble.empty() ? "ok" : trouble});
  for (const JobSet::Member& member : sources.jobs.members()) {
    // "broker relay": what the job's handlers say of their broker.
    for (plugin::PartHealth& part : member.job->parts()) {
      all.push_back({part.part + " " + member.plan.config.name, part.works, std::move(part.text)});
    }
  }
  for (const auto& [queue, lag] : sources.lags) {
    if (config::outbox_named(queue)) {
      all.push_back(lag_component(queue, lag));
    }
  }
  for (const observe::SenderStatus& status : sources.senders) {
    const auto& figures = status.figures;
    std::string text = status.trouble.empty() ? "ok" : status.trouble;
    text += "; " + std::to_string(figures.sent) + " sent, " + std::to_string(figures.waiting) + " waiting, " +
            std::to_string(figures.dropped) + " dropped";
    all.push_back({"sender " + status.name, status.trouble.empty(), std::move(text)});
  }
  return all;
}

}  // namespace

DepthSampler::DepthSampler(Addresses addresses, queue::Queues& queues, const Clock& clock, Duration interval,
                           Limits limits)
    : RepeatingService("sluice-depths", clock),
      addresses_(std::move(addresses)),
      queues_(queues),
      interval_(interval),
      limits_(std::move(limits)),
      pace_(std::accumulate(limits_.begin(), limits_.end(), interval, [](Duration pace, const auto& limit) {
        return std::min(pace, std::max(limit.second / 2, kCountAgain));
      })) {}

SteadyTime DepthSampler::step(const std::stop_token& stop) {
  const SteadyTime begun = clock_.steady_now();
  if (begun < next_) {
    return next_;
  }
  const bool all = begun >= all_again_ && asked_.exchange(false);
  if (!all && limits_.empty()) {
    return asked_ ? all_again_ : SteadyTime::max();
  }
  if (all) {
    all_again_ = begun + interval_;
  }
  next_ = begun + (sample(stop, all) ? pace_ : std::min(pace_, kCountAgain));
  return next_;
}

bool DepthSampler::sample(const std::stop_token& stop, bool all) {
  std::set<std::string> names;
  for (const queue::QueueAddress& address : addresses_()) {
    if (all || limits_.contains(address.queue)) {
      names.insert(address.queue);
    }
  }
  const std::set<std::string> worked = names;
  const SteadyTime begun = clock_.steady_now();
  // Nobody works on some of them; where messages cannot make queues there are no more.
  const auto made = all ? queues_.made_by_messages(Deadline::after(clock_, kStatsTimeout))
                        : Result<std::vector<std::string>>(std::vector<std::string>());
  if (made) {
    names.insert(made->begin(), made->end());
  }
  std::map<std::string, std::string> uncounted;
  for (const std::string& name : names) {
    if (stop.stop_requested()) {
      return true;
    }
    auto depth = count(name, true);
    // A queue without a job has an owner only while another host works on it.
    if (!depth && depth.error().code() == ErrorCode::unavailable && !worked.contains(name)) {
      SteadyTime& again = untold_again_[name];
      if (begun < again) {
        continue;
      }
      again = begun + kCountUntold;
      depth = count(name, false);
    }
    if (depth) {
      const MutexLock lock(mutex_);
      depths_[name] = *depth;
    } else if (limits_.contains(name)) {
      uncounted[name] = depth.error().message();
    }
  }
  const MutexLock lock(mutex_);
  std::erase_if(depths_, [&](const auto& known) {
    // No job works on it any more.
    return !names.contains(known.first) && (all ? made.has_value() : limits_.contains(known.first));
  });
  uncounted_ = std::move(uncounted);
  return uncounted_.empty();
}

// The claims of the same queue report a failure; what was counted last stays.
Result<QueueDepth> DepthSampler::count(const std::string& name, bool cheap) {
  SLUICE_TRY(counted, opened(operators_, name, [&] { return queues_.open_operator(name); }));
  const SteadyTime asked_at = clock_.steady_now();
  const Deadline deadline = Deadline::after(clock_, kStatsTimeout);
  SLUICE_TRY(standard, (*counted)->stats({.half = queue::Half::standard, .cheap = cheap}, deadline));
  SLUICE_TRY(dlq, (*counted)->stats({.half = queue::Half::dlq, .cheap = cheap}, deadline));
  QueueDepth depth{.standard = *standard, .dlq = *dlq, .at = asked_at};
  if (standard->oldest_ready) {
    depth.oldest = std::max(Duration(clock_.wall_now() - *standard->oldest_ready), Duration::zero());
  }
  return depth;
}

std::map<std::string, DepthSampler::Lag> DepthSampler::lags() const {
  std::map<std::string, Lag> lags;
  const SteadyTime now = clock_.steady_now();
  const MutexLock lock(mutex_);
  for (const auto& [name, depth] : depths_) {
    lags[name] = {.age = depth.oldest, .counted_ago = now - depth.at};
  }
  for (const auto& [name, why] : uncounted_) {
    lags[name].unknown = why;
  }
  for (auto& [name, lag] : lags) {
    const auto limit = limits_.find(name);
    lag.limit = limit == limits_.end() ? Duration::zero() : limit->second;
  }
  return lags;
}

Result<bool> EmptyCheck::empty(const std::vector<queue::QueueAddress>& addresses) {
  // The cheap look first; it reads an index, which lags behind the table.
  for (const bool consistent : {false, SLUICE_GUARD(index_lag)}) {
    for (const queue::QueueAddress& address : addresses) {
      auto counted = empty(address, consistent);
      if (!counted) {
        return Error(counted.error().code(),
                     "cannot count what is left in queue " + address.queue + ": " + counted.error().message());
      }
      if (!*counted) {
        return false;
      }
    }
  }
  return true;
}

Result<bool> EmptyCheck::empty(const queue::QueueAddress& address, bool consistent) {
  SLUICE_TRY(counted, opened(operators_, address.queue, [&] { return queues_.open_operator(address.queue); }));
  const auto stats =
      (*counted)->stats({.half = address.half, .consistent = consistent}, Deadline::after(clock_, kStatsTimeout));
  SLUICE_PASS_ON(stats);
  return stats->ready == 0 && stats->in_flight == 0;
}

Result<void> probe_queues(std::vector<std::string> names, queue::Queues& queues, const Clock& clock, observe::Log& log,
                          const ExplainQueue& explain) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const Deadline deadline = Deadline::after(clock, kProbeTimeout);
  for (const std::string& name : names) {
    const auto opened = queues.open_operator(name);
    const auto page =
        opened ? (*opened)->list({.limit = 1, .content = false}, deadline) : Result<queue::ListPage>(opened.error());
    if (!page && forbids_start(page.error().code())) {
      return Error(page.error().code(), explain(name, page.error()));
    }
    if (!page) {
      log.warn("queue does not answer yet", {{"queue", name}, {"error", page.error().message()}});
    }
  }
  return {};
}

std::vector<FigureFamily> depth_figures(const DepthSampler& depths, SteadyTime now) {
  FigureFamily messages{"sluice_queue_depth", "Messages in a queue by state, sampled", false, {}};
  FigureFamily oldest{
      "sluice_queue_oldest_seconds", "How long the oldest ready message has waited, sampled", false, {}};
  FigureFamily backlog{"sluice_queue_backlog", "Messages that are due or being worked on, sampled", false, {}};
  FigureFamily age{"sluice_queue_sample_age_seconds", "How old the sampled depth of a queue is", false, {}};
  FigureFamily estimated{"sluice_queue_depth_estimated",
                         "1 where a sampled depth is an estimate or a lower bound, 0 where it is exact",
                         false,
                         {}};
  for (const auto& [queue, depth] : depths.depths()) {
    for (const auto& [half, stats] : {std::pair("standard", &depth.standard), std::pair("dlq", &depth.dlq)}) {
      estimated.figures.push_back({{{"queue", queue}, {"half", half}}, stats->at_least ? 1.0 : 0.0});
    }
    const queue::QueueStats& stats = depth.standard;
    for (const auto& [state, count] : {std::pair("ready", stats.ready), std::pair("in_flight", stats.in_flight),
                                       std::pair("delayed", stats.delayed), std::pair("dlq", depth.dead_letters())}) {
      messages.figures.push_back({{{"queue", queue}, {"state", state}}, static_cast<double>(count)});
    }
    oldest.figures.push_back({{{"queue", queue}}, seconds(depth.oldest)});
    backlog.figures.push_back({{{"queue", queue}}, static_cast<double>(depth.backlog())});
    age.figures.push_back({{{"queue", queue}}, seconds(depth.age(now))});
  }
  return {std::move(messages), std::move(oldest), std::move(backlog), std::move(age), std::move(estimated)};
}

std::vector<observe::FigureFamily> ledger_figures(bool kept) {
  return {{"sluice_crash_ledger",
           "1 while this host keeps its crash ledger, 0 while it cannot",
           false,
           {{{}, kept ? 1.0 : 0.0}}}};
}

std::vector<FigureFamily> sender_figures(const std::vector<observe::SenderStatus>& statuses) {
  if (statuses.empty()) {
    return {};
  }
  std::vector<FigureFamily> all{{"sluice_sender_sent_total", "Log lines or spans that their collector took", true, {}},
                                {"sluice_sender_dropped_total", "Log lines or spans that were given up", true, {}},
                                {"sluice_sender_failures_total", "Requests to a collector that failed", true, {}},
                                {"sluice_sender_queue", "Log lines or spans that wait for their collector", false, {}}};
  for (const observe::SenderStatus& status : statuses) {
    const auto& told = status.figures;
    add(all, {{"sender", status.name}},
        {static_cast<double>(told.sent), static_cast<double>(told.dropped), static_cast<double>(told.failed),
         static_cast<double>(told.waiting)});
  }
  return all;
}

std::vector<FigureFamily> cost_figures(const cost::CostView& view, const cost::Prices& prices) {
  std::vector<FigureFamily> all = usage_families("sluice_cost_", "for a job's work on a queue");
  for (const cost::CostView::Row& row : view.rows) {
    add(all, {{"sluice_job", row.job}, {"queue", row.queue}}, row.total, prices);
  }
  if (!view.attribute.empty()) {
    auto values = usage_families("sluice_attribute_", "for messages by a value of their attribute");
    for (const cost::TopValues::Named& named : view.values.values) {
      add(values, {{"attribute", view.attribute}, {"value", named.value}}, named.usage, prices);
    }
    add(values, {{"attribute", view.attribute}, {"value", std::string(cost::kOtherValues)}}, view.values.other, prices);
    move_into(all, std::move(values));
  }
  if (!view.budgets.empty()) {
    add_budgets(view, all);
  }
  return all;
}

namespace {

/// As Prometheus counts a histogram: what is up to each bound, and all of it in the end.
observe::Figure figure_of(const std::string& job, const plugin::MetricFigures& metric, plugin::SeriesFigures series) {
  observe::Figure figure{{{"sluice_job", job}}, series.value};
  std::move(series.labels.begin(), series.labels.end(), std::back_inserter(figure.labels));
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < series.counts.size(); ++i) {
    sum += series.counts[i];
    figure.buckets.emplace_back(i < metric.bounds.size() ? metric.bounds[i] : std::numeric_limits<double>::infinity(),
                                sum);
  }
  return figure;
}

/// The family of a name, and the job that had it first.
struct NamedFamily {
  FigureFamily family;
  sluice_metric_kind kind;
  std::string job;
};

void add_metric(const MetricBoards::value_type& entry, plugin::MetricFigures metric,
                std::map<std::string, NamedFamily>& by_name) {
  const auto& [job, board] = entry;
  const auto [found, first] = by_name.try_emplace(metric.name);
  NamedFamily& named = found->second;
  if (first) {
    named = {{.name = "sluice_plugin_" + metric.name,
              .help = metric.help,
              .counter = metric.kind == SLUICE_METRIC_COUNTER,
              .figures = {},
              .histogram = metric.kind == SLUICE_METRIC_HISTOGRAM},
             metric.kind,
             job};
  }
  if (named.kind != metric.kind) {
    board->refuse(metric.name, "job '" + named.job + "' has one of that name and another kind; give it another name");
    return;
  }
  for (plugin::SeriesFigures& series : metric.series) {
    named.family.figures.push_back(figure_of(job, metric, std::move(series)));
  }
}

}  // namespace

std::vector<FigureFamily> plugin_figures(const MetricBoards& boards) {
  std::map<std::string, NamedFamily> by_name;
  FigureFamily dropped{.name = "sluice_metrics_dropped_total",
                       .help = "What plugins said to metrics that are not taken; the job's log says why",
                       .counter = true,
                       .figures = {}};
  for (const auto& entry : boards) {
    auto metrics = entry.second->figures();
    const std::uint64_t lost = entry.second->dropped();
    if (!metrics.empty() || lost > 0) {
      dropped.figures.push_back({{{"sluice_job", entry.first}}, static_cast<double>(lost)});
    }
    for (plugin::MetricFigures& metric : metrics) {
      add_metric(entry, std::move(metric), by_name);
    }
  }
  std::vector<FigureFamily> all;
  all.reserve(by_name.size() + 1);
  for (auto& [name, named] : by_name) {
    all.push_back(std::move(named.family));
  }
  if (!dropped.figures.empty()) {
    all.push_back(std::move(dropped));
  }
  return all;
}

MetricBoards boards_of(const JobSet& jobs) {
  return mapped(jobs.members(),
                [](const JobSet::Member& member) { return std::pair(member.plan.config.name, member.job->metrics()); });
}

observe::HttpReply scale_of(std::string_view queue, const JobSet& jobs, const std::optional<QueueDepth>& depth,
                            Duration interval, SteadyTime now) {
  const std::string name(queue);
  std::set<std::string> known;
  for (const queue::QueueAddress& address : jobs.addresses()) {
    known.insert(address.queue);
  }
  if (!known.contains(name)) {
    return unknown(name, known);
  }
  if (!depth) {
    return unavailable(name, "not counted yet; ask again in a moment");
  }
  const Duration age = depth->age(now);
  if (age > std::max<Duration>(std::chrono::minutes(1), interval * kStaleIntervals)) {
    return unavailable(name, "the last count is " + seconds_text(age) +
                                 " s old; ask again in a moment, and look at /healthz if that does not help");
  }
  if (depth->backlog() == 0 && depth->standard.at_least) {
    return unavailable(name, "nothing is known to wait, and not all of it has been counted yet; ask again in a moment");
  }
  const Crew crew = crew_of(name, jobs);
  const auto flag = [](bool set) { return set ? "true" : "false"; };
  return {kOk, "{\"queue\": " + json_quoted(name) + ", \"backlog\": " + std::to_string(depth->backlog()) +
                   ", \"ready\": " + std::to_string(depth->standard.ready) +
                   ", \"delayed\": " + std::to_string(depth->standard.delayed) +
                   ", \"in_flight\": " + std::to_string(depth->standard.in_flight) + ", \"dead_letters\": " +
                   std::to_string(depth->dead_letters()) + ", \"oldest_due_seconds\": " + seconds_text(depth->oldest) +
                   ", \"age_seconds\": " + seconds_text(age) + ", \"approximate\": " + flag(depth->standard.at_least) +
                   ", \"at_least\": " + flag(depth->standard.at_least) +
                   ", \"workers\": " + std::to_string(crew.workers) + ", \"running\": " + std::to_string(crew.running) +
                   ", \"paused\": " + flag(crew.paused) + ", \"held_by_budget\": " + flag(crew.held) + "}\n"};
}

observe::ProbeResult health_of(const JobSet& jobs) {
  auto stuck = jobs.running();
  std::erase_if(stuck, [](const auto& at_work) { return !at_work.second.stuck; });
  if (stuck.empty()) {
    return {true, "healthy", {}};
  }
  const auto& [job, handler] = stuck.front();
  std::string text = "handler " + job->config().handler + " of job " + job->config().name +
                     " does not return from message " + handler.message_id;
  if (stuck.size() > 1) {
    text += ", and " + std::to_string(stuck.size() - 1) + " more do not return";
  }
  // Each has its place taken by a new worker, so that a restart is not called for yet.
  return jobs.out_of_workers()
             ? observe::ProbeResult{false, text + "; no more workers take their place: restart the host", {}}
             : observe::ProbeResult{true, "healthy, but " + text, {}};
}

observe::ProbeResult health_of(const HealthSources& sources) {
  observe::ProbeResult result = health_of(sources.jobs);
  result.components = components_of(sources);
  return result;
}

bool is_cut_off(const JobSet::Member& member, const work::JobActivity& activity) {
  const bool away =
      activity.trouble && !activity.paused &&
      (activity.trouble->code() == ErrorCode::unavailable || activity.trouble->code() == ErrorCode::timeout);
  return activity.trouble && (activity.cut_off || (away && config::outbox_named(member.plan.config.queue)));
}

std::string unreadiness_of(const JobSet& jobs, const Lags& lags) {
  if (const auto denial = jobs.denial()) {
    return "job " + denial->first + " may not do its work: " + denial->second.message();
  }
  for (const JobSet::Member& member : jobs.members()) {
    const work::JobActivity activity = member.job->activity();
    if (is_cut_off(member, activity)) {
      return "job " + member.plan.config.name + " cannot work: " + activity.trouble->message();
    }
  }
  for (const auto& [queue, lag] : lags) {
    if (lag.beyond()) {
      return queue + (lag.unknown.empty() ? " lags: " : ": ") + lag_component(queue, lag).text;
    }
  }
  return {};
}

observe::ProbeResult readiness_of(bool running, const HealthSources& sources) {
  const std::string why = running ? unreadiness_of(sources.jobs, sources.lags) : "starting or draining";
  observe::ProbeResult result{why.empty(), why.empty() ? "ready" : "not ready: " + why, {}};
  result.components = components_of(sources);
  return result;
}

DepthSampler::Limits lag_limits_of(const config::HostConfig& config) {
  DepthSampler::Limits limits;
  for (const auto& [name, outbox] : config.outboxes) {
    if (outbox.lag_limit > Duration::zero()) {
      limits.emplace(std::string(config::kOutboxPrefix) + name, outbox.lag_limit);
    }
  }
  return limits;
}

}  // namespace sluice::runtime
