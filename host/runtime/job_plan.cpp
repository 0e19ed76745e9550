#include "host/runtime/job_plan.hpp"

#include <unistd.h>

#include <cstdlib>
#include <set>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "config/files.hpp"
#include "config/words.hpp"
#include "host/isolation/trial_child.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::runtime {
namespace {

using config::ConfigError;
using config::JobConfig;

const queue::SourceTraits& traits_of(const config::HostConfig& host, const std::string& queue) {
  if (host.store_of(queue).kind == config::StoreKind::sqlite) {
    return queue::kSqliteTraits;
  }
  return host.leased(queue) ? queue::leased::kLeasedTraits : queue::dynamomq::kDynamoMqTraits;
}

/// Whole queues in order need one line, and a leased queue has one for each of its shards; empty: nothing.
std::string shards_refusal(const config::HostConfig& host, const JobConfig& job, const std::string& queue) {
  const std::uint32_t shards = host.queue(queue).shards;
  if (job.order != config::Order::queue || !host.leased(queue) || shards == 1) {
    return {};
  }
  return "queue \"" + queue + "\" has " + std::to_string(shards) +
         " shards, each with an order of its own; give it shards = 1, or use order = \"group\"";
}

constexpr std::string_view kNoPriorities =
    "which has no priorities; use a queue for each class and one job with queues = [\"urgent:6\", \"bulk:1\"], "
    "layout = \"leased\", or a SQLite store";

bool weighs_priorities(const JobConfig& job) {
  return job.weighs_priorities || !(job.priorities == config::PriorityWeights());
}

std::string where(const std::string& queue) { return "queue \"" + queue + "\" lies in a DynamoDB table, "; }

/// What one queue of a job cannot give; empty: nothing.
std::string refusal(const JobConfig& job, const std::string& queue, const queue::SourceTraits& traits) {
  struct Demand {
    bool wanted;
    bool granted;
    std::string_view why_not;
  };
  const std::array wishes{
      Demand{job.order == config::Order::group, traits.groups,
             "where groups cannot be kept in order beside Go programs, which would take their messages in between; use "
             "order = \"queue\", a queue for each group, layout = \"leased\", or a SQLite store"},
      Demand{job.order == config::Order::queue, traits.sequence,
             "which cannot hand out one message after the other; use a SQLite store"},
      Demand{job.fair, traits.groups,
             "which has no turns by group; use a queue for each group and one job with queues = [\"a:1\", \"b:1\"], "
             "layout = \"leased\", or a SQLite store"},
      Demand{job.on_dead_letter == config::OnDeadLetter::hold, traits.groups,
             "where nothing can be held behind a dead letter, since Go programs would go on; use on_dead_letter = "
             "\"continue\", layout = \"leased\", or a SQLite store"},
      Demand{weighs_priorities(job), traits.priorities, kNoPriorities}};
  const auto* const refused = find_where(wishes, [](const Demand& wish) { return wish.wanted && !wish.granted; });
  return refused == nullptr ? std::string() : where(queue) + std::string(refused->why_not);
}

/// What its schedules send and the store of their queue does not take.
void add_schedules(const config::HostConfig& host, const JobConfig& job, std::vector<ConfigError>& errors) {
  for (const config::ScheduleConfig& schedule : job.schedules) {
    const bool normal = schedule.priority.empty() || schedule.priority == "normal";
    if (!normal && !traits_of(host, schedule.queue).priorities) {
      errors.push_back({schedule.place, where(schedule.queue) + std::string(kNoPriorities)});
    }
  }
}

/// What a job wants of a handler that takes its messages in another way; empty: nothing.
std::string work_refusal(const JobConfig& job, plugin::HandlerKind kind) {
  const std::string handler = "the handler \"" + job.handler + "\" ";
  if (kind != plugin::HandlerKind::batch && (job.max_batch > 0 || job.max_wait > Duration::zero())) {
    return handler +
           "takes one message at a time, so max_batch and max_wait mean nothing; take them away, or give it "
           "handle(std::span<const sluice::Message>, sluice::BatchContext&)";
  }
  const bool apart = job.isolation == config::Isolation::process;
  if ((kind != plugin::HandlerKind::async || apart) && job.concurrency > config::kMaxConcurrency) {
    return handler + "takes " + (apart ? "a process" : "a thread") +
           " for each message at work, of which a job has at most " + std::to_string(config::kMaxConcurrency) +
           "; lower concurrency from " + std::to_string(job.concurrency) +
           (apart ? ", or take isolation = \"process\" away" : ", or make the handler asynchronous");
  }
  return {};
}

std::string order_text(const JobConfig& job) {
  return std::string("order = \"") + config::word_of(job.order) + "\"" + (job.fair ? " and fair = true" : "") +
         (job.on_dead_letter == config::OnDeadLetter::hold ? " and on_dead_letter = \"hold\"" : "");
}

/// What is to be tried. A value.
struct TrialRequest {
  std::vector<std::string> files;  ///< plugins to load, in this order
  plugin::PluginPins pins;         ///< digests that files have to have, or they are not loaded there either
  std::string host_file;           ///< whose job files are read, when there are jobs
  std::vector<std::string> jobs;   ///< names of jobs whose handlers are to be made and destroyed
};

/// What must not be let into this process, by the path of the file or the name of the job, and why: text that follows
/// the name of the file or the handler.
using TrialVerdict = std::map<std::string, std::string>;

// The steps, each followed by the name of a file or a job.
constexpr std::string_view kLoad = "load ";
constexpr std::string_view kCreate = "create ";
constexpr std::string_view kDestroy = "destroy ";

std::vector<std::string> command_line(const TrialRequest& request) {
  std::vector<std::string> words{kTrialWord};
  const auto add = [&words](const char* name, const std::string& value) {
    words.emplace_back(name);
    words.push_back(value);
  };
  for (const auto& [name, sha256] : request.pins) {
    add("--pin", sha256 + name);
  }
  for (const std::string& file : request.files) {
    add("--file", file);
  }
  for (const std::string& job : request.jobs) {
    add("--job", job);
  }
  if (!request.jobs.empty()) {
    add("--config", request.host_file);
  }
  return words;
}

/// Of the words that follow "--pin".
plugin::PluginPins read_pins(const std::vector<std::string>& words) {
  constexpr std::size_t kDigits = 64;
  plugin::PluginPins pins;
  for (const std::string& word : words) {
    if (word.size() > kDigits) {
      pins.emplace(word.substr(kDigits), word.substr(0, kDigits));
    }
  }
  return pins;
}

/// Moves what the step was about from the request to the verdict; false when the trial ended in no such step.
bool blame(const isolation::TrialEnd& end, TrialRequest& request, TrialVerdict& verdict) {
  for (const auto& [step, when] :
       {std::pair(kLoad, "loaded"), std::pair(kCreate, "created"), std::pair(kDestroy, "destroyed")}) {
    if (end.step.starts_with(step)) {
      const std::string name = end.step.substr(step.size());
      verdict[name] = end.cause + " when it was " + when;
      return std::erase(step == kLoad ? request.files : request.jobs, name) > 0;
    }
  }
  return false;
}

void try_job(const config::JobConfig& job, const plugin::EffectRules& effects, const plugin::PluginRegistry& registry,
             const isolation::TrialSteps& steps) {
  const auto planned = plan_jobs({job}, registry);
  if (!planned) {
    return;
  }
  const JobPlan& plan = planned->front();
  steps.next(kCreate, job.name);
  const auto instance = plugin::make_within({{}, effects}, *plan.handler, job.name, plan.options, plan.arounds);
  steps.next(kDestroy, job.name);
}

/// Of which kind the handlers of the plugin are that was loaded last: whoever shows or binds them asks it.
void ask_kinds(const plugin::PluginRegistry& registry) {
  if (registry.plugins().empty()) {
    return;
  }
  const sluice_plugin& plugin = *registry.plugins().back().plugin;
  for (const sluice_handler* handler : std::span(plugin.handlers, plugin.handler_count)) {
    static_cast<void>(plugin::around_of(*handler));
  }
}

void try_jobs(const std::string& host_file, const std::vector<std::string>& names,
              const plugin::PluginRegistry& registry, const isolation::TrialSteps& steps) {
  const auto environment = config::process_environment();
  const auto host = config::load_host_config(host_file, environment);
  if (!host) {
    return;
  }
  SeededRandom random;
  const SystemClock clock;
  for (const config::JobConfig& job : config::load_job_files(*host, environment).jobs) {
    if (std::find(names.begin(), names.end(), job.name) != names.end()) {
      try_job(job, plugin::effect_rules(job, host->store_of(job.queue).kind, random, clock), registry, steps);
    }
  }
}

/// Tries plugins in a process of their own before this one loads them: what their start-up code and constructors do to
/// a process (crash it, exit, never return) they do to that one. One process when all is well, and one more for each
/// file or job that is refused. Fails when there is no process to be had, or it cannot even begin.
Result<TrialVerdict> try_plugins(TrialRequest request) {
  TrialVerdict verdict;
  while (!request.files.empty() || !request.jobs.empty()) {
    SLUICE_TRY(end, isolation::run_trial({command_line(request)}));
    if (end->cause.empty()) {
      break;
    }
    if (!blame(*end, request, verdict)) {
      return Error(ErrorCode::unavailable, "plugins cannot be tried: the process for it " + end->cause);
    }
  }
  return verdict;
}

}  // namespace

