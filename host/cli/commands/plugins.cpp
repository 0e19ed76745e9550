#include <filesystem>
#include <map>
#include <set>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/text/visible.hpp"
#include "config/files.hpp"
#include "config/words.hpp"
#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/plugin_text.hpp"
#include "host/cli/views/schedule_text.hpp"
#include "host/cli/views/transaction_report.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "host/runtime/host_queues.hpp"
#include "host/runtime/job_plan.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::cli {

namespace {

using config::ConfigError;
using config::JobConfig;
using runtime::JobPlan;

std::string plugin_of(const JobPlan& plan, const plugin::PluginRegistry& registry) {
  return std::string(registry.owner_of(plan.handler)->plugin->name) + " " + plan.plugin_version;
}

std::string drawn_from(const JobConfig& job) {
  const auto by_weight = [](const config::WeightedQueue& queue) {
    return queue.name + " by " + std::to_string(queue.weight);
  };
  std::string text =
      job.queues.empty() ? "queue " + job.queue : "queues " + sluice::joined(mapped(job.queues, by_weight));
  if (job.order == config::Order::group) {
    text += ", each group in order";
  } else if (job.order == config::Order::queue) {
    text += ", one message after the other";
  } else if (job.fair) {
    text += ", in turns by group";
  }
  return text + (job.on_dead_letter == config::OnDeadLetter::hold ? " and held behind dead letters" : "");
}

/// Hosts that run the job with another plugin than it has here, or another version: "web-1:4711 runs it with mail.so
/// 1.0.0 until it reloads"; empty: none.
std::string changed_for(const JobPlan& plan, const std::vector<fleet::KnownHost>& hosts) {
  std::vector<std::string> texts;
  for (const fleet::KnownHost& host : hosts) {
    for (const fleet::JobRecord& job : host.record.jobs) {
      const bool same =
          job.plugin == std::filesystem::path(plan.plugin_file).filename() && job.plugin_version == plan.plugin_version;
      if (host.pulse == fleet::Pulse::fresh && job.name == plan.config.name && !same) {
        texts.push_back(host.record.label() + " runs it with " + job.plugin + " " + job.plugin_version +
                        " until it reloads");
      }
    }
  }
  return sluice::joined(texts);
}

/// What goes around its handler, the outermost first: " within timing and decrypt".
std::string within(const JobConfig& job) {
  std::string text;
  for (const config::AroundConfig& around : job.arounds) {
    text += (text.empty() ? " within " : &around == &job.arounds.back() ? " and " : ", ") + around.handler;
  }
  return text;
}

/// What it has at work at once, and in what.
std::string capacity(const JobPlan& plan) {
  if (plan.config.isolation == config::Isolation::process) {
    return counted(plan.config.concurrency, "worker") + " in processes of their own";
  }
  return plugin::kind_of(*plan.handler) == plugin::HandlerKind::async
             ? counted(plan.config.concurrency, "message") + " at once"
             : counted(plan.config.concurrency, "worker");
}

std::string describe(const JobPlan& plan, const plugin::PluginRegistry& registry, const std::string& steered,
                     const std::string& changed) {
  const JobConfig& job = plan.config;
  return job.name + ": " + drawn_from(job) + (job.source == config::Source::dlq ? " (dead-letter half)" : "") +
         ", handler " + job.handler + " of " + plugin_of(plan, registry) + within(job) + ", " + capacity(plan) + ", " +
         (job.rate_text.empty() ? "" : "at most " + job.rate_text + (job.rate_per_host ? ", " : " of all hosts, ")) +
         (job.retry.max_attempts == 0 ? "attempts without limit" : counted(job.retry.max_attempts, "attempt")) +
         (steered.empty() ? "" : "; but " + steered) + (changed.empty() ? "" : "; changed: " + changed);
}

std::string job_json(const JobPlan& plan, const plugin::PluginRegistry& registry, const std::string& steered,
                     const std::string& changed) {
  const JobConfig& job = plan.config;
  const auto schedules = [&job](JsonWriter& members) {
    if (!job.schedules.empty()) {
      write_schedules(members, job, SystemClock().wall_now());
    }
  };
  JsonWriter json;
  put_object(json, "name", job.name, "file", job.file, "queue", work::queue_text(job), "order",
             config::word_of(job.order), "source", config::word_of(job.source), "handler", job.handler, "plugin",
             plugin_of(plan, registry), "around", mapped(job.arounds, &config::AroundConfig::handler), "concurrency",
             job.concurrency, "rate_limit", job.rate_text, "max_attempts", job.retry.max_attempts, "steered", steered,
             "changed", changed, schedules);
  return json.take_text();
}

/// Of a job whose queues lie in stores of two kinds: what its handler cannot stage. Empty: it has one kind.
std::string two_kinds(const config::HostConfig& host, const JobConfig& job) {
  const auto kind_of = [&host](const std::string& queue) { return host.store_of(queue).kind; };
  const auto queues = work::queues_of(job);
  const auto* const other = find_where(
      queues, [&](const config::WeightedQueue& queue) { return kind_of(queue.name) != kind_of(queues.front().name); });
  if (other == nullptr) {
    return {};
  }
  const bool sql = kind_of(queues.front().name) == config::StoreKind::sqlite;
  return "job " + job.name + " draws from stores of two kinds: writes that its handler stages are " +
         (sql ? "SQL" : "items of DynamoDB") + " by its first queue, " + queues.front().name +
         ", and are refused with the messages of " + other->name +
         "; give that queue a job of its own, unless the handler stages messages alone";
}

/// Of a host file where some place in DynamoDB has an endpoint and another has none. Empty: it has not both.
std::string forgotten_endpoint(const config::HostConfig& host) {
  std::string with;
  std::string without;
  const auto look = [&](const std::string& place, bool in_dynamodb, const std::string& endpoint) {
    if (in_dynamodb) {
      (endpoint.empty() ? without : with) = place;
    }
  };
  look("the default store", host.store.kind == config::StoreKind::dynamodb, host.store.endpoint);
  for (const auto& [name, store] : host.stores) {
    look("store " + name, store.kind == config::StoreKind::dynamodb, store.endpoint);
  }
  for (const auto& [name, outbox] : host.outboxes) {
    look("outbox " + name, outbox.kind == config::OutboxKind::dynamodb, outbox.endpoint);
  }
  return with.empty() || without.empty()
             ? std::string()
             : without + " has no endpoint, and " + with + " has one: calls of the first go to AWS, unless " +
                   "AWS_ENDPOINT_URL says otherwise; give it an endpoint, or the other none";
}

/// What is allowed but seldom meant.
std::vector<std::string> suspicions(const config::HostConfig& host, const config::JobFiles& files,
                                    const plugin::PluginRegistry& registry) {
  std::vector<std::string> lines;
  for (const auto& rejected : registry.rejected()) {
    lines.push_back("not used: " + rejected.why);
  }
  std::map<std::pair<std::string, config::Source>, std::string> taken;
  std::set<std::string> used;
  for (const JobConfig& job : files.jobs) {
    for (const config::WeightedQueue& queue : work::queues_of(job)) {
      used.insert(queue.name);
      const auto [first, fresh] = taken.emplace(std::pair(queue.name, job.source), job.name);
      if (!fresh) {
        lines.push_back("jobs " + first->second + " and " + job.name + " share queue " + queue.name +
                        ": each message goes to one of them, whichever claims it first");
      }
    }
    if (job.order == config::Order::queue && job.queues.empty() && job.concurrency > 1) {
      lines.push_back("job " + job.name + " hands out one message after the other, so that its concurrency of " +
                      std::to_string(job.concurrency) + " is that of one worker");
    }
    if (std::string line = two_kinds(host, job); !line.empty()) {
      lines.push_back(std::move(line));
    }
  }
  if (std::string line = forgotten_endpoint(host); !line.empty()) {
    lines.push_back(std::move(line));
  }
  for (const auto& [queue, settings] : host.queues) {
    // A file that cannot be read may have the job.
    if (used.count(queue) == 0 && files.errors.empty()) {
      lines.push_back("no job works on queue " + queue + ", which [queues." + queue + "] configures");
    }
  }
  return lines;
}

/// The job's handler in this process. What it says goes to the console, and `who` stands before it.
Result<std::unique_ptr<plugin::HandlerInstance>> make_handler(const config::HostConfig& host, const JobPlan& plan,
                                                              Random& random, const Clock& clock,
                                                              const std::string& who, Console& console) {
  const auto log = [&console, who](sluice_log_level, std::string_view, std::string_view, std::string_view text) {
    console.note(who + ": " + std::string(text));
  };
  const auto effects = plugin::effect_rules(plan.config, host.store_of(plan.config.queue).kind, random, clock);
  return plugin::make_within({.log = log, .effects = effects}, *plan.handler, plan.config.name, plan.options,
                             plan.arounds);
}

/// Makes and ends an instance for each job, because only the handler itself knows whether its options go together.
std::vector<ConfigError> try_handlers(const config::HostConfig& host, const std::vector<JobPlan>& plans,
                                      Console& console) {
  std::vector<ConfigError> errors;
  SeededRandom random;
  const SystemClock clock;
  for (const JobPlan& plan : plans) {
    const auto instance = make_handler(host, plan, random, clock, plan.config.name, console);
    if (instance.has_error()) {
      errors.push_back({plan.config.handler_place, instance.error().message()});
    }
  }
  return errors;
}

/// What operators want of jobs, beside what their files say, and which hosts there are. A value.
struct SteeringRemarks {
  /// "paused by ann@ops-1 5m ago, scaled to 16 by ann@ops-1 2h ago", by the job's name; jobs as their files say are not
  /// among them.
  std::map<std::string, std::string> jobs;
  std::vector<fleet::KnownHost> hosts;
  /// Why it could not be read; nothing where it could, or where no store is there yet.
  std::optional<Error> trouble;
};

constexpr Duration kLookTime = std::chrono::seconds(2);

/// Queues whose store can hold something about them. To look for a file would make it.
std::vector<std::string> queues_with_store(const config::HostConfig& host, const std::vector<config::JobConfig>& jobs) {
  std::set<std::string> names;
  for (const config::JobConfig& job : jobs) {
    for (const config::WeightedQueue& queue : work::queues_of(job)) {
      const config::StoreConfig& store = host.store_of(queue.name);
      std::error_code ignored;
      // An outbox holds nothing about its jobs, and only a file of the host's own does so in its place.
      const bool holds = store.kind == config::StoreKind::sqlite ? std::filesystem::exists(store.path, ignored)
                                                                 : !config::outbox_named(queue.name);
      if (holds) {
        names.insert(queue.name);
      }
    }
  }
  return {names.begin(), names.end()};
}

/// Reads it from the stores of these jobs' queues, in two seconds at most. A file that is not there is not made.
SteeringRemarks steering_remarks(const config::HostConfig& host, const std::vector<config::JobConfig>& jobs) {
  SteeringRemarks remarks;
  const std::vector<std::string> queues = queues_with_store(host, jobs);
  if (queues.empty()) {
    return remarks;
  }
  OpenQueues open(host);
  const Clock& clock = open.clock;
  const auto fleet = fleet::Fleet::open(open.queues, queues, open.random);
  const Deadline deadline = Deadline::after(clock, kLookTime);
  const auto steering = fleet ? (*fleet)->steering(deadline) : fleet.error();
  if (!steering) {
    remarks.trouble = steering.error();
    return remarks;
  }
  for (const operate::JobSummary& job : operate::summarize_jobs(jobs_of(jobs), {}, *steering)) {
    for (const std::string& text : operate::wish_texts(job.wishes, clock.wall_now())) {
      std::string& all = remarks.jobs[job.name];
      all += (all.empty() ? "" : ", ") + text;
    }
  }
  auto told = (*fleet)->hosts(deadline);
  fleet::FleetView view = told ? std::move(*told) : fleet::FleetView();
  put_local_records(view, find_local_hosts(runtime::ControlFolder::of(host), clock));
  remarks.hosts = std::move(view.hosts);
  if (!steering->troubles.empty()) {
    remarks.trouble = steering->troubles.front().error;
  }
  return remarks;
}

/// What was found: as text at once, an error or a warning a line on standard error and a job a line on standard output;
/// as JSON one object at the end.
class Report {
 public:
  explicit Report(Console& console) : console_(console) {}

