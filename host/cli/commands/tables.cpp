#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/ranges.hpp"
#include "base/text/visible.hpp"
#include "base/uuid.hpp"
#include "config/syntax.hpp"
#include "dynamo/client.hpp"
#include "dynamo/endpoints/endpoint_rules.hpp"
#include "host/cli/command.hpp"
#include "host/cli/queue_session.hpp"
#include "host/cli/views/output.hpp"
#include "host/cost/prices.hpp"
#include "host/runtime/host_queues.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/dynamomq/outside_items.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/leased/leased_queue.hpp"
#include "host/stores/leased/leased_schema.hpp"
#include "host/stores/leased/table_items.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::cli {

namespace {

/// The table that a `table` command is about, and where it is. A value.
struct TableTarget {
  QueuePlace place;
  queue::dynamodb::TableSpec spec;
  runtime::DynamoDbConnection::Options connection;

  /// " with index INDEX", where its layout has one.
  std::string with_index() const { return spec.layout.indexed ? " with index " + spec.index : std::string(); }
};

/// The layout that the command line names, or the host file. They may not differ: it would be a table that no host
/// uses.
OrExit<queue::dynamodb::TableLayout> layout_of(const Arguments& arguments, const QueuePlace& place,
                                               const config::QueueConfig& queue) {
  const bool by_file = queue.layout == config::Layout::leased;
  const bool leased = arguments.has("layout") ? arguments.get("layout") == "leased" : by_file;
  if (leased != by_file && !arguments.has("table") && !place.host().file.empty()) {
    return Exit::usage("--layout " + arguments.get("layout") +
                       ": the queue is one of the other layout by the host file; "
                       "write layout = \"" +
                       arguments.get("layout") + "\" there, or name the table with --table");
  }
  if (leased && arguments.has("index")) {
    return Exit::usage("--index goes with --layout dynamomq only: a leased table has no index");
  }
  return leased ? queue::dynamodb::kLeasedLayout : queue::dynamodb::kDynamoMqLayout;
}

/// The options of a `table` command: those that say where the table is, and its layout.
std::vector<Flag> with_table_flags(std::vector<Flag> own) {
  own.push_back(one_of(
      {"layout", "dynamomq|leased", "how queues lie in the table [default: the host file's word, else dynamomq]"}));
  return with_place_flags(std::move(own), Outboxes::not_taken);
}

/// Its name, layout and index, as members of a report.
auto members_of(const TableTarget& target) {
  return [&spec = target.spec](JsonWriter& json) {
    put_members(json, "table", spec.table, "layout", spec.layout.name, "index",
                or_null(spec.layout.indexed, spec.index));
  };
}

/// As QueuePlace::find; exit 64 for a queue that nobody knows, and 78 when it is one of SQLite's. `beforehand`: the
/// queue may come later, where its table is a leased one, which holds any.
OrExit<TableTarget> find_table(const Arguments& arguments, bool beforehand = false) {
  if (arguments.has("queue") && arguments.has("table")) {
    return Exit::usage("--queue and --table both name the table; give one");
  }
  SLUICE_TRY(place, QueuePlace::find(arguments, QueuePlace::Queue::table));
  if (arguments.has("queue") && !place->host().file.empty() && !(beforehand && place->host().leased(place->queue()))) {
    OpenQueues open(place->host());
    SLUICE_PASS_ON(check_known(open.queues, place->queue(), Deadline::after(open.clock, std::chrono::seconds(5))));
  }
  if (const auto outbox = config::outbox_named(place->queue())) {
    return Exit(kExitConfiguration, "the table of outbox " + *outbox + " is the application's: `sluice outbox ddl " +
                                        *outbox + "` prints what makes it, `sluice outbox status " + *outbox +
                                        "` looks at it");
  }
  if (place->in_sqlite()) {
    return Exit(kExitConfiguration, place->host().file + ": queue " + place->queue() +
                                        " lies in SQLite, which needs no tables; name a table with --table, or a "
                                        "store of kind \"dynamodb\" for the queue");
  }
  const config::QueueConfig queue = place->host().queue(place->queue());
  TableTarget target{.place = std::move(*place), .spec = {}, .connection = {}};
  target.spec.table = queue.table;
  target.spec.index = queue.index;
  SLUICE_TRY(layout, layout_of(arguments, target.place, queue));
  target.spec.layout = *layout;
  target.connection = runtime::DynamoDbConnection::options_of(target.place.host(), queue.store);
  return target;
}

/// A connection to where a table is, for one command. A resource that can be moved.
class TableSession {
 public:
  /// Exit 1 or 78 when it cannot be made. `target` outlives it.
  static OrExit<TableSession> open(const TableTarget& target) {
    TableSession session(target);
    SLUICE_TRY(
        connection,
        or_end(runtime::DynamoDbConnection::open(target.connection, *session.clock_, *session.random_), unopened));
    session.connection_ = std::move(*connection);
    return session;
  }