using config::Parsed;

namespace {

/// Binds one job, and gathers everything that is wrong with it.
class Planner {
 public:
  Planner(const JobConfig& job, const plugin::PluginRegistry& registry, std::vector<ConfigError>& errors)
      : job_(job), registry_(registry), errors_(errors) {}

  /// Whether all is well with it.
  bool plan(JobPlan& plan) {
    const std::size_t before = errors_.size();
    plan.config = job_;
    plan_handler(plan);
    const bool overlaps = plan.handler != nullptr && plugin::kind_of(*plan.handler) == plugin::HandlerKind::async &&
                          job_.isolation == config::Isolation::thread;
    for (const config::AroundConfig& around : job_.arounds) {
      plan.arounds.push_back(plan_around(around));
      const sluice_handler* const found = plan.arounds.back().handler;
      if (overlaps && found != nullptr && !plugin::is_concurrent(*found)) {
        refuse(around.handler_place, "\"" + around.handler +
                                         "\" takes one call at a time, and those of the asynchronous handler \"" +
                                         job_.handler + "\" overlap: make its enter and leave const");
      }
    }
    return errors_.size() == before;
  }

 private:
  void refuse(const config::Place& place, std::string why) { errors_.push_back({place, std::move(why)}); }
  plugin::OptionValues take(Parsed<plugin::OptionValues> bound) {
    for (const ConfigError& wrong : bound ? std::vector<ConfigError>() : bound.error()) {
      errors_.push_back(wrong);
    }
    return bound ? std::move(*bound) : plugin::OptionValues();
  }

