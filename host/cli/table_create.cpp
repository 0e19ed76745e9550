#include <stop_token>

#include "host/cli/command.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/json_text.hpp"
#include "host/queue/dynamomq/table.hpp"
#include "host/runtime/dynamodb_connection.hpp"

namespace sluice::cli {

namespace {

using queue::dynamomq::TableOutcome;
using queue::dynamomq::TableSpec;

constexpr Duration kTableTime = std::chrono::minutes(10);

struct Target {
  TableSpec spec;
  runtime::DynamoDbConnection::Options connection;
};

/// From the options alone with --table, else from the host file; options win over the file.
OrExit<Target> find_target(const Arguments& arguments) {
  Target target;
  if (!arguments.has("table")) {
    if (!arguments.has("queue")) {
      return Exit::usage("which table? name it by --queue QUEUE of the host file, or by --table TABLE");
    }
    const auto host = load_host_file(arguments);
    if (host.has_error()) {
      return host.error();
    }
    if (host->store_kind != config::StoreKind::dynamodb) {
      return Exit(kExitConfiguration, host->file +
                                          ": the store is SQLite, which needs no tables; set [store] kind = "
                                          "\"dynamodb\", or name a table with --table");
    }
    const auto queue = host->queue(arguments.get("queue"));
    target.spec.table = queue.table;
    target.spec.index = queue.index;
    target.connection.region = host->dynamodb_region;
    target.connection.endpoint = host->dynamodb_endpoint;
  } else if (arguments.has("queue")) {
    return Exit::usage("--queue and --table both name the table; give one");
  } else {
    target.spec.table = arguments.get("table");
  }
  target.spec.index = arguments.get("index", target.spec.index);
  target.spec.deletion_protection = !arguments.has("no-deletion-protection");
  target.connection.region = arguments.get("region", target.connection.region);
  target.connection.endpoint = arguments.get("endpoint", target.connection.endpoint);
  return target;
}

Exit create_table(const Arguments& arguments, Console& console) {
  const auto target = find_target(arguments);
  if (target.has_error()) {
    return target.error();
  }
  const SystemClock clock;
  SeededRandom random;
  const auto connection = runtime::DynamoDbConnection::open(target->connection, clock, random);
  if (connection.has_error()) {
    return Exit::failure(connection.error());
  }
  console.progress("waiting for table " + target->spec.table + " to become active");
  const auto outcome = queue::dynamomq::create_queue_table((*connection)->client(), target->spec, clock,
                                                           Deadline::after(clock, kTableTime));
  console.end_progress();
  if (outcome.has_error()) {
    return Exit::failure(outcome.error());
  }
  JsonText json(JsonText::Layout::indented);
  json.begin_object();
  json.member("table", target->spec.table);
  json.member("index", target->spec.index);
  json.member("region", (*connection)->region());
  json.member("created", *outcome == TableOutcome::created);
  json.end_object();
  console.out(json.take_line());
  return Exit::ok();
}

}  // namespace

Command table_create_command() {
  return {
      .name = "table create",
      .group = "Tables",
      .summary = "Make the DynamoDB table and index that a queue needs",
      .usage = "(--queue QUEUE | --table TABLE) [OPTION]...",
      .description =
          "The table is DynamoMQ's, paid for by request, and protected from deletion. Waits until it can be "
          "used. One that is there and right is a success; one that is there and differs is an error that "
          "names every difference. Ctrl-C ends the waiting, not the table.",
      .flags = {{.name = "queue", .value = "QUEUE", .help = "the table of this queue, as the host file has it"},
                {.name = "table", .value = "TABLE", .help = "the table by its name; no host file is read then"},
                {.name = "index", .value = "INDEX", .help = "its index [default: dynamo-mq-index-queue_type-sent_at]"},
                {.name = "endpoint", .value = "URL", .help = "DynamoDB's address [default: AWS's own]"},
                {.name = "region", .value = "REGION", .help = "AWS region [default: from the environment or profile]"},
                {.name = "no-deletion-protection", .value = {}, .help = "leave the table unprotected"},
                config_flag()},
      .examples =
          "sluice table create --queue orders\n"
          "sluice table create --table orders --endpoint http://127.0.0.1:8000",
      .run = create_table,
  };
}

}  // namespace sluice::cli