  dynamo::Client& client() { return connection_->client(); }
  const std::string& region() const { return connection_->region(); }
  const SystemClock& clock() const { return *clock_; }
  /// For one request: half a minute from now.
  Deadline deadline() const { return Deadline::after(clock(), std::chrono::seconds(30)); }
  /// Asks DynamoDB about the table. Exit 1 when it does not answer or has no such table.
  OrExit<dynamo::TableDescription> describe() {
    const queue::dynamodb::TableSpec& spec = target_->spec;
    return or_end(client().describe_table(spec.table, deadline()), [&](const auto& why) {
      return failure(queue::table::store_error({spec.table, spec.table, spec.index, region()}, why));
    });
  }
  Exit failure(const Error& error) const {
    return Exit::failure(target_->place.explained(error, target_->place.queue()));
  }

 private:
  explicit TableSession(const TableTarget& target) : target_(&target) {}

  const TableTarget* target_;
  std::unique_ptr<SystemClock> clock_ = std::make_unique<SystemClock>();
  std::unique_ptr<SeededRandom> random_ = std::make_unique<SeededRandom>();
  std::unique_ptr<runtime::DynamoDbConnection> connection_;
};

// As Terraform has them. The names in them are checked by whoever calls.

/// One statement of a policy. A value.
struct PolicyStatement {
  std::string id;                    ///< letters and digits
  std::vector<std::string> actions;  ///< "dynamodb:Query"
  std::string resource;              ///< an ARN
};

namespace attribute = queue::dynamomq::attribute;

std::string in_quotes(std::string_view text) { return "\"" + std::string(text) + "\""; }

/// What Terraform takes as a name: everything else becomes '_'.
std::string terraform_name(std::string_view text) {
  std::string name;
  for (const char byte : text) {
    if (name.empty() && config::is_digit(byte)) {
      name += '_';
    }
    name += config::is_letter(byte) || config::is_digit(byte) ? byte : '_';
  }
  return name;
}

/// A resource "aws_dynamodb_table".
std::string terraform_table(const queue::dynamodb::TableSpec& spec) {
  std::string text = "resource \"aws_dynamodb_table\" " + in_quotes(terraform_name(spec.table)) + " {\n";
  text += "  name                        = " + in_quotes(spec.table) + "\n";
  text += "  billing_mode                = \"PAY_PER_REQUEST\"\n";
  text += "  hash_key                    = " + in_quotes(spec.layout.names->hash) + "\n";
  if (!spec.layout.names->range.empty()) {
    text += "  range_key                   = " + in_quotes(spec.layout.names->range) + "\n";
  }
  text += std::string("  deletion_protection_enabled = ") + (spec.deletion_protection ? "true" : "false") + "\n";
  for (const auto name : queue::dynamodb::key_attributes(spec.layout)) {
    text += "\n  attribute {\n    name = " + in_quotes(name) + "\n    type = \"S\"\n  }\n";
  }
  if (spec.layout.indexed) {
    text += "\n  global_secondary_index {\n";
    text += "    name            = " + in_quotes(spec.index) + "\n";
    text += "    hash_key        = " + in_quotes(attribute::kQueueType) + "\n";
    text += "    range_key       = " + in_quotes(attribute::kSentAt) + "\n";
    text += "    projection_type = \"ALL\"\n  }\n";
  }
  if (spec.ttl) {
    text += "\n  ttl {\n    attribute_name = " + in_quotes(spec.layout.names->expires) +
            "\n    enabled        = true\n  }\n";
  }
  text += "}\n";
  return text;
}

/// A data "aws_iam_policy_document" of that name.
std::string terraform_policy(std::string_view name, const std::vector<PolicyStatement>& statements) {
  std::string text = "data \"aws_iam_policy_document\" " + in_quotes(name) + " {\n";
  for (const PolicyStatement& statement : statements) {
    text += &statement == statements.data() ? "" : "\n";
    text += "  statement {\n    sid = " + in_quotes(statement.id) + "\n\n    actions = [\n";
    for (const std::string& action : statement.actions) {
      text += "      " + in_quotes(action) + ",\n";
    }
    text += "    ]\n\n    resources = [" + in_quotes(statement.resource) + "]\n  }\n";
  }
  return text + "}\n";
}

using queue::table::TableFinding;

std::string text_of(const TableFinding& finding) { return finding.what + "; " + finding.mend; }

constexpr Duration kTableTime = std::chrono::minutes(10);

Exit make_table(const TableTarget& target, Console& console) {
  SLUICE_TRY(session, TableSession::open(target));
  dynamo::Client& client = session->client();
  console.progress("waiting for table " + target.spec.table + " to become active");
  const InterruptFlag interrupt;
  std::stop_source stop;
  const std::jthread watcher([&](const std::stop_token& end) {
    while (!end.stop_requested() && interrupt.wait(std::chrono::milliseconds(20))) {
    }
    if (interrupt.raised()) {
      stop.request_stop();
      client.stop();
    }
  });
  const auto outcome = queue::dynamodb::create_queue_table(
      client, target.spec, session->clock(), Deadline::after(session->clock(), kTableTime), stop.get_token());
  console.end_progress();
  if (outcome.has_error() && outcome.error().code() == ErrorCode::cancelled) {
    return {kExitInterrupted, "stopped before table " + target.spec.table +
                                  " was ready; it comes into being all the same once DynamoDB has been asked for it: "
                                  "`sluice table check` tells"};
  }
  SLUICE_PASS_ON(outcome);
  const bool created = *outcome == queue::dynamodb::TableOutcome::created;
  const auto endpoint = client.endpoint(session->deadline());
  const std::string place = endpoint ? *endpoint : session->region();
  if (target.spec.ttl) {
    if (const auto finding = queue::dynamodb::switch_ttl_on(client, target.spec, session->deadline())) {
      console.note(text_of(*finding));
    }
  }
  return show_result(console,
                     "table " + target.spec.table + target.with_index() + " at " + place +
                         (created ? " is made\n" : " was there already, and is right\n"),
                     members_of(target), "region", session->region(), "endpoint", place, "created", created);
}

Exit create_table(const Arguments& arguments, Console& console) {
  SLUICE_TRY(target, find_table(arguments, true));
  target->spec.deletion_protection = !arguments.has("no-deletion-protection");
  target->spec.ttl = !arguments.has("no-ttl");
  if (arguments.has("print-terraform")) {
    return print(terraform_table(target->spec), console);
  }
  return make_table(*target, console);
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
  fields.text("name", operate::names("INDEX", 20), index.name);
  fields.text("status", {"STATUS"}, index.status, colour_of_status(index.status));
  fields.member("hash_key", text_or_null(index.hash_key));
  fields.member("range_key", text_or_null(index.range_key));
  fields.cell(operate::prose("KEYS", 16), keys_text(table, index.hash_key, index.range_key));
  fields.text("projection", {.title = "PROJECTION", .spare = 1}, index.projection);
  fields.number("item_count", operate::figures("ITEMS"), index.item_count);
  fields.number("size_bytes", operate::figures("BYTES"), index.size_bytes);
}

std::vector<ShownIndex> shown_indexes(const TableDescription& table) {
  return mapped(table.indexes, [&table](const IndexDescription& index) { return ShownIndex{index, table}; });
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

std::string as_text(const ShownTable& shown, const Screen& screen) {
  const std::string rows = rows_of(shown_indexes(shown.table), {}, {.screen = screen});
  return facts_of(operate::row_of(shown, {}), screen.colours) + (rows.empty() ? "" : "\n" + rows);
}

Exit describe_table(const Arguments& arguments, Console& console) {
  SLUICE_TRY(target, find_table(arguments));
  SLUICE_TRY(session, TableSession::open(*target));
  SLUICE_TRY(table, session->describe());
  const cost::Prices prices(target->place.host().cost);
  const ShownTable shown{*table, session->region(), prices};
  return print(console.shows_text() ? as_text(shown, console.screen()) : json_of(shown, {}), console);
}

using queue::leased::ShardChange;

Exit show_shards(const TableTarget& target, const ShardChange& change, Console& console) {
  const queue::leased::Shards& now = change.after;
  const std::string before = change.before ? std::to_string(change.before->count) : std::string();
  std::string text = "queue " + target.place.queue() + " has " + counted(now.count, "shard");
  if (change.written) {
    text += (before.empty() ? "" : " in place of " + before) +
            "; hosts and senders see it within 30 s, and what lies beyond is drained";
  } else if (now.most_ever > now.count) {
    text += ", and had " + std::to_string(now.most_ever);
  }
  return show_result(console, text + "\n", "queue", target.place.queue(), "table", target.spec.table, "shards",
                     now.count, "most_ever", now.most_ever, "before",
                     or_null(change.before.has_value(), change.before.value_or(now).count), "changed", change.written);
}

/// Asks the table, or writes the number down; `count` 0: asks.
Result<ShardChange> look_or_change(TableSession& session, const queue::table::QueueTable& place, std::uint32_t count,
                                   std::uint32_t configured) {
  if (count > 0) {
    return queue::leased::change_shards(session.client(), place, count, configured, session.deadline());
  }
  queue::leased::ShardCount known(session.client(), session.clock(), place, configured);
  SLUICE_TRY(shards, known.read(true, session.deadline()));
  return ShardChange{*shards, *shards, false};
}

/// Notes for the audit, on the board that the queue's hosts have, what has been done.
Result<void> note_change(const TableTarget& target, const ShardChange& change, TableSession& session) {
  const std::string& queue = target.place.queue();
  config::HostConfig host = target.place.host();
  host.queues[queue] = host.queue(queue);
  host.queues[queue].layout = config::Layout::leased;  // which --layout alone may have said
  OpenQueues open(host);
  SLUICE_TRY(board, open.queues.open_board(queue));
  const std::string before = change.before ? " from " + std::to_string(change.before->count) : std::string();
  return fleet::note_deed(
      **board,
      {.id = make_uuid(open.random),
       .who = this_operator(),
       .what = "table shards of queue " + queue + before + " to " + std::to_string(change.after.count),
       .queue = queue},
      session.deadline());
}

Exit show_or_change(const Arguments& arguments, Console& console) {
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
  SLUICE_TRY(change, or_end(look_or_change(*session, place, static_cast<std::uint32_t>(*wanted),
                                           target->place.host().queue(place.queue).shards),
                            [&](const Error& error) { return session->failure(error); }));
  if (change->written) {
    if (const auto noted = note_change(*target, *change, *session); !noted) {
      console.note("`sluice audit` does not show this: " + noted.error().message());
    }
  }
  return show_shards(*target, *change, console);
}

using queue::table::ExaminedItems;
using queue::table::FindingLevel;

operate::Cell cell_of(FindingLevel level) {
  return level == FindingLevel::unfit     ? operate::Cell("error", Colour::red)
         : level == FindingLevel::waiting ? operate::Cell("wait", Colour::yellow)
                                          : operate::Cell("advice");
}

/// So many requests read at most 100 MB, for 12,800 read units: less than a cent's worth.
constexpr std::size_t kMostRequests = 100;

/// What a look at keys and at items has found.
struct Examined {
  std::vector<TableFinding> findings;
  std::optional<ExaminedItems> items;

  bool usable() const {
    return std::all_of(findings.begin(), findings.end(),
                       [](const TableFinding& finding) { return finding.level == FindingLevel::advice; });
  }
};

Examined examine(TableSession& session, const TableTarget& target, const dynamo::TableDescription& table,
                 bool all_items) {
  Examined examined{.findings = queue::dynamodb::examine_table(table, target.spec)};
  std::vector<TableFinding>& findings = examined.findings;
  if (!examined.usable()) {
    return examined;
  }
  if (auto ttl = queue::dynamodb::examine_ttl(session.client(), target.spec, session.deadline())) {
    findings.push_back(std::move(*ttl));
  }
  const std::size_t most_requests = all_items ? std::numeric_limits<std::size_t>::max() : kMostRequests;
  // Each request has a time-out of its own.
  auto items =
      target.spec.layout.indexed
          ? queue::dynamomq::find_outside_items(session.client(), target.spec.table, most_requests, Deadline::never())
          : queue::leased::examine_items(session.client(), target.spec.table, most_requests, session.clock().wall_now(),
                                         Deadline::never());
  if (!items) {
    findings.push_back({FindingLevel::advice, "its items could not be looked at: " + items.error().message(),
                        "allow dynamodb:Scan to have them counted"});
    return examined;
  }
  std::move(items->findings.begin(), items->findings.end(), std::back_inserter(findings));
  if (!items->whole) {
    findings.push_back({FindingLevel::advice, "only the first " + std::to_string(items->read) + " items were looked at",
                        "--all-items looks at every one, for half a read unit each 4 KB"});
  }
  examined.items = std::move(*items);
  return examined;
}

void write_items(JsonWriter& json, const ExaminedItems& items) {
  put_object(json, "read", items.read, "all", items.whole, "outside", items.outside, "first_outside",
             array_of(items.first,
                      [](JsonWriter& each, const auto& item) { put_object(each, "id", item.id, "why", item.why); }),
             "host_records", items.ours, "read_units", figure(items.read_units, 1));
}

std::string json_report(const TableTarget& target, const Examined& examined) {
  const auto finding = [](JsonWriter& each, const TableFinding& one) {
    put_object(each, "level", cell_of(one.level).text, "what", one.what, "mend", one.mend);
  };
  return json_line(
      members_of(target), "ok", examined.usable(), "findings", array_of(examined.findings, finding), "items",
      [&examined](JsonWriter& member) { examined.items ? write_items(member, *examined.items) : member.null(); });
}

std::string text_report(const TableTarget& target, const Examined& examined, const Screen& screen) {
  std::string text;
  for (const TableFinding& finding : examined.findings) {
    const operate::Cell level = cell_of(finding.level);
    text += tinted(level.text, level.colour, screen.colours) + ": " + visible(text_of(finding)) + "\n";
  }
  if (examined.usable()) {
    text += "table " + target.spec.table + target.with_index() +
            (target.spec.layout.indexed ? " holds a queue\n" : " holds leased queues\n");
  }
  return wrapped(text, screen);
}

Exit check_table(const Arguments& arguments, Console& console) {
  SLUICE_TRY(target, find_table(arguments));
  SLUICE_TRY(session, TableSession::open(*target));
  SLUICE_TRY(table, session->describe());
  const Examined examined = examine(*session, *target, *table, arguments.has("all-items"));
  if (console.shows_text()) {
    console.out(text_report(*target, examined, console.screen()));
    return examined.usable() ? Exit::ok() : Exit::silent(kExitFailure);
  }
  console.out(json_report(*target, examined));
  std::vector<std::string> lines;
  for (const TableFinding& finding : examined.findings) {
    if (finding.level != FindingLevel::advice) {
      lines.push_back(text_of(finding));
    }
  }
  return Exit::failed_if_any(std::move(lines));
}

using queue::dynamodb::Role;
using queue::dynamodb::WritesBy;

constexpr std::size_t kAccountDigits = 12;

std::vector<Role> named_roles(const Arguments& arguments) {
  std::vector<Role> roles;
  for (const std::string& name : arguments.all("role")) {
    const auto role = queue::dynamodb::role_of(name);
    if (!contains(roles, *role)) {
      roles.push_back(*role);
    }
  }
  return roles.empty() ? std::vector<Role>{Role::host} : roles;
}

OrExit<std::string> table_arn(const Arguments& arguments, const TableTarget& target) {
  const std::string account = arguments.get("account", "*");
  const bool digits = std::all_of(account.begin(), account.end(), config::is_digit);
  if (account != "*" && (account.size() != kAccountDigits || !digits)) {
    return Exit::usage("--account is the 12 digits of an AWS account, not \"" + account + "\"");
  }
  const std::string region = target.connection.region.empty() ? "*" : target.connection.region;
  return "arn:" + std::string(dynamo::partition_of(region).name) + ":dynamodb:" + region + ":" + account + ":table/" +
         target.spec.table;
}

std::vector<std::string> actions_of(const std::vector<std::string_view>& names) {
  return mapped(names, [](std::string_view name) { return "dynamodb:" + std::string(name); });
}

std::vector<PolicyStatement> statements_of(const std::vector<Role>& roles, WritesBy writes, const std::string& table,
                                           const queue::dynamodb::TableSpec& spec) {
  std::vector<PolicyStatement> statements;
  for (const Role role : roles) {
    const auto permissions = spec.layout.indexed ? queue::dynamodb::permissions_of(role, writes)
                                                 : queue::dynamodb::leased_permissions_of(role, writes);
    std::string id(to_string(role));
    id.front() = static_cast<char>(id.front() - 'a' + 'A');
    statements.push_back({id + "OnTable", actions_of(permissions.table), table});
    if (!permissions.index.empty()) {
      statements.push_back({id + "OnIndex", actions_of(permissions.index), table + "/index/" + spec.index});
    }
  }
  return statements;
}

std::string json_policy(const std::vector<PolicyStatement>& statements) {
  return json_line("Version", "2012-10-17", "Statement",
                   array_of(statements, [](JsonWriter& json, const PolicyStatement& statement) {
                     put_object(json, "Sid", statement.id, "Effect", "Allow", "Action", statement.actions, "Resource",
                                statement.resource);
                   }));
}

Exit print_policy(const Arguments& arguments, Console& console) {
  const std::vector<Role> roles = named_roles(arguments);
  const WritesBy writes = arguments.get("writes") == "single" ? WritesBy::singles : WritesBy::batches;
  SLUICE_TRY(target, find_table(arguments, true));
  SLUICE_TRY(arn, table_arn(arguments, *target));
  const auto statements = statements_of(roles, writes, *arn, target->spec);
  if (arguments.get("format") != "terraform") {
    return print(json_policy(statements), console);
  }
  std::string name = "sluice";
  for (const Role role : roles) {
    name += "_" + std::string(to_string(role));
  }
  return print(terraform_policy(name, statements), console);
}

}  // namespace

std::vector<Command> table_commands() {
  return {
      {
          .name = "table create",
          .summary = "Make the DynamoDB table and index that a queue needs",
          .usage = "(QUEUE | --table TABLE) [OPTION]...",
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
          .examples = "sluice table create orders\n"
                      "sluice table create --table orders --endpoint http://127.0.0.1:8000\n"
                      "sluice table create --table sluice-queues --layout leased\n"
                      "sluice table create --table orders --print-terraform > orders.tf",
          .run = create_table,
      },
      {
          .name = "table describe",
          .summary = "Show a table's keys, indexes, capacity and size",
          .usage = "(QUEUE | --table TABLE) [OPTION]...",
          .description =
              "Items and bytes are DynamoDB's own count, which is up to six hours old; `sluice stats` counts now. "
              "Storage is what they cost a month by [cost] of the host file, without what AWS gives away. The time to "
              "live of a table is not part of DynamoDB's description; queues do without.",
          .flags = with_table_flags(output_flags()),
          .examples = "sluice table describe orders --output text\n"
                      "sluice table describe --table orders | jq .item_count",
          .run = describe_table,
      },
      {
          .name = "table check",
          .summary = "Compare a table with what a queue needs",
          .usage = "(QUEUE | --table TABLE) [OPTION]...",
          .description =
              "Looks at keys, types, index, projection, state and TTL, and names each difference with its mend. Then "
              "looks for items that no queue shows, because the index leaves them out, and in a leased table for "
              "whatever nobody could hand out, half-made ownership items and heartbeats that cannot be: it counts "
              "them and names the first ten. That reads at most 100 MB, or with --all-items all there is, for half a "
              "read unit each 4 KB. Exit 0: the table can be used, though there may be advice; 1: it cannot, or not "
              "yet.",
          .flags = with_table_flags(
              joined({{"all-items", {}, "look at every item, however many there are"}}, output_flags())),
          .examples = "sluice table check orders --output text\n"
                      "sluice table check --table orders && sluice run",
          .run = check_table,
      },
      {
          .name = "table policy",
          .summary = "Print the least privileges that a role needs on a table",
          .usage = "(QUEUE | --table TABLE) [--role ROLE]... [OPTION]...",
          .description =
              "The roles are host (sluice run), producer (sends), reader (looks, changes nothing), operator (every "
              "command on messages), setup (table create) and effects (sluice run, on a table of your own whose items "
              "handlers write). Nothing is asked of AWS. Without --account and a region "
              "the policy holds for the table of that name in every account and region of its user. With --writes "
              "single it needs no PartiQL, as DynamoMQ's own policy: each message is then written by about 3 requests "
              "of its own, in place of a share of a batch.",
          .flags = with_table_flags(
              {one_of(repeated({"role", "host|producer|reader|operator|setup|effects",
                                "whose privileges; may be repeated [default: host]"})),
               one_of({"writes", "batched|single", "with PartiQL's batches, or by single requests [default: batched]"}),
               {"account", "ACCOUNT", "the AWS account that owns the table, 12 digits"},
               one_of({"format", "json|terraform", "how to print it [default: json]"})}),
          .examples = "sluice table policy orders --role host --account 123456789012\n"
                      "sluice table policy --table orders --role producer --format terraform",
          .run = print_policy,
      },
      {
          .name = "table shards",
          .summary = "Show how many shards a leased queue has, or change it while hosts work",
          .usage = "QUEUE [--to N] [OPTION]...",
          .description =
              "A queue of the leased layout has as many shards as its table says, and the host file only until then. "
              "With --to the number is raised or lowered: hosts share the new shards within a lease, senders follow "
              "within 30 s, and the shards that are beyond the new number are worked off and then given up, after 90 "
              "s at the earliest. Nobody has to stop. `sluice audit` shows who has done it. Only the order within "
              "groups is not kept meanwhile: a group's "
              "older messages may lie in another shard than its newer ones.",
          .flags = with_table_flags(joined({{"to", "N", "the number from now on, 1 to 1024"}}, output_flags())),
          .examples = "sluice table shards orders\n"
                      "sluice table shards orders --to 32",
          .run = show_or_change,
      },
  };
}

}  // namespace sluice::cli