  void plan_handler(JobPlan& plan) {
    const auto handler = find_handler(registry_, job_);
    if (!handler) {
      return refuse(job_.plugin ? job_.plugin->place : job_.handler_place, handler.error().message());
    }
    if (plugin::around_of(**handler) != nullptr) {
      return refuse(job_.handler_place, "\"" + job_.handler +
                                            "\" goes around other handlers and handles no message itself: name it in "
                                            "[[job.around]], and here the handler that it is to go around");
    }
    if (std::string why = work_refusal(job_, plugin::kind_of(**handler)); !why.empty()) {
      refuse(job_.handler_place, std::move(why));
    }
    plan.handler = *handler;
    plan.options = take(plugin::bind_options(**handler, job_));
    const plugin::LoadedPlugin* const owner = registry_.owner_of(*handler);
    plan.plugin_file = owner->file;
    plan.plugin_version = owner->plugin->version == nullptr ? "" : owner->plugin->version;
  }

  plugin::AroundSpec plan_around(const config::AroundConfig& around) {
    const auto handler = registry_.handler(around.handler);
    if (!handler) {
      refuse(around.handler_place, handler.error().message());
      return {};
    }
    if (plugin::around_of(**handler) == nullptr) {
      refuse(around.handler_place, "\"" + around.handler +
                                       "\" handles messages and goes around no other handler: it is to be the "
                                       "'handler' of a job; " +
                                       known_arounds());
      return {};
    }
    return {*handler,
            take(plugin::bind_options(**handler, {around.options, around.handler_place, "[job.around.options]"}))};
  }

  std::string known_arounds() const {
    std::vector<std::string> names;
    for (const std::string& name : registry_.handler_names()) {
      const auto handler = registry_.handler(name);
      if (handler && plugin::around_of(**handler) != nullptr) {
        names.push_back(name);
      }
    }
    return names.empty() ? "no plugin offers one that goes around" : "those that go around are: " + joined(names);
  }

