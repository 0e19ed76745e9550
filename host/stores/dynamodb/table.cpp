#include "host/stores/dynamodb/table.hpp"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/ranges.hpp"
#include "host/stores/table/table_clock.hpp"
#include "host/stores/table/table_errors.hpp"
#include "host/stores/table/table_keys.hpp"

namespace sluice::queue::dynamodb {
namespace {

constexpr std::string_view kKeysAreForEver =
    "a table's keys never change: make another table, and copy what is here into it";
constexpr std::string_view kIndexesAreReplaced =
    "delete the index and make it anew with the hash key queue_type (S), the range key sent_at (S) and the projection "
    "ALL";

class Examination {
 public:
  Examination(const dynamo::TableDescription& table, const TableSpec& spec) : table_(table), spec_(spec) {}

  std::vector<table::TableFinding> run() {
    if (is_of_the_other_layout()) {
      return std::move(findings_);
    }
    expect("the hash key", table_.hash_key, spec_.layout.names->hash, kKeysAreForEver);
    expect("the range key", table_.range_key, spec_.layout.names->range, kKeysAreForEver);
    expect_type(spec_.layout.names->hash, kKeysAreForEver);
    if (!spec_.layout.names->range.empty()) {
      expect_type(spec_.layout.names->range, kKeysAreForEver);
    }
    if (table_.status != "ACTIVE") {
      add(table::FindingLevel::waiting, "the table is " + table_.status, "wait until it is ACTIVE");
    }
    const auto* const index =
        spec_.layout.indexed
            ? find_where(table_.indexes, [this](const auto& candidate) { return candidate.name == spec_.index; })
            : nullptr;
    if (index != nullptr) {
      examine_index(*index);
    } else if (spec_.layout.indexed) {
      add(table::FindingLevel::unfit, "there is no index '" + spec_.index + "'", missing_index_mend());
    }
    advise(index);
    std::stable_sort(findings_.begin(), findings_.end(),
                     [](const auto& left, const auto& right) { return left.level < right.level; });
    return std::move(findings_);
  }

 private:
  // Everything else would be different too; one word says why.
  bool is_of_the_other_layout() {
    const TableLayout& other = spec_.layout == kLeasedLayout ? kDynamoMqLayout : kLeasedLayout;
    if (table_.hash_key != other.names->hash || table_.range_key != other.names->range) {
      return false;
    }
    const std::string name(other.name);
    add(table::FindingLevel::unfit,
        "it is a table of the layout \"" + name + "\", and the queue is of the layout \"" +
            std::string(spec_.layout.name) + "\"",
        "write layout = \"" + name + "\" for the queue in the host file (--layout " + name +
            " here), or give the queue a table of its own");
    return true;
  }

  void add(table::FindingLevel level, std::string what, std::string mend) {
    findings_.push_back({level, std::move(what), std::move(mend)});
  }

  void expect(const std::string& what, const std::string& found, std::string_view wanted, std::string_view mend) {
    if (found != wanted) {
      add(table::FindingLevel::unfit,
          what + " is " + (found.empty() ? "none" : "'" + found + "'") + " and must be " +
              (wanted.empty() ? "none" : "'" + std::string(wanted) + "'"),
          std::string(mend));
    }
  }

  void expect_type(std::string_view attribute, std::string_view mend) {
    const auto found = table_.attribute_types.find(std::string(attribute));
    expect("the type of " + std::string(attribute),
           found == table_.attribute_types.end() ? std::string() : found->second, "S", mend);
  }

  void examine_index(const dynamo::IndexDescription& index) {
    expect("the index's hash key", index.hash_key, dynamomq::attribute::kQueueType, kIndexesAreReplaced);
    expect("the index's range key", index.range_key, dynamomq::attribute::kSentAt, kIndexesAreReplaced);
    expect("the index's projection", index.projection, "ALL", kIndexesAreReplaced);
    expect_type(dynamomq::attribute::kQueueType, kIndexesAreReplaced);
    expect_type(dynamomq::attribute::kSentAt, kIndexesAreReplaced);
    if (index.status != "ACTIVE" || index.backfilling) {
      add(table::FindingLevel::waiting,
          "the index is " + index.status + (index.backfilling ? " and does not show all messages yet" : ""),
          "wait until it is ACTIVE");
    }
  }

