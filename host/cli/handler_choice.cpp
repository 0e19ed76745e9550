#include "host/cli/handler_choice.hpp"

#include <algorithm>
#include <filesystem>
#include <span>

#include "base/ranges.hpp"
#include "base/text/joined.hpp"
#include "base/text/json_string.hpp"
#include "base/text/visible.hpp"
#include "host/cli/queue_session.hpp"

namespace sluice::cli {
namespace {

using config::ConfigError;
using config::JobConfig;

/// The queue of a message that is from none.
constexpr const char* kNoQueue = "try";

std::span<const sluice_option* const> options_of(const sluice_handler& handler) {
  return {handler.options, handler.option_count};
}

const sluice_option* declared(const sluice_handler& handler, std::string_view name) {
  const auto options = options_of(handler);
  const auto* const found = find_where(options, [name](const sluice_option* one) { return one->name == name; });
  return found == nullptr ? nullptr : *found;
}

/// Its host file, where there is one or it is needed: with --plugin a command does without.
OrExit<config::HostConfig> host_of(const Arguments& arguments, const HandlerWish& wish) {
  if (!wish.without_host_file && (!arguments.has("plugin") || works_by_host_file(arguments))) {
    return load_host_file(arguments);
  }
  config::HostConfig host;
  host.jobs.clear();
  return host;
}

OrExit<std::vector<JobConfig>> jobs_of(config::HostConfig& host, const Arguments& arguments, Console& console) {
  const std::string job = arguments.get("job");
  if (is_job_file(job)) {
    std::error_code code;
    if (!std::filesystem::is_regular_file(job, code)) {
      return Exit(kExitConfiguration, "--job " + visible(job) + ": there is no such file");
    }
    host.jobs = {std::filesystem::absolute(job).string()};
    host.job_places.clear();
  }
  auto files = config::load_job_files(host, config::process_environment());
  if (!files.errors.empty() && !job.empty()) {
    return Exit(files.errors);
  }
  for (const ConfigError& error : files.errors) {
    console.note("warning: this job file is passed over: " + error.text());
  }
  return std::move(files.jobs);
}

std::vector<std::string> names_of(const std::vector<const JobConfig*>& jobs) { return mapped(jobs, &JobConfig::name); }

/// Leaves those that are so, where any is.
template <typename Predicate>
void prefer(std::vector<const JobConfig*>& jobs, Predicate is_so) {
  if (std::any_of(jobs.begin(), jobs.end(), is_so)) {
    std::erase_if(jobs, [&is_so](const JobConfig* job) { return !is_so(job); });
  }
}

/// The job whose options and policy count; null: none uses the handler, or none works on the queue.
OrExit<const JobConfig*> job_for(const std::vector<JobConfig>& jobs, const Arguments& arguments,
                                 const HandlerWish& wish) {
  std::vector<const JobConfig*> all = mapped(jobs, [](const JobConfig& job) { return &job; });
  const std::string named = arguments.get("job");
  if (!named.empty() && !is_job_file(named)) {
    const auto names = names_of(all);
    const auto meant = config::nearest(named, names);
    std::erase_if(all, [&named](const JobConfig* job) { return job->name != named; });
    if (all.empty()) {
      return Exit::usage("no job is called \"" + named + "\"; " +
                         (meant           ? "did you mean \"" + *meant + "\"?"
                          : names.empty() ? "there are no jobs"
                                          : "there are: " + sluice::joined(names)));
    }
  }
  if (!wish.handler.empty()) {
    const std::string other = all.empty() ? "" : all.front()->handler;
    std::erase_if(all, [&wish](const JobConfig* job) { return job->handler != wish.handler; });
    if (!named.empty() && all.empty()) {
      return Exit::usage("job " + named + " runs the handler " + (other.empty() ? "of no job" : other) + ", not " +
                         wish.handler + "; leave one of both out");
    }
  } else if (named.empty() && !wish.queue.empty()) {
    std::erase_if(all, [&wish](const JobConfig* job) { return !contains(job->queue_names(), wish.queue); });
  }
  prefer(all,
         [&wish](const JobConfig* job) { return !wish.queue.empty() && contains(job->queue_names(), wish.queue); });
  prefer(all, [&wish](const JobConfig* job) {
    return (job->source == config::Source::dlq) == (wish.half == queue::Half::dlq);
  });
  if (all.size() > 1) {
    return Exit::usage("several jobs are meant: " + sluice::joined(names_of(all)) + "; say which with --job NAME");
  }
  return all.empty() ? nullptr : all.front();
}

/// Lets the plugins in that may offer the handler.
OrExit<void> load_plugins(const Arguments& arguments, const HandlerWish& wish, HandlerChoice& choice,
                          const std::vector<JobConfig>& jobs) {
  config::HostConfig host = choice.host;
  host.allow_insecure_files = arguments.has(kAllowInsecureFiles) || arguments.has("plugin");
  if (arguments.has("plugin")) {
    SLUICE_TRY(file, plugin_file(arguments));
    host.plugin_dirs = {wish.copy.empty() ? *file : wish.copy};
  } else {
    choice.registry.pin(plugin::pins_of(jobs));
  }
  SLUICE_PASS_ON(runtime::admit_plugins(host, choice.registry, {}));
  const auto& rejected = choice.registry.rejected();
  if (arguments.has("plugin") && choice.registry.plugins().empty() && !rejected.empty()) {
    return Exit(kExitConfiguration, rejected.front().why);
  }
  return {};
}

/// The only handler there is; exit 64 where there are several.
OrExit<std::string> only_handler(const plugin::PluginRegistry& registry) {
  const auto names = registry.handler_names();
  if (names.size() == 1) {
    return names.front();
  }
  return Exit::usage("which handler? " +
                     (names.empty() ? std::string("No plugin offers one") : "There are: " + sluice::joined(names)));
}

/// A job with these lines of TOML as its options.
config::Parsed<JobConfig> parsed_option(const std::string& lines) {
  return config::parse_job_config("[job]\nname = \"option\"\nqueue = \"q\"\nhandler = \"h\"\n[job.options]\n" + lines,
                                  "--option", config::process_environment());
}

OrExit<void> apply_options(const Arguments& arguments, const sluice_handler& handler, JobConfig& job) {
  for (const std::string& option : arguments.all("option")) {
    SLUICE_TRY(line, option_line(option, handler));
    auto parsed = parsed_option(*line);
    if (!parsed) {
      return Exit::usage("--option " + option + ": " + parsed.error().front().message);
    }
    for (auto& [name, value] : parsed->options) {
      value.place = {"--option " + visible(option), 0, 0};
      job.options[name] = std::move(value);
    }
  }
  return {};
}

/// What gives a handler's options besides --option: the first of the usual job files that names it, where there is one.
std::string job_that_says(const sluice_handler& handler) {
  const auto jobs = config::load_job_files({}, config::process_environment()).jobs;
  const JobConfig* const found = find_where(jobs, [&](const JobConfig& job) { return job.handler == handler.name; });
  return ", or --job " + (found == nullptr ? "FILE with a job file that says it" : found->file);
}

/// Exit 64 naming each option that the handler requires and the job lacks, with its help. `made`: it has no file.
OrExit<void> check_required(const sluice_handler& handler, const JobConfig& job, bool made) {
  std::vector<std::string> missing;
  for (const sluice_option* option : options_of(handler)) {
    if ((option->flags & SLUICE_OPTION_REQUIRED) != 0 && !job.options.contains(option->name)) {
      const std::string_view help = option->help == nullptr ? "" : option->help;
      missing.push_back("handler " + std::string(handler.name) + " needs --option " + option->name + "=VALUE" +
                        (made ? job_that_says(handler) : "") + (help.empty() ? "" : ": " + std::string(help)));
    }
  }
  return missing.empty() ? OrExit<void>() : OrExit<void>(Exit(kExitUsage, std::move(missing)));
}

/// What goes around the job's handler, and is in other plugins than that of --plugin.
void leave_out_arounds(JobConfig& job, const plugin::PluginRegistry& registry, Console& console) {
  std::erase_if(job.arounds, [&](const config::AroundConfig& around) {
    const bool missing = registry.handler(around.handler).has_error();
    if (missing) {
      console.note("warning: " + around.handler + ", which job " + job.name +
                   " has around its handler, is in another plugin than --plugin names: it is left out");
    }
    return missing;
  });
}

/// A job for a handler that none uses.
JobConfig made_job(const std::string& handler, const HandlerWish& wish) {
  JobConfig job;
  job.name = handler;
  job.handler = handler;
  job.queue = wish.queue.empty() ? kNoQueue : wish.queue;
  return job;
}

}  // namespace

bool is_job_file(const std::string& job) { return job.ends_with(".toml") || job.find('/') != std::string::npos; }

std::vector<Flag> handler_flags() {
  return {{"plugin", "X.so", "look for the handler in this file alone, whatever the host file's folders hold"},
          filled({"job", "NAME|FILE", "by this job's options and policy [default: the job that uses the handler]"}),
          repeated({"option", "NAME=VALUE", "an option, instead of the job's; may be repeated"}),
          kAllowInsecureFilesFlag,
          kConfigFlag};
}

OrExit<std::string> plugin_file(const Arguments& arguments) {
  const std::string file = arguments.get("plugin");
  std::error_code code;
  if (!std::filesystem::exists(file, code)) {
    return Exit(kExitConfiguration, "there is no plugin " + visible(file) + "; build it, or mend the name");
  }
  if (!std::filesystem::is_regular_file(file, code)) {
    return Exit(kExitConfiguration, "--plugin " + visible(file) + " is no file; name the plugin's .so");
  }
  return std::filesystem::absolute(file).lexically_normal().string();
}

OrExit<std::string> option_line(const std::string& option, const sluice_handler& handler) {
  const auto equals = option.find('=');
  if (equals == std::string::npos || equals == 0) {
    return Exit::usage("--option " + option + " is no NAME=VALUE");
  }
  const std::string name = option.substr(0, equals);
  const std::string value = option.substr(equals + 1);
  const std::string quoted = json_quoted(name) + " = " + json_quoted(value) + "\n";
  const std::string raw = json_quoted(name) + " = " + value + "\n";
  const sluice_option* const known = declared(handler, name);
  if (known != nullptr) {
    return known->type == SLUICE_OPTION_STRING || known->type == SLUICE_OPTION_DURATION ? quoted : raw;
  }
  return parsed_option(raw) ? raw : quoted;
}

OrExit<std::unique_ptr<HandlerChoice>> choose_handler(const Arguments& arguments, const HandlerWish& wish,
                                                      Console& console) {
  auto choice = std::make_unique<HandlerChoice>();
  SLUICE_TRY(host, host_of(arguments, wish));
  choice->host = std::move(*host);
  SLUICE_TRY(jobs, jobs_of(choice->host, arguments, console));
  SLUICE_PASS_ON(load_plugins(arguments, wish, *choice, *jobs));
  HandlerWish meant = wish;
  if (arguments.has("plugin") && !arguments.has("job") && wish.handler.empty() && wish.queue.empty()) {
    // Whatever jobs the host file has for other handlers.
    SLUICE_TRY(only, only_handler(choice->registry));
    meant.handler = std::move(*only);
  }
  SLUICE_TRY(job, job_for(*jobs, arguments, meant));
  if (*job == nullptr && wish.handler.empty() && !wish.queue.empty() && !arguments.has("plugin")) {
    return Exit::usage("no job works on queue " + wish.queue + "; name a handler with --handler");
  }
  std::string name = *job != nullptr ? (*job)->handler : meant.handler;
  if (name.empty()) {
    SLUICE_TRY(only, only_handler(choice->registry));
    name = std::move(*only);
  }
  JobConfig config = *job != nullptr ? **job : made_job(name, wish);
  if (arguments.has("plugin")) {
    config.plugin.reset();
    leave_out_arounds(config, choice->registry, console);
  }
  SLUICE_TRY(handler, or_exit(kExitConfiguration, config.plugin ? choice->registry.handler(name, *config.plugin)
                                                                : choice->registry.handler(name)));
  SLUICE_PASS_ON(apply_options(arguments, **handler, config));
  SLUICE_PASS_ON(check_required(**handler, config, *job == nullptr));
  SLUICE_TRY(planned, runtime::plan_jobs({config}, choice->registry));
  choice->plan = std::move(planned->front());
  choice->has_job = *job != nullptr;
  return choice;
}

}  // namespace sluice::cli