  void add(std::vector<ConfigError> errors) {
    for (ConfigError& error : errors) {
      if (console_.shows_text()) {
        console_.note(error.text());
      }
      errors_.push_back(std::move(error));
    }
  }
  void warn(std::vector<std::string> lines) {
    for (std::string& line : lines) {
      if (console_.shows_text()) {
        console_.note("warning: " + line);
      }
      warnings_.push_back(std::move(line));
    }
  }
  /// `steering`: what operators want of them, which may not be what their files say.
  void jobs(const std::vector<JobPlan>& plans, const plugin::PluginRegistry& registry,
            const SteeringRemarks& steering) {
    for (const JobPlan& plan : plans) {
      const auto remark = steering.jobs.find(plan.config.name);
      const std::string steered = remark == steering.jobs.end() ? std::string() : remark->second;
      const std::string changed = changed_for(plan, steering.hosts);
      if (console_.shows_text()) {
        std::string text = describe(plan, registry, steered, changed) + "\n";
        for (const std::string& line : schedule_lines(plan.config, SystemClock().wall_now())) {
          text += line + "\n";
        }
        console_.out(wrapped(text, console_.screen()));
      } else {
        jobs_.push_back(job_json(plan, registry, steered, changed));
      }
    }
    // A table that is yet to be made holds no wishes.
    if (steering.trouble && steering.trouble->code() != ErrorCode::queue_missing && console_.shows_text()) {
      console_.note("whether operators steer these jobs cannot be read: " + steering.trouble->message());
    }
  }
  /// Databases that a check leaves alone.
  void unasked(const std::map<std::string, config::OutboxConfig>& outboxes) {
    console_.flush();
    for (const auto& [name, outbox] : outboxes) {
      if (console_.shows_text()) {
        console_.note("outbox " + name + " was not asked; `sluice outbox status " + name + "` does");
      }
    }
  }
  bool any_error() const { return !errors_.empty(); }

