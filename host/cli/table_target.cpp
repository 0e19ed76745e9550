#include "host/cli/table_target.hpp"

#include <algorithm>

#include "base/shell_word.hpp"
#include "host/cli/host_file.hpp"
#include "host/cli/queue_names.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/unopened.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/dynamomq/table_errors.hpp"

namespace sluice::cli {

namespace {

constexpr Duration kDescribeTime = std::chrono::seconds(30);
constexpr std::string_view kDefaultTable = queue::dynamomq::kDefaultTableName;
constexpr std::size_t kShortestName = 3;
constexpr std::size_t kLongestName = 255;

bool is_name(const std::string& name) {
  return name.size() >= kShortestName && name.size() <= kLongestName &&
         std::all_of(name.begin(), name.end(), [](char byte) {
           return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
                  byte == '_' || byte == '-' || byte == '.';
         });
}

Exit check_names(const queue::dynamomq::TableSpec& spec) {
  for (const std::string& name : {spec.table, spec.index}) {
    if (!is_name(name)) {
      return Exit::usage("\"" + name +
                         "\" is no name for a table or an index; one has 3 to 255 of the characters a-z A-Z 0-9 _ - .");
    }
  }
  return Exit::ok();
}

/// Whether the options and AWS's environment say where the table is, as for commands on queues.
bool stands_alone(const Arguments& arguments) {
  const bool placed = arguments.has("endpoint") || arguments.has("index");
  return arguments.has("table") || (placed && !arguments.has("queue")) ||
         (!names_host_file(arguments) && !default_host_file());
}

/// The options of this command line that say where the table is; its name where none does.
std::string naming_options(const Arguments& arguments, const std::string& table) {
  std::string options;
  for (const char* const name : {"config", "queue", "table", "index", "endpoint", "region"}) {
    if (arguments.has(name)) {
      options += (options.empty() ? "--" : " --") + std::string(name) + " " + shell_word(arguments.get(name));
    }
  }
  return options.empty() ? "--table " + shell_word(table) : options;
}

OrExit<std::string> queue_of(const Arguments& arguments, const config::HostConfig& host) {
  if (arguments.has("queue")) {
    return arguments.get("queue");
  }
  const auto names = known_queues(host);
  if (names.size() == 1) {
    return names.front();
  }
  return Exit::usage("which table? name it by --queue QUEUE" +
                     (names.empty() ? std::string() : ", one of " + listed(names)) + ", or by --table TABLE");
}

OrExit<TableTarget> named_in_host_file(const Arguments& arguments) {
  const auto host = load_host_file(arguments);
  if (host.has_error()) {
    return host.error();
  }
  if (host->store_kind != config::StoreKind::dynamodb) {
    return Exit(kExitConfiguration, host->file +
                                        ": the store is SQLite, which needs no tables; set [store] kind = "
                                        "\"dynamodb\", or name a table with --table");
  }
  const auto name = queue_of(arguments, *host);
  if (name.has_error()) {
    return name.error();
  }
  const auto queue = host->queue(*name);
  TableTarget target;
  target.spec.table = queue.table;
  target.spec.index = queue.index;
  target.connection.region = host->dynamodb_region;
  target.connection.endpoint = host->dynamodb_endpoint;
  return target;
}

}  // namespace

std::vector<Flag> with_table_flags(std::vector<Flag> own) {
  own.push_back({.name = "queue",
                 .value = "QUEUE",
                 .help = "the table of this queue, as the host file has it [default: its only one]",
                 .common = true});
  own.push_back({.name = "table",
                 .value = "TABLE",
                 .help = "the table by its name; no host file is read then [default without one: dynamo-mq-table]",
                 .common = true,
                 .alias = "table-name"});
  own.push_back({.name = "index",
                 .value = "INDEX",
                 .help = "its index [default: dynamo-mq-index-queue_type-sent_at]",
                 .common = true,
                 .alias = "index-name"});
  own.push_back({.name = "endpoint",
                 .value = "URL",
                 .help = "DynamoDB's address [default: AWS's own]",
                 .common = true,
                 .alias = "endpoint-url"});
  own.push_back({.name = "region",
                 .value = "REGION",
                 .help = "AWS region [default: from the environment or profile]",
                 .common = true});
  Flag config = config_flag();
  config.common = true;
  own.push_back(config);
  return own;
}

OrExit<TableTarget> find_table(const Arguments& arguments) {
  if (arguments.has("queue") && arguments.has("table")) {
    return Exit::usage("--queue and --table both name the table; give one");
  }
  TableTarget target;
  if (stands_alone(arguments)) {
    target.spec.table = arguments.get("table", arguments.get("queue", std::string(kDefaultTable)));
  } else {
    auto named = named_in_host_file(arguments);
    if (named.has_error()) {
      return named.error();
    }
    target = std::move(*named);
  }
  target.spec.index = arguments.get("index", target.spec.index);
  target.connection.region = arguments.get("region", target.connection.region);
  target.connection.endpoint = arguments.get("endpoint", target.connection.endpoint);
  target.options = naming_options(arguments, target.spec.table);
  if (Exit wrong = check_names(target.spec); wrong.code() != kExitOk) {
    return wrong;
  }
  return target;
}

OrExit<dynamo::TableDescription> describe_table(const TableTarget& target, std::string& region) {
  const SystemClock clock;
  SeededRandom random;
  const auto connection = runtime::DynamoDbConnection::open(target.connection, clock, random);
  if (connection.has_error()) {
    return unopened(connection.error());
  }
  region = (*connection)->region();
  auto table = (*connection)->client().describe_table(target.spec.table, Deadline::after(clock, kDescribeTime));
  if (table.has_error()) {
    return Exit::failure(queue::dynamomq::store_error(
        {target.spec.table, target.spec.table, target.spec.index, region, target.options}, table.error()));
  }
  return std::move(*table);
}

}  // namespace sluice::cli