  const JobConfig& job_;
  const plugin::PluginRegistry& registry_;
  std::vector<ConfigError>& errors_;
};

}  // namespace

Parsed<std::vector<JobPlan>> plan_jobs(const std::vector<JobConfig>& jobs, const plugin::PluginRegistry& registry) {
  std::vector<JobPlan> plans;
  std::vector<ConfigError> errors;
  for (const JobConfig& job : jobs) {
    JobPlan plan;
    if (Planner(job, registry, errors).plan(plan)) {
      plans.push_back(std::move(plan));
    }
  }
  if (!errors.empty()) {
    return errors;
  }
  return plans;
}

Handlers handlers_of(const JobConfig& job, const plugin::PluginRegistry& registry) {
  const auto handler = find_handler(registry, job);
  Handlers all;
  if (handler) {
    all.push_back(*handler);
  }
  for (const config::AroundConfig& around : job.arounds) {
    if (const auto found = registry.handler(around.handler)) {
      all.push_back(*found);
    }
  }
  return all.size() == job.arounds.size() + 1 ? all : Handlers();
}

std::set<std::string> handler_names_of(const std::vector<JobConfig>& jobs) {
  std::set<std::string> names;
  for (const JobConfig& job : jobs) {
    names.insert(job.handler);
    for (const config::AroundConfig& around : job.arounds) {
      names.insert(around.handler);
    }
  }
  return names;
}

std::vector<ConfigError> distrusted(const config::HostConfig& host, const std::vector<JobConfig>& jobs) {
  std::vector<ConfigError> errors;
  if (host.allow_insecure_files) {
    return errors;
  }
  std::vector<std::string> files = mapped(jobs, &JobConfig::file);
  files.insert(files.begin(), {host.file, host.state_dir});
  for (const std::string& file : files) {
    if (const auto why = config::distrust(file)) {
      errors.push_back({{file}, *why});
    }
  }
  return errors;
}

Parsed<std::vector<JobPlan>> load_job_plans(const config::HostConfig& host, plugin::PluginRegistry& registry,
                                            const RunsAlready& runs_already) {
  auto files = config::load_job_files(host, config::process_environment());
  auto& errors = files.errors;
  const auto add = [&errors](std::vector<ConfigError> more) {
    std::move(more.begin(), more.end(), std::back_inserter(errors));
  };
  add(distrusted(host, files.jobs));
  add(refused_rules(host, files.jobs));
  std::vector<JobConfig> fresh;
  if (errors.empty()) {
    std::copy_if(files.jobs.begin(), files.jobs.end(), std::back_inserter(fresh),
                 [&runs_already](const JobConfig& job) { return !runs_already(job); });
  }
  registry.pin(plugin::pins_of(files.jobs));
  registry.need_only(config::installed_plugin_dir(), handler_names_of(files.jobs));
  auto admitted = admit_plugins(host, registry, fresh);
  if (!admitted) {
    add({{{host.file}, admitted.error().message()}});
    return std::move(errors);
  }
  add(std::move(*admitted));
  // The good jobs are bound even when others are bad, so that everything wrong is reported at once.
  auto planned = plan_jobs(files.jobs, registry);
  if (!planned) {
    add(planned.error());
  }
  if (!errors.empty()) {
    return std::move(errors);
  }
  return planned;
}

Error cannot_start(const JobPlan& plan, const Error& error) {
  return {error.code(), plan.config.file + ": job '" + plan.config.name + "' cannot start: " + error.message()};
}

std::vector<ConfigError> refused_rules(const config::HostConfig& host, const std::vector<JobConfig>& jobs) {
  std::vector<ConfigError> errors;
  std::map<std::pair<std::string, config::Source>, const JobConfig*> first_on;
  for (const JobConfig& job : jobs) {
    add_schedules(host, job, errors);
    if (config::outbox_named(job.queue)) {
      continue;  // What it cannot give was refused when the file was read.
    }
    for (const config::WeightedQueue& queue : work::queues_of(job)) {
      std::string why = refusal(job, queue.name, traits_of(host, queue.name));
      if (why.empty()) {
        why = shards_refusal(host, job, queue.name);
      }
      if (!why.empty()) {
        errors.push_back({job.queue_place, std::move(why)});
      }
      const JobConfig& first = *first_on.emplace(std::pair(queue.name, job.source), &job).first->second;
      if (order_text(first) != order_text(job)) {
        errors.push_back({job.queue_place, "jobs \"" + first.name + "\" and \"" + job.name + "\" share queue \"" +
                                               queue.name + "\" and want different orders of it: " + order_text(first) +
                                               ", and " + order_text(job) + "; give both the same"});
      }
    }
  }
  return errors;
}

