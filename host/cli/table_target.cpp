#include "host/cli/table_target.hpp"

#include <utility>

#include "host/cli/unopened.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::cli {

namespace {

constexpr Duration kDescribeTime = std::chrono::seconds(30);

/// The layout that the command line names, or the host file.
OrExit<queue::dynamodb::TableLayout> layout_of(const Arguments& arguments, const config::QueueConfig& queue) {
  using queue::dynamodb::kDynamoMqLayout;
  using queue::dynamodb::kLeasedLayout;
  const auto configured = queue.layout == config::Layout::leased ? kLeasedLayout : kDynamoMqLayout;
  const std::string named = arguments.get("layout", std::string(configured.name));
  if (named != kDynamoMqLayout.name && named != kLeasedLayout.name) {
    return Exit::usage("--layout is dynamomq or leased, not \"" + named + "\"");
  }
  if (named == kLeasedLayout.name && arguments.has("index")) {
    return Exit::usage("--index goes with --layout dynamomq only: a leased table has no index");
  }
  return named == kLeasedLayout.name ? kLeasedLayout : kDynamoMqLayout;
}

}  // namespace

std::vector<Flag> with_table_flags(std::vector<Flag> own) {
  own.push_back({.name = "layout",
                 .value = "dynamomq|leased",
                 .help = "how queues lie in the table [default: the host file's word, else dynamomq]"});
  return with_place_flags(std::move(own), Outboxes::not_taken);
}

std::string with_index(const TableTarget& target) {
  return target.spec.layout.indexed ? " with index " + target.spec.index : std::string();
}

void write_table(JsonWriter& json, const TableTarget& target) {
  json.member("table", target.spec.table);
  json.member("layout", target.spec.layout.name);
  json.key("index");
  if (target.spec.layout.indexed) {
    json.value(target.spec.index);
  } else {
    json.null();
  }
}

OrExit<TableTarget> find_table(const Arguments& arguments) {
  if (arguments.has("queue") && arguments.has("table")) {
    return Exit::usage("--queue and --table both name the table; give one");
  }
  SLUICE_TRY(place, QueuePlace::find(arguments));
  if (place->in_sqlite()) {
    return Exit(kExitConfiguration, place->host().file + ": queue " + place->queue() +
                                        " lies in SQLite, which needs no tables; name a table with --table, or a "
                                        "store of kind \"dynamodb\" for the queue");
  }
  const config::QueueConfig queue = place->host().queue(place->queue());
  TableTarget target{.place = std::move(*place), .spec = {}, .connection = {}};
  target.spec.table = queue.table;
  target.spec.index = queue.index;
  SLUICE_TRY(layout, layout_of(arguments, queue));
  target.spec.layout = *layout;
  target.connection = runtime::DynamoDbConnection::options_of(target.place.host(), queue.store);
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
    const Error error =
        queue::table::store_error({target.spec.table, target.spec.table, target.spec.index, region}, table.error());
    return Exit::failure(target.place.explained(error, target.place.queue()));
  }
  return std::move(*table);
}

std::optional<queue::table::TableFinding> look_at_ttl(const TableTarget& target) {
  const SystemClock clock;
  SeededRandom random;
  const auto connection = runtime::DynamoDbConnection::open(target.connection, clock, random);
  if (connection.has_error()) {
    return std::nullopt;
  }
  return queue::dynamodb::examine_ttl((*connection)->client(), target.spec, Deadline::after(clock, kDescribeTime));
}

Result<queue::leased::TableItems> look_at_leased_items(const TableTarget& target, std::size_t most_requests) {
  const SystemClock clock;
  SeededRandom random;
  SLUICE_TRY(connection, runtime::DynamoDbConnection::open(target.connection, clock, random));
  return queue::leased::examine_items((*connection)->client(), target.spec.table, most_requests, clock.wall_now(),
                                      Deadline::never());
}

Result<queue::dynamomq::OutsideItems> look_at_items(const TableTarget& target, std::size_t most_requests) {
  const SystemClock clock;
  SeededRandom random;
  SLUICE_TRY(connection, runtime::DynamoDbConnection::open(target.connection, clock, random));
  // Each request has a time-out of its own.
  return queue::dynamomq::find_outside_items((*connection)->client(),
                                             {target.spec.table, target.spec.table, target.spec.index, {}},
                                             most_requests, Deadline::never());
}

}  // namespace sluice::cli