  /// An index with the right keys under another name is probably the one that was meant.
  std::string missing_index_mend() const {
    for (const auto& index : table_.indexes) {
      if (index.hash_key == dynamomq::attribute::kQueueType && index.range_key == dynamomq::attribute::kSentAt) {
        return "index '" + index.name + "' has the right keys: name it as the queue's index";
      }
    }
    return "add one with the hash key queue_type (S), the range key sent_at (S) and the projection ALL";
  }

  /// `own`: the queue's index; null: it has none.
  void advise(const dynamo::IndexDescription* own) {
    if (!table_.deletion_protection) {
      add(table::FindingLevel::advice, "the table is not protected from deletion", "turn on its deletion protection");
    }
    if (table_.billing_mode != "PAY_PER_REQUEST") {
      add(table::FindingLevel::advice, "capacity is provisioned, and a queue's load comes in waves",
          "change the billing mode to PAY_PER_REQUEST, or let table and index scale by themselves");
    }
    if (own == nullptr && spec_.layout.indexed) {
      return;  // another one may be the one that was meant
    }
    for (const auto& index : table_.indexes) {
      if (&index != own) {
        add(table::FindingLevel::advice,
            "index '" + index.name + "' is none of this queue's, and each write pays for it too",
            "delete it if nobody reads it");
      }
    }
  }

