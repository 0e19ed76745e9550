#include "host/runtime/job_plan.hpp"

#include <iterator>

#include "config/file_trust.hpp"
#include "host/runtime/plugin_trial.hpp"
#include "host/runtime/service.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::runtime {

using config::ConfigError;
using config::JobConfig;
using config::Parsed;

Parsed<std::vector<JobPlan>> plan_jobs(const std::vector<JobConfig>& jobs, const plugin::PluginRegistry& registry) {
  std::vector<JobPlan> plans;
  std::vector<ConfigError> errors;
  for (const JobConfig& job : jobs) {
    const auto handler = job.plugin ? registry.handler(job.handler, *job.plugin) : registry.handler(job.handler);
    if (!handler) {
      errors.push_back({job.plugin ? job.plugin->place : job.handler_place, handler.error().message()});
      continue;
    }
    auto options = plugin::bind_options(**handler, job);
    if (auto* wrong = std::get_if<std::vector<ConfigError>>(&options)) {
      std::move(wrong->begin(), wrong->end(), std::back_inserter(errors));
      continue;
    }
    JobPlan& plan = plans.emplace_back();
    plan.config = job;
    plan.handler = *handler;
    plan.options = std::get<plugin::OptionValues>(std::move(options));
    const plugin::LoadedPlugin* const owner = registry.owner_of(*handler);
    plan.plugin_file = owner->file;
    plan.plugin_version = owner->plugin->version == nullptr ? "" : owner->plugin->version;
  }
  if (!errors.empty()) {
    return errors;
  }
  return plans;
}

std::vector<ConfigError> distrusted(const config::HostConfig& host, const std::vector<JobConfig>& jobs) {
  std::vector<ConfigError> errors;
  if (host.allow_insecure_files) {
    return errors;
  }
  std::vector<std::string> files{host.file, host.state_dir};
  for (const JobConfig& job : jobs) {
    files.push_back(job.file);
  }
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
  auto admitted = admit_plugins(host, registry, fresh);
  if (!admitted) {
    add({{{host.file}, admitted.error().message()}});
    return std::move(errors);
  }
  add(std::move(*admitted));
  // The good jobs are bound even when others are bad, so that everything wrong is reported at once.
  auto planned = plan_jobs(files.jobs, registry);
  if (auto* wrong = std::get_if<std::vector<ConfigError>>(&planned)) {
    add(std::move(*wrong));
  }
  if (!errors.empty()) {
    return std::move(errors);
  }
  return planned;
}

Error cannot_start(const JobPlan& plan, const Error& error) {
  std::string text = plan.config.file + ": job '" + plan.config.name + "' cannot start: " + error.message();
  if (error.code() == ErrorCode::unavailable) {
    text += " (limits: " + thread_limits() + ")";
  }
  return {error.code(), std::move(text)};
}

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

std::string where(const std::string& queue) { return "queue \"" + queue + "\" lies in a DynamoDB table, "; }

/// What one queue of a job cannot give; empty: nothing.
std::string refusal(const JobConfig& job, const std::string& queue, const queue::SourceTraits& traits) {
  if (job.order == config::Order::group && !traits.groups) {
    return where(queue) +
           "where groups cannot be kept in order beside Go programs, which would take their messages in between; use "
           "order = \"queue\", a queue for each group, layout = \"leased\", or a SQLite store";
  }
  if (job.order == config::Order::queue && !traits.sequence) {
    return where(queue) + "which cannot hand out one message after the other; use a SQLite store";
  }
  if (job.fair && !traits.groups) {
    return where(queue) +
           "which has no turns by group; use a queue for each group and one job with queues = [\"a:1\", \"b:1\"], "
           "layout = \"leased\", or a SQLite store";
  }
  if (job.on_dead_letter == config::OnDeadLetter::hold && !traits.groups) {
    return where(queue) +
           "where nothing can be held behind a dead letter, since Go programs would go on; use on_dead_letter = "
           "\"continue\", layout = \"leased\", or a SQLite store";
  }
  const bool weighs = job.weighs_priorities || !(job.priorities == config::PriorityWeights());
  if (weighs && !traits.priorities) {
    return where(queue) + std::string(kNoPriorities);
  }
  return {};
}

/// What its schedules send and the store of their queue does not take.
void add_schedules(const config::HostConfig& host, const JobConfig& job, std::vector<ConfigError>& errors) {
  for (const config::ScheduleConfig& schedule : job.schedules) {
    const std::string& queue = schedule.queue.empty() ? job.queue : schedule.queue;
    const bool normal = schedule.priority.empty() || schedule.priority == "normal";
    if (!normal && !traits_of(host, queue).priorities) {
      errors.push_back({schedule.place, where(queue) + std::string(kNoPriorities)});
    }
  }
}

/// What an outbox cannot give a job; empty: nothing.
std::string outbox_refusal(const JobConfig& job) {
  const std::string where = "\"" + job.queue + "\" is a table of an application, ";
  if (job.idempotency) {
    return where + "which keeps no idempotency keys; take [job.idempotency] away (a row's id tells a repetition)";
  }
  if (job.weighs_priorities || !(job.priorities == config::PriorityWeights())) {
    return where + "which has no priorities; use a job for each class, with types in [job.outbox]";
  }
  return {};
}

std::string order_text(const JobConfig& job) {
  const std::string order = job.order == config::Order::group   ? "group"
                            : job.order == config::Order::queue ? "queue"
                                                                : "none";
  return "order = \"" + order + "\"" + (job.fair ? " and fair = true" : "") +
         (job.on_dead_letter == config::OnDeadLetter::hold ? " and on_dead_letter = \"hold\"" : "");
}

}  // namespace

std::vector<ConfigError> refused_rules(const config::HostConfig& host, const std::vector<JobConfig>& jobs) {
  std::vector<ConfigError> errors;
  std::map<std::pair<std::string, config::Source>, const JobConfig*> first_on;
  for (const JobConfig& job : jobs) {
    if (config::outbox_named(job.queue)) {
      if (std::string why = outbox_refusal(job); !why.empty()) {
        errors.push_back({job.queue_place, std::move(why)});
      }
      continue;
    }
    add_schedules(host, job, errors);
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
  names.reserve(plans.size());
  for (const JobPlan& plan : plans) {
    for (const config::WeightedQueue& queue : work::queues_of(plan.config)) {
      names.push_back(queue.name);
    }
  }
  return names;
}

std::vector<std::string> queues_of(const std::vector<queue::QueueAddress>& addresses) {
  std::vector<std::string> names;
  names.reserve(addresses.size());
  for (const queue::QueueAddress& address : addresses) {
    names.push_back(address.queue);
  }
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? "none" : text;
}

}  // namespace sluice::runtime