  Exit finish(const std::string& what) {
    if (console_.shows_json()) {
      const auto error = [](JsonWriter& json, const ConfigError& one) {
        put_object(json, "file", one.place.file, "line", one.place.line, "column", one.place.column, "message",
                   one.message);
      };
      const auto job = [](JsonWriter& json, const std::string& one) { json.raw(one); };
      console_.out(json_line("file", what, "good", errors_.empty(), "errors", array_of(errors_, error), "warnings",
                             warnings_, "jobs", array_of(jobs_, job)));
      return errors_.empty() ? Exit::ok() : Exit::silent(kExitConfiguration);
    }
    const std::string warnings = warnings_.empty() ? "" : ", " + counted(warnings_.size(), "warning");
    if (!errors_.empty()) {
      return {kExitConfiguration, what + ": " + counted(errors_.size(), "error") + warnings};
    }
    console_.flush();
    console_.note(what + ": good" + warnings);
    return Exit::ok();
  }

 private:
  Console& console_;
  std::vector<ConfigError> errors_;
  std::vector<std::string> warnings_;
  std::vector<std::string> jobs_;  ///< objects of JSON
};

/// Checks jobs against plugins, and plugins against jobs.
void check_jobs(const config::HostConfig& host, const config::JobFiles& files, Report& report, Console& console) {
  const std::vector<JobConfig>& jobs = files.jobs;
  plugin::PluginRegistry registry;
  registry.pin(plugin::pins_of(jobs));
  registry.need_only(config::installed_plugin_dir(), runtime::handler_names_of(jobs));
  const auto admitted = runtime::admit_plugins(host, registry, jobs);
  if (!admitted) {
    return report.add({{{host.file}, admitted.error().message()}});
  }
  report.add(*admitted);
  report.warn(suspicions(host, files, registry));
  const auto planned = runtime::plan_jobs(jobs, registry);
  if (!planned) {
    return report.add(planned.error());
  }
  if (!admitted->empty()) {
    return;
  }
  const auto errors = try_handlers(host, *planned, console);
  report.add(errors);
  if (errors.empty()) {
    report.jobs(*planned, registry, steering_remarks(host, jobs));
    report.unasked(host.outboxes);
  }
}

Exit check(const Arguments& arguments, Console& console) {
  SLUICE_TRY(path, find_host_file(arguments));
  Report report(console);
  const auto environment = config::process_environment();
  const auto host = config::load_host_config(*path, environment);
  if (!host) {
    report.add(host.error());
    return report.finish(*path);
  }
  config::HostConfig settings = *host;
  settings.allow_insecure_files = arguments.has(kAllowInsecureFiles);
  const config::JobFiles jobs = config::load_job_files(settings, environment);
  report.add(jobs.errors);
  report.add(runtime::distrusted(settings, jobs.jobs));
  report.add(runtime::refused_rules(settings, jobs.jobs));
  check_jobs(settings, jobs, report, console);
  // Beside other errors it is not what is wrong.
  if (jobs.jobs.empty() && !report.any_error()) {
    report.warn({"there is no job: no file matches [host] jobs"});
  }
  return report.finish(*path);
}

std::string as_text(const plugin::PluginRegistry& registry) {
  std::string text;
  for (const auto& loaded : registry.plugins()) {
    text += plugin_line(*loaded.plugin, loaded.file);
    for (const sluice_handler* handler : plugin::handlers_in(*loaded.plugin)) {
      text += handler_text(*handler, kind_of(*handler));
    }
  }
  for (const auto& rejected : registry.rejected()) {
    text += "rejected: " + visible(rejected.why) + "\n";
  }
  return text;
}

void write_plugin(JsonWriter& json, const plugin::LoadedPlugin& loaded) {
  const auto facts = [&loaded](JsonWriter& members) { put_plugin(members, *loaded.plugin, loaded.file); };
  put_object(json, facts, "handlers", array_of(plugin::handlers_in(*loaded.plugin), write_handler));
}

std::string as_json(const plugin::PluginRegistry& registry) {
  return json_line("plugins", array_of(registry.plugins(), write_plugin), "rejected",
                   array_of(registry.rejected(), [](JsonWriter& json, const auto& rejected) {
                     put_object(json, "file", rejected.file, "why", rejected.why);
                   }));
}

Exit plugins(const Arguments& arguments, Console& console) {
  config::HostConfig settings;
  plugin::PluginRegistry registry;
  settings.plugin_dirs = arguments.all("dir");
  for (const std::string& folder : settings.plugin_dirs) {
    if (std::error_code ignored; !std::filesystem::is_directory(folder, ignored)) {
      return Exit::failure("--dir " + folder + ": there is no such folder");
    }
  }
  if (settings.plugin_dirs.empty()) {
    SLUICE_TRY(host, load_host_file(arguments));
    settings = *host;
    const config::JobFiles jobs = config::load_job_files(settings, config::process_environment());
    for (const config::ConfigError& error : jobs.errors) {
      console.note("warning: what this job file pins is not known: " + error.text());
    }
    registry.pin(plugin::pins_of(jobs.jobs));
  }
  settings.allow_insecure_files = arguments.has(kAllowInsecureFiles);
  SLUICE_PASS_ON(runtime::admit_plugins(settings, registry, {}));
  console.out(console.shows_json() ? as_json(registry) : wrapped(as_text(registry), console.screen()));
  if (registry.plugins().empty() && registry.rejected().empty()) {
    console.note("there is no plugin in " + sluice::joined(settings.plugin_dirs));
  }
  return Exit::ok();
}

/// The job of that name with its handler loaded; exit 78 with what is wrong with files and plugins.
OrExit<JobPlan> plan_of(const config::HostConfig& host, const std::string& name, plugin::PluginRegistry& registry) {
  SLUICE_TRY(plans, runtime::load_job_plans(host, registry, [](const config::JobConfig&) { return false; }));
  const JobPlan* const found = find_where(*plans, [&name](const JobPlan& plan) { return plan.config.name == name; });
  if (found == nullptr) {
    return Exit(kExitConfiguration, "no job is called '" + name + "'; `sluice check` lists the jobs of " + host.file);
  }
  return *found;
}

/// Runs the handler in this process, as the message's next delivery would.
OrExit<plugin::Outcome> handle(const JobPlan& plan, const config::HostConfig& host, queue::Message message,
                               OpenQueues& open, Console& console) {
  const Clock& clock = open.clock;
  SLUICE_TRY(instance, or_exit(kExitConfiguration, make_handler(host, plan, open.random, clock, "handler", console)));
  plugin::Attempt attempt(clock);
  const Duration timeout = plan.config.timeout;
  attempt.arm(timeout > Duration::zero() ? clock.steady_now() + timeout : SteadyTime::max());
  plugin::NotedCheckpoints checkpoints;
  attempt.set_checkpoints(&checkpoints);
  ++message.attempt;
  auto outcome = (*instance)->handle({message, plan.config.queue, plan.config.retry.max_attempts, attempt});
  for (const auto& [bytes, effects] : checkpoints.noted()) {
    const std::size_t staged = effects == nullptr ? 0 : effects->messages.size() + effects->writes.size();
    console.note("a checkpoint of " + std::to_string(bytes.size()) + " bytes" +
                 (staged == 0 ? "" : ", with " + std::to_string(staged) + " effects") + ", which is not stored");
  }
  return outcome;
}

/// The message of that id in the first of the job's queues that has it; that one is the job's queue from then on, as
/// for a host that hands it the message.
Result<queue::StoredMessage> find_message(JobPlan& plan, const std::string& id, OpenQueues& open) {
  for (const std::string& queue : plan.config.queue_names()) {
    SLUICE_TRY(oper, open.queues.open_operator(queue));
    auto found = (*oper)->get(id, open.deadline());
    if (found) {
      plan.config.queue = queue;
    }
    if (found || found.error().code() != ErrorCode::not_found) {
      return found;
    }
  }
  return queue::no_message(sluice::joined(plan.config.queue_names()), id);
}

Exit dry_run(const Arguments& arguments, Console& console) {
  SLUICE_TRY(id, the_message_id(arguments));
  SLUICE_TRY(host, load_host_file(arguments));
  host->allow_insecure_files = arguments.has(kAllowInsecureFiles);
  plugin::PluginRegistry registry;
  SLUICE_TRY(plan, plan_of(*host, arguments.get("job"), registry));
  OpenQueues open(*host);
  SLUICE_TRY(message, find_message(*plan, *id, open));
  SLUICE_TRY(outcome, handle(*plan, *host, message->message, open, console));
  const DryRun run{plan->config.name,
                   plan->config.queue,
                   *id,
                   plugin::effect_store(plan->config.queue, host->store_of(plan->config.queue).kind),
                   plan->config.idempotency.has_value(),
                   *outcome,
                   refused_sends(*host, &open.queues, plan->config.queue, *outcome)};
  return print(
      console.shows_text() ? dry_run_text(run) : json_text([&run](JsonWriter& json) { write_dry_run(run, json); }),
      console);
}

}  // namespace