std::vector<std::string> queues_of(const std::vector<JobPlan>& plans) {
  std::vector<std::string> names;
  for (const JobPlan& plan : plans) {
    const auto some = plan.config.queue_names();
    names.insert(names.end(), some.begin(), some.end());
  }
  return names;
}

void run_trial_process(const std::vector<std::string>& words) {
  std::map<std::string, std::vector<std::string>> values;
  for (std::size_t i = 1; i + 1 < words.size(); i += 2) {
    values[words[i]].push_back(words[i + 1]);
  }
  const isolation::TrialSteps steps(values["--steps"].empty() ? STDERR_FILENO
                                                              : std::atoi(values["--steps"].front().c_str()));
  plugin::PluginRegistry registry;
  registry.pin(read_pins(values["--pin"]));
  for (const std::string& file : values["--file"]) {
    steps.next(kLoad, file);
    registry.load(file);
    ask_kinds(registry);
  }
  steps.next("loaded");
  if (!values["--config"].empty()) {
    try_jobs(values["--config"].front(), values["--job"], registry, steps);
  }
  steps.end();
}

namespace {

/// Some of its handlers are of one of these files.
bool uses_any(const JobConfig& job, const plugin::PluginRegistry& registry, const std::vector<std::string>& files) {
  const Handlers all = handlers_of(job, registry);
  return std::any_of(all.begin(), all.end(),
                     [&](const sluice_handler* one) { return contains(files, registry.owner_of(one)->file); });
}

}  // namespace

Result<std::vector<config::ConfigError>> admit_plugins(const config::HostConfig& host, plugin::PluginRegistry& registry,
                                                       const std::vector<config::JobConfig>& jobs) {
  TrialRequest request;
  request.host_file = host.file;
  request.pins = registry.pins();
  std::vector<std::string> fresh;
  std::vector<std::string> not_trusted;
  for (const std::string& file : registry.unseen(config::plugin_folders(host))) {
    const bool trusted = host.allow_insecure_files || !SLUICE_GUARD(plugin_file_modes);
    const auto distrusted = trusted ? std::nullopt : config::distrust(file);
    if (distrusted) {
      registry.refuse(file, *distrusted);
      not_trusted.push_back(file);
    } else {
      fresh.push_back(file);
    }
  }
  for (const plugin::LoadedPlugin& loaded : registry.plugins()) {
    // What lies in the place of a loaded one may be what must not run anywhere.
    if (!contains(fresh, loaded.file) && !contains(not_trusted, loaded.file)) {
      request.files.push_back(loaded.file);
    }
  }
  request.files.insert(request.files.end(), fresh.begin(), fresh.end());
  for (const config::JobConfig& job : jobs) {
    if (!uses_any(job, registry, not_trusted)) {
      request.jobs.push_back(job.name);
    }
  }
  std::vector<config::ConfigError> errors;
  if ((!fresh.empty() || !request.jobs.empty()) && SLUICE_GUARD(plugins_tried_first)) {
    SLUICE_TRY(verdict, try_plugins(std::move(request)));
    for (const std::string& file : fresh) {
      if (const auto found = verdict->find(file); found != verdict->end()) {
        registry.refuse(file, found->second + "; it was tried in a process of its own: mend it or take it away");
      }
    }
    for (const config::JobConfig& job : jobs) {
      if (const auto found = verdict->find(job.name); found != verdict->end()) {
        errors.push_back({job.handler_place, "the handler \"" + job.handler + "\" " + found->second +
                                                 ", with this job's options, in a process that tried it"});
      }
    }
  }
  registry.scan(config::plugin_folders(host));
  // A chmod mends them, and that of a folder shows in none of its files.
  for (const std::string& file : not_trusted) {
    registry.look_again(file);
  }
  return errors;
}

}  // namespace sluice::runtime
