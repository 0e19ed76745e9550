#include "host/cli/command.hpp"
#include "host/cli/fleet_session.hpp"
#include "host/cli/views/cost_report.hpp"
#include "host/cli/views/output.hpp"

namespace sluice::cli {

namespace {

Exit cost(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(session, FleetSession::open(arguments));
  SLUICE_TRY(view, session->hosts());
  const cost::Prices prices(session->queues().host().cost);
  const auto costs = operate::summarize_costs(*view, session->queues().queue(), prices);
  console.out(*output == Output::json ? cost_json(costs, prices)
                                      : cost_text(costs, prices, console.output_has_colour()));
  return troubles_of(view->troubles);
}

}  // namespace

Command cost_command() {
  return {
      .name = "cost",
      .group = "Fleet",
      .summary = "Show what the last hour has cost, and what another layout would have",
      .usage = "[--queue QUEUE] [--json] [OPTION]...",
      .description =
          "Every host counts what DynamoDB's answers report of each call, by queue and job, and tells the sum of the "
          "last hour in its record. A row for each queue and job: messages claimed; requests, read and write units "
          "a message; money for a million of them, for the hour, and for a month at this pace. \"(shared)\" is what no "
          "job has caused by itself, such as the hosts' own records. With [cost] attribute in the host file there "
          "is a row for each value of it too.\n\n"
          "Below that, what the same messages would have come to in other layouts: those of DynamoMQ's table, of the "
          "leased one, of SQS and of SQLite, by published rules, the storage of what lay there until it was handed out "
          "included. Prices are those of [cost] in the host file, else "
          "DynamoDB's on demand in us-east-1; their day is told. Hosts that have ended tell nothing.",
      .flags = with_store_flags({}),
      .examples =
          "sluice cost\n"
          "sluice cost --queue orders --json | jq .money_per_month",
      .run = cost,
  };
}

}  // namespace sluice::cli
