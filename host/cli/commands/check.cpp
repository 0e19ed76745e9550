#include <algorithm>
#include <map>
#include <set>
#include <variant>

#include "base/text/json_writer.hpp"
#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/schedule_text.hpp"
#include "host/cli/views/steering_remarks.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "host/runtime/job_plan.hpp"
#include "host/runtime/plugin_gate.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::cli {

namespace {

using config::ConfigError;
using config::JobConfig;
using runtime::JobPlan;

std::string count_text(std::size_t count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

std::string plugin_of(const sluice_handler* handler, const plugin::PluginRegistry& registry) {
  for (const auto& loaded : registry.plugins()) {
    const auto* begin = loaded.plugin->handlers;
    const auto* end = begin + loaded.plugin->handler_count;
    if (std::find(begin, end, handler) != end) {
      return std::string(loaded.plugin->name) + " " + loaded.plugin->version;
    }
  }
  return "unknown";
}

std::string drawn_from(const JobConfig& job) {
  std::string text;
  for (const config::WeightedQueue& queue : job.queues) {
    text += (text.empty() ? "queues " : ", ") + queue.name + " by " + std::to_string(queue.weight);
  }
  text = text.empty() ? "queue " + job.queue : text;
  if (job.order == config::Order::group) {
    text += ", each group in order";
  } else if (job.order == config::Order::queue) {
    text += ", one message after the other";
  } else if (job.fair) {
    text += ", in turns by group";
  }
  return text + (job.on_dead_letter == config::OnDeadLetter::hold ? " and held behind dead letters" : "");
}

std::string describe(const JobPlan& plan, const plugin::PluginRegistry& registry, const std::string& steered) {
  const JobConfig& job = plan.config;
  return job.name + ": " + drawn_from(job) + (job.source == config::Source::dlq ? " (dead-letter half)" : "") +
         ", handler " + job.handler + " of " + plugin_of(plan.handler, registry) + ", " +
         count_text(job.concurrency, "worker") + ", " +
         (job.retry.max_attempts == 0 ? "attempts without limit" : count_text(job.retry.max_attempts, "attempt")) +
         (steered.empty() ? "" : "; but " + steered);
}

void write_job(JsonWriter& json, const JobPlan& plan, const plugin::PluginRegistry& registry,
               const std::string& steered) {
  const JobConfig& job = plan.config;
  json.begin_object();
  json.member("name", job.name);
  json.member("file", job.file);
  json.member("queue", work::queue_text(job));
  json.member("order", job.order == config::Order::group   ? "group"
                       : job.order == config::Order::queue ? "queue"
                                                           : "none");
  json.member("source", job.source == config::Source::dlq ? "dlq" : "standard");
  json.member("handler", job.handler);
  json.member("plugin", plugin_of(plan.handler, registry));
  json.member("concurrency", std::uint64_t{job.concurrency});
  json.member("max_attempts", std::uint64_t{job.retry.max_attempts});
  json.member("steered", steered);
  if (!job.schedules.empty()) {
    write_schedules(json, job, SystemClock().wall_now());
  }
  json.end_object();
}

/// Of a job whose queues lie in stores of two kinds: what its handler cannot stage. Empty: it has one kind.
std::string two_kinds(const config::HostConfig& host, const JobConfig& job) {
  const auto kind_of = [&host](const std::string& queue) { return host.store_of(queue).kind; };
  const auto queues = work::queues_of(job);
  const auto other = std::find_if(queues.begin(), queues.end(), [&](const config::WeightedQueue& queue) {
    return kind_of(queue.name) != kind_of(queues.front().name);
  });
  if (other == queues.end()) {
    return {};
  }
  const bool sql = kind_of(queues.front().name) == config::StoreKind::sqlite;
  return "job " + job.name + " draws from stores of two kinds: writes that its handler stages are " +
         (sql ? "SQL" : "items of DynamoDB") + " by its first queue, " + queues.front().name +
         ", and are refused with the messages of " + other->name +
         "; give that queue a job of its own, unless the handler stages messages alone";
}

/// What is allowed but seldom meant.
std::vector<std::string> suspicions(const config::HostConfig& host, const config::JobFiles& files,
                                    const plugin::PluginRegistry& registry) {
  std::vector<std::string> lines;
  for (const auto& rejected : registry.rejected()) {
    lines.push_back(rejected.file + " is not used: " + rejected.why);
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
  for (const auto& [queue, settings] : host.queues) {
    // A file that cannot be read may have the job.
    if (used.count(queue) == 0 && files.errors.empty()) {
      lines.push_back("no job works on queue " + queue + ", which [queues." + queue + "] configures");
    }
  }
  return lines;
}

/// Makes and ends an instance for each job, because only the handler itself knows whether its options go together.
std::vector<ConfigError> try_handlers(const config::HostConfig& host, const std::vector<JobPlan>& plans,
                                      Console& console) {
  std::vector<ConfigError> errors;
  SeededRandom random;
  const SystemClock clock;
  for (const JobPlan& plan : plans) {
    const auto log = [&console](sluice_log_level, std::string_view job, std::string_view, std::string_view text) {
      console.note(std::string(job) + ": " + std::string(text));
    };
    const auto effects = plugin::effect_rules(plan.config, host.store_of(plan.config.queue).kind, random, clock);
    const auto instance =
        plugin::HandlerInstance::create_in({log, {}, {}, effects}, *plan.handler, plan.config.name, plan.options);
    if (instance.has_error()) {
      errors.push_back({plan.config.handler_place, instance.error().message()});
    }
  }
  return errors;
}

/// What was found: as text at once, an error or a warning a line on standard error and a job a line on standard output;
/// as JSON one object at the end.
class Report {
 public:
  Report(Output output, Console& console) : output_(output), console_(console) {}

  void add(std::vector<ConfigError> errors) {
    for (ConfigError& error : errors) {
      if (output_ == Output::text) {
        console_.note(error.text());
      }
      errors_.push_back(std::move(error));
    }
  }
  void warn(std::vector<std::string> lines) {
    for (std::string& line : lines) {
      if (output_ == Output::text) {
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
      if (output_ == Output::text) {
        console_.out(describe(plan, registry, steered) + "\n");
        for (const std::string& line : schedule_lines(plan.config, SystemClock().wall_now())) {
          console_.out(line + "\n");
        }
      } else {
        write_job(jobs_, plan, registry, steered);
      }
    }
    // A table that is yet to be made holds no wishes.
    if (steering.trouble && steering.trouble->code() != ErrorCode::queue_missing && output_ == Output::text) {
      console_.note("whether operators steer these jobs cannot be read: " + steering.trouble->message());
    }
  }
  bool any_error() const { return !errors_.empty(); }

  Exit finish(const std::string& what) {
    if (output_ == Output::json) {
      return finish_json(what);
    }
    const std::string warnings = warnings_.empty() ? "" : ", " + count_text(warnings_.size(), "warning");
    if (!errors_.empty()) {
      return {kExitConfiguration, what + ": " + count_text(errors_.size(), "error") + warnings};
    }
    console_.flush();
    console_.note(what + ": good" + warnings);
    return Exit::ok();
  }

 private:
  Exit finish_json(const std::string& what) {
    JsonWriter json(JsonWriter::Layout::indented);
    json.begin_object();
    json.member("file", what);
    json.member("good", errors_.empty());
    json.key("errors");
    json.begin_array();
    for (const ConfigError& error : errors_) {
      json.begin_object();
      json.member("file", error.place.file);
      json.member("line", std::uint64_t{error.place.line});
      json.member("column", std::uint64_t{error.place.column});
      json.member("message", error.message);
      json.end_object();
    }
    json.end_array();
    json.key("warnings");
    json.begin_array();
    for (const std::string& line : warnings_) {
      json.value(line);
    }
    json.end_array();
    jobs_.end_array();
    json.key("jobs");
    json.raw(jobs_.take_text());
    json.end_object();
    console_.out(json.take_line());
    return errors_.empty() ? Exit::ok() : Exit(kExitConfiguration, std::vector<std::string>{});
  }

  const Output output_;
  Console& console_;
  std::vector<ConfigError> errors_;
  std::vector<std::string> warnings_;
  JsonWriter jobs_ = begun_array();

  static JsonWriter begun_array() {
    JsonWriter json(JsonWriter::Layout::compact);
    json.begin_array();
    return json;
  }
};

/// Checks jobs against plugins, and plugins against jobs.
void check_jobs(const config::HostConfig& host, const config::JobFiles& files, Report& report, Console& console) {
  const std::vector<JobConfig>& jobs = files.jobs;
  plugin::PluginRegistry registry;
  registry.pin(plugin::pins_of(jobs));
  const auto admitted = runtime::PluginGate(host, registry).admit(jobs);
  if (!admitted) {
    return report.add({{{host.file}, admitted.error().message()}});
  }
  report.add(*admitted);
  report.warn(suspicions(host, files, registry));
  const auto planned = runtime::plan_jobs(jobs, registry);
  if (const auto* errors = std::get_if<std::vector<ConfigError>>(&planned)) {
    return report.add(*errors);
  }
  if (!admitted->empty()) {
    return;
  }
  const auto& plans = std::get<std::vector<JobPlan>>(planned);
  const auto errors = try_handlers(host, plans, console);
  report.add(errors);
  if (errors.empty()) {
    report.jobs(plans, registry, steering_remarks(host, jobs));
  }
}

Exit check(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, output_or_text(arguments));
  SLUICE_TRY(path, find_host_file(arguments));
  Report report(*output, console);
  const auto environment = config::process_environment();
  const auto host = config::load_host_config(*path, environment);
  if (const auto* errors = std::get_if<std::vector<ConfigError>>(&host)) {
    report.add(*errors);
    return report.finish(*path);
  }
  auto settings = std::get<config::HostConfig>(host);
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

}  // namespace

Command check_command() {
  return {
      .name = "check",
      .group = "Host",
      .summary = "Check the host file, the jobs, the plugins and their options",
      .usage = "[--output json|text] [--allow-insecure-files] [--config FILE]",
      .description =
          "Prints every error as file:line:column: message and ends with exit code 78 if there is one; "
          "otherwise prints a line for each job, and beside what its file says what operators want of it (`pause`, "
          "`scale`), where the store is there, and when its schedules are due next. Handlers are tried in a process of "
          "their own, and created and ended "
          "again, as a start would do; no message is touched. With --json it prints one object: good, errors with "
          "their places, warnings, and jobs.",
      .flags = joined({allow_insecure_files_flag(), config_flag()}, text_output_flags()),
      .examples =
          "sluice check --config etc/host.toml\n"
          "sluice check --json | jq .errors",
      .run = check,
  };
}

}  // namespace sluice::cli