  const dynamo::TableDescription& table_;
  const TableSpec& spec_;
  std::vector<table::TableFinding> findings_;
};

constexpr Duration kFirstLook = std::chrono::milliseconds(20);
constexpr Duration kLookInterval = std::chrono::seconds(1);

dynamo::CreateTableRequest request_of(const TableSpec& spec, bool deletion_protection) {
  dynamo::CreateTableRequest request;
  request.name = spec.table;
  request.hash_key = spec.layout.names->hash;
  request.range_key = spec.layout.names->range;
  for (const std::string_view name : key_attributes(spec.layout)) {
    request.attribute_types.emplace(name, "S");
  }
  if (spec.layout.indexed) {
    request.indexes.push_back({spec.index,
                               std::string(dynamomq::attribute::kQueueType),
                               std::string(dynamomq::attribute::kSentAt),
                               "ALL",
                               {}});
  }
  request.deletion_protection = deletion_protection;
  return request;
}

// What of a table is like that, in one line; empty: nothing.
std::string findings_of(const dynamo::TableDescription& table, const TableSpec& spec, table::FindingLevel level) {
  std::string all;
  for (const table::TableFinding& finding : examine_table(table, spec)) {
    if (finding.level == level) {
      all += (all.empty() ? "" : ", ") + finding.what;
    }
  }
  return all;
}

Result<void> fits(const dynamo::TableDescription& table, const TableSpec& spec) {
  const std::string differences = findings_of(table, spec, table::FindingLevel::unfit);
  if (differences.empty()) {
    return {};
  }
  const std::string queue = spec.layout == kDynamoMqLayout ? "a queue" : "queues of the leased layout";
  return Error(ErrorCode::invalid, "table '" + spec.table + "' exists but cannot hold " + queue + ": " + differences +
                                       "; name another table, or delete this one");
}

Error table_error(const TableSpec& spec, const dynamo::Error& error) {
  return table::store_error({spec.table, spec.table, spec.index, {}}, error);
}

bool knows_no_deletion_protection(const dynamo::Error& error) {
  return error.message.find("eletionProtection") != std::string::npos;
}

Result<TableOutcome> wait_until_active(dynamo::Client& client, const TableSpec& spec, const Clock& clock,
                                       Deadline deadline, const std::stop_token& stop, TableOutcome outcome) {
  for (Duration span = kFirstLook;; span = std::min<Duration>(kLookInterval, span * 2)) {
    const auto table = client.describe_table(spec.table, deadline);
    // Just after CreateTable a description may not be found yet.
    if (!table && table.error().kind != dynamo::ErrorKind::resource_not_found) {
      return table_error(spec, table.error());
    }
    if (table && findings_of(*table, spec, table::FindingLevel::waiting).empty()) {
      SLUICE_PASS_ON(fits(*table, spec));
      return outcome;
    }
    if (deadline.passed(clock.steady_now())) {
      return Error(ErrorCode::timeout, "table '" + spec.table + "' is still being made; look again later");
    }
    if (!table::pause(clock, span, deadline, stop)) {
      return Error(ErrorCode::cancelled,
                   "stopped while table '" + spec.table + "' is being made; it will be there soon");
    }
  }
}

table::TableFinding advice(std::string what, std::string mend) {
  return {table::FindingLevel::advice, std::move(what), std::move(mend)};
}

/// Why its TTL can be neither looked at nor switched on.
table::TableFinding out_of_reach(const TableSpec& spec, const dynamo::Error& error, std::string_view what,
                                 std::string_view action) {
  if (error.exception_name.find("UnknownOperation") != std::string::npos) {
    return advice("this endpoint knows no TTL, so that void marks and keys stay in the table",
                  "nothing goes wrong by that; on AWS they go");
  }
  if (error.kind == dynamo::ErrorKind::access_denied) {
    return advice("the table's TTL could not be " + std::string(what) + ": " + error.message,
                  "allow dynamodb:" + std::string(action) + ", or have somebody switch it on who may");
  }
  return advice("the table's TTL could not be " + std::string(what) + ": " + table_error(spec, error).message(),
                "try again");
}

std::optional<table::TableFinding> finding_of(const dynamo::TimeToLive& ttl, const TableSpec& spec) {
  const std::string ours(spec.layout.names->expires);
  if (!ttl.on()) {
    return advice("DynamoDB's TTL is off, so that void marks and keys stay in the table and are paid for",
                  "switch it on by the attribute " + ours + ", as `sluice table create` does");
  }
  if (ttl.attribute != ours) {
    return advice("DynamoDB's TTL goes by the attribute '" + ttl.attribute +
                      "', so that void marks and keys stay in the table and are paid for",
                  "a table has one attribute for it: if nothing needs that one, switch it off and on again by " + ours);
  }
  return std::nullopt;
}

/// What a role may do, where writes are PartiQL statements; actions with blanks between them.
struct RoleActions {
  Role role;
  std::string_view name;
  std::string_view on_table;  ///< of DynamoMQ's layout
  std::string_view on_index;
  std::string_view leased;  ///< on a table of the leased layout
};

// Writes of hosts are PartiQL statements; BatchGetItem finds out what became of a write whose answer was lost, and what
// time it is. GetItem, PutItem, UpdateItem and DeleteItem are for the board on which hosts tell of themselves, and how
// they are woken, and read what operators want. Scan is for looks that must not lag behind, such as whether a queue is
// empty. What has a deduplication id or a unique key, and what handlers and schedules send, is put in a transaction,
// which asks for PutItem. A producer reads which hosts are to be woken: an item of DynamoMQ's table, a partition of a
// leased one.
constexpr std::array<RoleActions, kRoles.size()> kActions{{
    {Role::host, "host", "BatchGetItem DeleteItem GetItem PartiQLDelete PartiQLUpdate PutItem Scan UpdateItem", "Query",
     "BatchGetItem ConditionCheckItem DeleteItem GetItem PartiQLDelete PartiQLUpdate PutItem Query UpdateItem"},
    {Role::producer, "producer", "BatchGetItem GetItem PartiQLInsert PutItem", "",
     "BatchGetItem ConditionCheckItem GetItem PartiQLInsert PutItem Query"},
    {Role::reader, "reader", "BatchGetItem DescribeTable DescribeTimeToLive GetItem Scan", "Query",
     "BatchGetItem DescribeTable DescribeTimeToLive GetItem Query Scan"},
    {Role::operations, "operator",
     "BatchGetItem DeleteItem DescribeTable DescribeTimeToLive GetItem PartiQLDelete PartiQLInsert PartiQLUpdate "
     "PutItem "
     "Scan UpdateItem",
     "Query",
     "BatchGetItem ConditionCheckItem DeleteItem DescribeTable DescribeTimeToLive GetItem PartiQLDelete PartiQLInsert "
     "PartiQLUpdate PutItem Query Scan UpdateItem"},
    {Role::setup, "setup", "CreateTable DescribeTable DescribeTimeToLive UpdateTimeToLive", "",
     "CreateTable DescribeTable DescribeTimeToLive UpdateTimeToLive"},
    {Role::effects, "effects", "ConditionCheckItem DeleteItem PutItem UpdateItem", "",
     "ConditionCheckItem DeleteItem PutItem UpdateItem"},
}};

const RoleActions& actions_of(Role role) { return kActions.at(static_cast<std::size_t>(role)); }

// The action that takes its place where every write is a request of its own.
std::string_view alone(std::string_view action) {
  return action == "PartiQLInsert"   ? "PutItem"
         : action == "PartiQLUpdate" ? "UpdateItem"
         : action == "PartiQLDelete" ? "DeleteItem"
                                     : action;
}

std::vector<std::string_view> listed(std::string_view actions, WritesBy writes) {
  std::vector<std::string_view> list;
  while (!actions.empty()) {
    const std::string_view action = actions.substr(0, actions.find(' '));
    actions.remove_prefix(std::min(actions.size(), action.size() + 1));
    list.push_back(writes == WritesBy::singles ? alone(action) : action);
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

}  // namespace

std::vector<table::TableFinding> examine_table(const dynamo::TableDescription& table, const TableSpec& spec) {
  return Examination(table, spec).run();
}

std::vector<std::string_view> key_attributes(const TableLayout& layout) {
  std::vector<std::string_view> names{layout.names->hash};
  if (!layout.names->range.empty()) {
    names.push_back(layout.names->range);
  }
  if (layout.indexed) {
    names.insert(names.end(), {dynamomq::attribute::kQueueType, dynamomq::attribute::kSentAt});
  }
  return names;
}

Result<TableOutcome> create_queue_table(dynamo::Client& client, const TableSpec& spec, const Clock& clock,
                                        Deadline deadline, const std::stop_token& stop) {
  const auto existing = client.describe_table(spec.table, deadline);
  if (existing) {
    SLUICE_PASS_ON(fits(*existing, spec));
    return wait_until_active(client, spec, clock, deadline, stop, TableOutcome::exists);
  }
  if (existing.error().kind != dynamo::ErrorKind::resource_not_found) {
    return table_error(spec, existing.error());
  }
  auto made = client.create_table(request_of(spec, spec.deletion_protection), deadline);
  if (!made && spec.deletion_protection && knows_no_deletion_protection(made.error())) {
    made = client.create_table(request_of(spec, false), deadline);
  }
  TableOutcome outcome = TableOutcome::created;
  if (!made) {
    const bool raced = made.error().exception_name == "ResourceInUseException";
    if (!raced && !table::outcome_unknown(made.error())) {
      return table_error(spec, made.error());
    }
    outcome = raced ? TableOutcome::exists : outcome;
  }
  return wait_until_active(client, spec, clock, deadline, stop, outcome);
}

Result<void> check_table(dynamo::Client& client, const TableSpec& spec, Deadline deadline) {
  const auto table = client.describe_table(spec.table, deadline);
  if (!table) {
    return table_error(spec, table.error());
  }
  SLUICE_PASS_ON(fits(*table, spec));
  if (const std::string waits = findings_of(*table, spec, table::FindingLevel::waiting); !waits.empty()) {
    return Error(ErrorCode::unavailable, "table '" + spec.table + "': " + waits + "; wait until it is ACTIVE");
  }
  return {};
}

std::optional<table::TableFinding> examine_ttl(dynamo::Client& client, const TableSpec& spec, Deadline deadline) {
  const auto ttl = client.describe_time_to_live(spec.table, deadline);
  return ttl ? finding_of(*ttl, spec) : out_of_reach(spec, ttl.error(), "looked at", "DescribeTimeToLive");
}

std::optional<table::TableFinding> switch_ttl_on(dynamo::Client& client, const TableSpec& spec, Deadline deadline) {
  const auto before = client.describe_time_to_live(spec.table, deadline);
  if (before && before->on()) {
    return finding_of(*before, spec);
  }
  // A role may switch it on that may not look.
  const auto made = client.enable_time_to_live(spec.table, std::string(spec.layout.names->expires), deadline);
  if (made) {
    return std::nullopt;
  }
  if (made.error().kind == dynamo::ErrorKind::validation || table::outcome_unknown(made.error())) {
    return examine_ttl(client, spec, deadline);  // Somebody else has switched it on, or an earlier try.
  }
  return out_of_reach(spec, made.error(), "switched on", "UpdateTimeToLive");
}

std::string_view to_string(Role role) { return actions_of(role).name; }

std::optional<Role> role_of(std::string_view name) {
  const auto* const found =
      std::find_if(kActions.begin(), kActions.end(), [&](const RoleActions& role) { return role.name == name; });
  return found == kActions.end() ? std::nullopt : std::optional(found->role);
}

Permissions permissions_of(Role role, WritesBy writes) {
  return {listed(actions_of(role).on_table, writes), listed(actions_of(role).on_index, writes)};
}

Permissions leased_permissions_of(Role role, WritesBy writes) { return {listed(actions_of(role).leased, writes), {}}; }

}  // namespace sluice::queue::dynamodb
