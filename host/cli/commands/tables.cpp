#include <stop_token>
#include <thread>

#include "host/cli/table_target.hpp"
#include "host/cli/views/output.hpp"
#include "host/cli/views/terraform.hpp"
#include "host/cost/prices.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/leased/leased_schema.hpp"
#include "host/stores/leased/leased_queue.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::cli {

namespace {

constexpr Duration kTableTime = std::chrono::minutes(10);

/// A stop token that Ctrl-C requests, for its lifetime.
class StopOnInterrupt {
 public:
  StopOnInterrupt() : watcher_([this](const std::stop_token& end) { watch(end); }) {}

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void watch(const std::stop_token& end) {
    while (!end.stop_requested() && interrupt_.wait(std::chrono::milliseconds(20))) {
    }
    if (interrupt_.raised()) {
      stop_.request_stop();
    }
  }

  // Fixed after construction.
  const InterruptFlag interrupt_;
  // Synchronises itself.
  std::stop_source stop_;
  std::jthread watcher_;
};

Exit make_table(const TableTarget& target, Output output, Console& console) {
  SLUICE_TRY(session, TableSession::open(target));
  dynamo::Client& client = session->client();
  console.progress("waiting for table " + target.spec.table + " to become active");
  const StopOnInterrupt interrupt;
  const std::stop_callback end_requests(interrupt.token(), [&client] { client.stop(); });
  const auto outcome = queue::dynamodb::create_queue_table(
      client, target.spec, session->clock(), Deadline::after(session->clock(), kTableTime), interrupt.token());
  console.end_progress();
  if (outcome.has_error() && outcome.error().code() == ErrorCode::cancelled) {
    return {kExitInterrupted, "stopped before table " + target.spec.table +
                                  " was ready; it comes into being all the same once DynamoDB has been asked for it: "
                                  "`sluice table check` tells"};
  }
  SLUICE_PASS_ON(or_exit(outcome));
  const bool created = *outcome == queue::dynamodb::TableOutcome::created;
  if (target.spec.ttl) {
    if (const auto finding = queue::dynamodb::switch_ttl_on(client, target.spec, session->deadline())) {
      console.note(finding->what + "; " + finding->mend);
    }
  }
  if (output == Output::text) {
    console.out("table " + target.spec.table + target.with_index() + " in " + session->region() +
                (created ? " is made\n" : " was there already, and is right\n"));
    return Exit::ok();
  }
  JsonWriter json(JsonWriter::Layout::indented);
  json.begin_object();
  put_table(json, target);
  put_members(json, "region", session->region(), "created", created);
  json.end_object();
  console.out(json.take_line());
  return Exit::ok();
}

Exit create_table(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(target, find_table(arguments));
  target->spec.deletion_protection = !arguments.has("no-deletion-protection");
  target->spec.ttl = !arguments.has("no-ttl");
  if (arguments.has("print-terraform")) {
    console.out(terraform_table(target->spec));
    return Exit::ok();
  }
  return make_table(*target, *output, console);
}

using dynamo::IndexDescription;
using dynamo::TableDescription;

constexpr int kMoneyDigits = 6;

std::optional<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

Colour colour_of_status(const std::string& status) { return status == "ACTIVE" ? Colour::green : Colour::yellow; }

std::string class_of(const TableDescription& table) {
  return table.table_class.empty() ? "STANDARD" : table.table_class;
}

/// What lies in the table and in its indexes, for a month.
double storage_price(const TableDescription& table, const cost::Prices& prices) {
  auto bytes = static_cast<double>(table.size_bytes);
  for (const IndexDescription& index : table.indexes) {
    bytes += static_cast<double>(index.size_bytes);
  }
  return prices.of_storage(bytes);
}

std::string key_text(const TableDescription& table, const std::string& attribute) {
  const auto type = table.attribute_types.find(attribute);
  return attribute + (type == table.attribute_types.end() ? "" : " (" + type->second + ")");
}

std::string keys_text(const TableDescription& table, const std::string& hash_key, const std::string& range_key) {
  return key_text(table, hash_key) + (range_key.empty() ? "" : ", " + key_text(table, range_key));
}

std::string capacity_text(const TableDescription& table) {
  if (table.billing_mode != "PROVISIONED") {
    return table.billing_mode;
  }
  return table.billing_mode + ", " + std::to_string(table.read_units) + " read and " +
         std::to_string(table.write_units) + " write units";
}

/// An index, and the table that knows the types of its keys.
struct ShownIndex {
  const IndexDescription& index;
  const TableDescription& table;
};

void describe(const ShownIndex& shown, operate::Fields& fields) {
  const auto& [index, table] = shown;
  fields.text("name", {"INDEX"}, index.name);
  fields.text("status", {"STATUS"}, index.status, colour_of_status(index.status));
  fields.member("hash_key", text_or_null(index.hash_key));
  fields.member("range_key", text_or_null(index.range_key));
  fields.cell({"KEYS"}, keys_text(table, index.hash_key, index.range_key));
  fields.text("projection", {"PROJECTION"}, index.projection);
  fields.number("item_count", operate::figures("ITEMS"), index.item_count);
  fields.number("size_bytes", operate::figures("BYTES"), index.size_bytes);
}

std::vector<ShownIndex> shown_indexes(const TableDescription& table) {
  std::vector<ShownIndex> shown;
  for (const IndexDescription& index : table.indexes) {
    shown.push_back({index, table});
  }
  return shown;
}

struct ShownTable {
  const TableDescription& table;
  const std::string& region;
  const cost::Prices& prices;
};

void describe(const ShownTable& shown, operate::Fields& fields) {
  const auto& [table, region, prices] = shown;
  const bool provisioned = table.billing_mode == "PROVISIONED";
  const double storage = storage_price(table, prices);
  fields.text("table", {"table"}, table.name);
  fields.text("region", {"region"}, region);
  fields.text("arn", {"arn"}, table.arn);
  fields.text("status", {"status"}, table.status, colour_of_status(table.status));
  fields.cell({"keys"}, keys_text(table, table.hash_key, table.range_key));
  fields.member("billing_mode", table.billing_mode);
  fields.cell({"billing"}, capacity_text(table));
  fields.member("read_units", provisioned ? std::optional(table.read_units) : std::nullopt);
  fields.member("write_units", provisioned ? std::optional(table.write_units) : std::nullopt);
  fields.text("table_class", {"class"}, class_of(table));
  fields.member("deletion_protection", table.deletion_protection);
  fields.cell({"deletion protection"},
              table.deletion_protection ? operate::Cell("on", Colour::green) : operate::Cell("off", Colour::yellow));
  fields.member("stream", text_or_null(table.stream_view_type));
  fields.cell({"stream"}, text_or_null(table.stream_view_type).value_or("none"));
  fields.number("item_count", {"items"}, table.item_count);
  fields.number("size_bytes", {"bytes"}, table.size_bytes);
  fields.member("storage_per_month", storage, kMoneyDigits);
  fields.cell({"storage"}, prices.text(storage) + " a month, indexes included (" + prices.origin() + ")");
  fields.member("currency", prices.currency());
  fields.member("as_of", prices.config().as_of);
  fields.member("hash_key", text_or_null(table.hash_key));
  fields.member("range_key", text_or_null(table.range_key));
  fields.member("attribute_types", table.attribute_types);
  fields.records("indexes", shown_indexes(table));
}

std::string as_text(const ShownTable& shown, bool colours) {
  const std::string rows = rows_of(shown_indexes(shown.table), {}, {.colours = colours});
  return facts_of(operate::row_of(shown, {}), colours) + (rows.empty() ? "" : "\n" + rows);
}

Exit describe(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(target, find_table(arguments));
  SLUICE_TRY(session, TableSession::open(*target));
  SLUICE_TRY(table, session->describe());
  const cost::Prices prices(target->place.host().cost);
  const ShownTable shown{*table, session->region(), prices};
  console.out(*output == Output::text ? as_text(shown, console.output_has_colour()) : json_of(shown, {}));
  return Exit::ok();
}

using queue::leased::Shards;

/// What stands in the table, and whether this command has written it.
struct Standing {
  std::optional<Shards> before;
  Shards now;
  bool written = false;
};

std::string as_json(const TableTarget& target, const Standing& standing) {
  const std::uint64_t before = standing.before ? standing.before->count : 0;
  return json_line("queue", target.place.queue(), "table", target.spec.table, "shards", standing.now.count, "most_ever",
                   standing.now.most_ever, "before", or_null(standing.before.has_value(), before), "changed",
                   standing.written);
}

std::string as_text(const TableTarget& target, const Standing& standing) {
  const std::string number = std::to_string(standing.now.count);
  std::string text =
      "queue " + target.place.queue() + " has " + number + (standing.now.count == 1 ? " shard" : " shards");
  if (standing.written && standing.before) {
    text += " in place of " + std::to_string(standing.before->count);
  }
  if (standing.written) {
    text += "; hosts and senders see it within 30 s, and what lies beyond is drained";
  } else if (standing.now.most_ever > standing.now.count) {
    text += ", and had " + std::to_string(standing.now.most_ever);
  }
  return text + "\n";
}

/// Asks the table, or writes the number down; `count` 0: asks.
Result<Standing> look_or_change(TableSession& session, const queue::table::QueueTable& place, std::uint32_t count,
                                std::uint32_t configured) {
  if (count > 0) {
    SLUICE_TRY(change, queue::leased::change_shards(session.client(), place, count, configured, session.deadline()));
    return Standing{change->before, change->after, change->written};
  }
  queue::leased::ShardCount known(session.client(), session.clock(), place, configured);
  SLUICE_TRY(shards, known.refresh(session.deadline()));
  return Standing{*shards, *shards, false};
}

Exit show_or_change(const Arguments& arguments, Console& console) {
  SLUICE_TRY(output, arguments.output());
  SLUICE_TRY(wanted, arguments.count("to", 0, queue::leased::kMostShards));
  if (arguments.get("queue").empty()) {
    return Exit::usage("--queue says whose shards; a leased table holds many queues");
  }
  SLUICE_TRY(target, find_table(arguments));
  if (target->spec.layout.indexed) {
    return Exit(kExitConfiguration, "queue " + target->place.queue() +
                                        " lies in a table of DynamoMQ's layout, which has no shards; only queues with "
                                        "layout = \"leased\" in the host file have some");
  }
  SLUICE_TRY(session, TableSession::open(*target));
  const queue::table::QueueTable place{target->place.queue(), target->spec.table, {}, session->region()};
  const auto standing = look_or_change(*session, place, static_cast<std::uint32_t>(*wanted),
                                       target->place.host().queue(place.queue).shards);
  if (!standing) {
    return Exit::failure(target->place.explained(standing.error(), place.queue));
  }
  console.out(*output == Output::text ? as_text(*target, *standing) : as_json(*target, *standing));
  return Exit::ok();
}

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
  own.push_back(
      {"layout", "dynamomq|leased", "how queues lie in the table [default: the host file's word, else dynamomq]"});
  return with_place_flags(std::move(own), Outboxes::not_taken);
}

