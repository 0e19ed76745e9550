#include <algorithm>
#include <variant>

#include "host/cli/command.hpp"
#include "host/cli/filter_arguments.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/message_ids.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/transaction_report.hpp"
#include "host/plugin/attempt.hpp"
#include "host/plugin/handler_instance.hpp"
#include "host/plugin/plugin_registry.hpp"
#include "host/runtime/host_queues.hpp"
#include "host/runtime/job_plan.hpp"
#include "host/runtime/store_reach.hpp"

namespace sluice::cli {

namespace {

using runtime::JobPlan;

/// The job of that name with its handler loaded; exit 78 with what is wrong with files and plugins.
OrExit<JobPlan> plan_of(const config::HostConfig& host, const std::string& name, plugin::PluginRegistry& registry) {
  const auto planned = runtime::load_job_plans(host, registry, [](const config::JobConfig&) { return false; });
  if (const auto* errors = std::get_if<std::vector<config::ConfigError>>(&planned)) {
    return configuration_exit(*errors);
  }
  const auto& plans = std::get<std::vector<JobPlan>>(planned);
  const auto found =
      std::find_if(plans.begin(), plans.end(), [&name](const JobPlan& plan) { return plan.config.name == name; });
  if (found == plans.end()) {
    return Exit(kExitConfiguration, "no job is called '" + name + "'; `sluice check` lists the jobs of " + host.file);
  }
  return *found;
}

/// Runs the handler in this process, as the message's next delivery would.
OrExit<plugin::Outcome> handle(const JobPlan& plan, const config::HostConfig& host, queue::Message message,
                               const Clock& clock, Console& console) {
  SeededRandom random;
  const auto log = [&console](sluice_log_level, std::string_view, std::string_view, std::string_view text) {
    console.note("handler: " + std::string(text));
  };
  const plugin::EffectRules effects =
      plugin::effect_rules(plan.config, host.store_of(plan.config.queue).kind, random, clock);
  const auto instance =
      plugin::HandlerInstance::create_in({log, {}, {}, effects}, *plan.handler, plan.config.name, plan.options);
  if (instance.has_error()) {
    return Exit(kExitConfiguration, instance.error().message());
  }
  plugin::Attempt attempt(clock);
  const Duration timeout = plan.config.timeout;
  attempt.arm(timeout > Duration::zero() ? clock.steady_now() + timeout : SteadyTime::max());
  ++message.attempt;
  return (*instance)->handle(message, plan.config.queue, plan.config.retry.max_attempts, attempt);
}

/// What is wrong with the effects that shows without the store; empty: nothing.
std::string refusal_of(const config::HostConfig& host, const std::string& queue, const plugin::Outcome& outcome) {
  if (!outcome.effects) {
    return {};
  }
  for (const queue::EmittedMessage& emitted : outcome.effects->messages) {
    if (const auto why = runtime::beyond_store(host, queue, emitted.queue)) {
      return "message " + emitted.message.id + " to queue " + emitted.queue + ": " + why->message();
    }
  }
  return {};
}

Exit dry_run(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(id, the_message_id(arguments));
  SLUICE_TRY(host, load_host_file(arguments));
  host->allow_insecure_files = arguments.has(kAllowInsecureFiles);
  plugin::PluginRegistry registry;
  SLUICE_TRY(plan, plan_of(*host, arguments.get("job"), registry));
  const SystemClock clock;
  SeededRandom random;
  runtime::HostQueues queues(*host, clock, random, nullptr);
  auto oper = queues.open_operator(plan->config.queue);
  if (oper.has_error()) {
    return Exit::failure(oper.error());
  }
  const auto message = (*oper)->get(*id, Deadline::after(clock, std::chrono::seconds(30)));
  if (message.has_error()) {
    return Exit::failure(message.error());
  }
  SLUICE_TRY(outcome, handle(*plan, *host, message->message, clock, console));
  const DryRun run{plan->config.name,
                   plan->config.queue,
                   *id,
                   host->store_of(plan->config.queue).kind == config::StoreKind::dynamodb,
                   plan->config.idempotency.has_value(),
                   *outcome,
                   refusal_of(*host, plan->config.queue, *outcome)};
  if (*output == Output::text) {
    console.out(dry_run_text(run));
  } else {
    JsonWriter json(JsonWriter::Layout::indented);
    write_dry_run(run, json);
    console.out(json.take_line());
  }
  return Exit::ok();
}

}  // namespace

Command dry_run_command() {
  return {
      .name = "dry-run",
      .group = "Messages",
      .summary = "Run a job's handler on one message, and show what it would commit",
      .usage = "ID --job JOB [--output json|text] [--allow-insecure-files] [--config FILE]",
      .description =
          "Takes the message as it lies in the job's queue, dead-letter half included, and runs the job's handler on "
          "it "
          "in this process. Then it prints the outcome and the transaction that would end the message: the messages "
          "and writes that the handler staged, in DynamoDB's or SQL's words. The message is not claimed, and nothing "
          "of the transaction is committed. What the handler does by itself, such as a request to another server, it "
          "really does.",
      .flags = joined({{.name = "job", .value = "JOB", .help = "the job, by its name", .required = true},
                       id_flag(),
                       allow_insecure_files_flag(),
                       config_flag()},
                      output_flags()),
      .positional = {"id"},
      .examples = "sluice dry-run --job transfers A-101",
      .run = dry_run,
  };
}

}  // namespace sluice::cli
