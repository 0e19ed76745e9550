// What jobs ask of the order of messages, held against what stores can do: the one place, for `check` and the start.

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "host/runtime/job_plan.hpp"
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

}  // namespace sluice::runtime