void put_table(JsonWriter& json, const TableTarget& target) {
  put_members(json, "table", target.spec.table, "layout", target.spec.layout.name, "index",
              or_null(target.spec.layout.indexed, target.spec.index));
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

OrExit<TableSession> TableSession::open(const TableTarget& target) {
  TableSession session(target);
  Parts& parts = *session.parts_;
  auto connection = runtime::DynamoDbConnection::open(target.connection, parts.clock, parts.random);
  if (connection.has_error()) {
    return unopened(connection.error());
  }
  parts.connection = std::move(*connection);
  return session;
}

OrExit<dynamo::TableDescription> TableSession::describe() {
  const queue::dynamodb::TableSpec& spec = target_->spec;
  auto table = client().describe_table(spec.table, deadline());
  if (table.has_error()) {
    const Error error = queue::table::store_error({spec.table, spec.table, spec.index, region()}, table.error());
    return Exit::failure(target_->place.explained(error, target_->place.queue()));
  }
  return std::move(*table);
}

std::vector<Command> table_commands() {
  return {
      {
          .name = "table create",
          .summary = "Make the DynamoDB table and index that a queue needs",
          .usage = "(--queue QUEUE | --table TABLE) [OPTION]...",
          .description =
              "The table is DynamoMQ's, or with --layout leased one for many queues without an index, which takes two "
              "write units a message in place of six; paid for by request, and protected from deletion. Waits until "
              "it can be used, and has DynamoDB remove void deduplication ids, unique keys and idempotency keys "
              "(TTL). One that is there and right is a success; one that is there and differs is an error that names "
              "every difference. Ctrl-C ends the waiting, not the table.",
          .flags =
              with_table_flags(joined({{"no-deletion-protection", {}, "leave the table unprotected"},
                                       {"no-ttl", {}, "leave DynamoDB's TTL as it is"},
                                       {"print-terraform", {}, "make nothing; print the table as Terraform has it"}},
                                      output_flags())),
          .examples = "sluice table create --queue orders\n"
                      "sluice table create --table orders --endpoint http://127.0.0.1:8000\n"
                      "sluice table create --table sluice-queues --layout leased\n"
                      "sluice table create --table orders --print-terraform > orders.tf",
          .run = create_table,
      },
      {
          .name = "table describe",
          .summary = "Show a table's keys, indexes, capacity and size",
          .usage = "(--queue QUEUE | --table TABLE) [OPTION]...",
          .description =
              "Items and bytes are DynamoDB's own count, which is up to six hours old; `sluice stats` counts now. "
              "Storage is what they cost a month by [cost] of the host file, without what AWS gives away. The time to "
              "live of a table is not part of DynamoDB's description; queues do without.",
          .flags = with_table_flags(output_flags()),
          .examples = "sluice table describe --queue orders --output text\n"
                      "sluice table describe --table orders | jq .item_count",
          .run = describe,
      },
      {
          .name = "table shards",
          .summary = "Show how many shards a leased queue has, or change it while hosts work",
          .usage = "--queue QUEUE [--to N] [OPTION]...",
          .description =
              "A queue of the leased layout has as many shards as its table says, and the host file only until then. "
              "With --to the number is raised or lowered: hosts share the new shards within a lease, senders follow "
              "within 30 s, and the shards that are beyond the new number are worked off and then given up, after 90 "
              "s at the earliest. Nobody has to stop. Only the order within groups is not kept meanwhile: a group's "
              "older messages may lie in another shard than its newer ones.",
          .flags = with_table_flags(joined({{"to", "N", "the number from now on, 1 to 1024"}}, output_flags())),
          .examples = "sluice table shards --queue orders\n"
                      "sluice table shards --queue orders --to 32",
          .run = show_or_change,
      },
  };
}

}  // namespace sluice::cli