std::vector<Command> plugin_commands() {
  return {
      {
          .name = "check",
          .summary = "Check the host file, the jobs, the plugins and their options",
          .usage = "[--output json|text] [--allow-insecure-files] [--config FILE]",
          .description =
              "Prints every error as file:line:column: message and ends with exit code 78 if there is one; otherwise "
              "prints a line for each job, and beside what its file says what operators want of it (`pause`, "
              "`scale`) and which hosts run it with another version of its plugin, where the store is there, and when "
              "its schedules are due next. Handlers are tried in a "
              "process of their own, and created and ended again, as a start would do; no message is touched. With "
              "--json it prints one object: good, errors with their places, warnings, and jobs.",
          .flags = joined({kAllowInsecureFilesFlag, kConfigFlag}, text_output_flags()),
          .examples = "sluice check --config etc/host.toml\n"
                      "sluice check --json | jq .errors",
          .elsewhere = Output::text,
          .run = check,
      },
      {
          .name = "plugins",
          .summary = "Show the plugins that were found, their handlers and options",
          .usage = "[--dir FOLDER]... [--output json|text] [--allow-insecure-files] [--config FILE]",
          .description = "Files that are no usable plugin are shown with the reason. Looks into the folders of [host] "
                         "plugin_dirs, then into that of the installation, of which a host loads what its jobs name.",
          .flags = joined(
              output_flags(),
              {kAllowInsecureFilesFlag,
               against("config", repeated({"dir", "FOLDER", "look there, and read no host file; may be repeated"})),
               kConfigFlag}),
          .examples = "sluice plugins\n"
                      "sluice plugins --dir build/plugins --json | jq .plugins[].handlers[].name",
          .run = plugins,
      },
      {
          .name = "dry-run",
          .summary = "Run a job's handler on one message, and show what it would commit",
          .usage = "ID --job JOB [--output json|text] [--allow-insecure-files] [--config FILE]",
          .description =
              "Takes the message as it lies in a queue of the job's, dead-letter half included, and runs the job's "
              "handler on it in this process. Then it prints the outcome and the transaction that would end the "
              "message: the "
              "messages and writes that the handler staged, in DynamoDB's or SQL's words. The message is not claimed, "
              "and nothing of the transaction is committed. What the handler does by itself, such as a request to "
              "another server, it really does.",
          .flags =
              joined({required({"job", "JOB", "the job, by its name"}), kIdFlag, kAllowInsecureFilesFlag, kConfigFlag},
                     output_flags()),
          .examples = "sluice dry-run --job transfers A-101",
          .run = dry_run,
      },
  };
}

}  // namespace sluice::cli
