#include "host/stores/dynamodb/table.hpp"

#include "base/mutex.hpp"
#include "host/stores/dynamodb/table_findings.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamodb {

std::vector<std::string_view> key_attributes(const TableLayout& layout) {
  std::vector<std::string_view> names{layout.hash_key};
  if (!layout.range_key.empty()) {
    names.push_back(layout.range_key);
  }
  if (layout.indexed) {
    names.insert(names.end(), {dynamomq::attribute::kQueueType, dynamomq::attribute::kSentAt});
  }
  return names;
}

namespace {

constexpr Duration kFirstLook = std::chrono::milliseconds(20);
constexpr Duration kLookInterval = std::chrono::seconds(1);

dynamo::CreateTableRequest request_of(const TableSpec& spec, bool deletion_protection) {
  dynamo::CreateTableRequest request;
  request.name = spec.table;
  request.hash_key = spec.layout.hash_key;
  request.range_key = spec.layout.range_key;
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

// Every difference from what a queue needs, in one line; empty: none.
std::string differences_of(const dynamo::TableDescription& table, const TableSpec& spec) {
  std::string differences;
  for (const table::TableFinding& finding : examine_table(table, spec)) {
    if (finding.level == table::FindingLevel::unfit) {
      differences += (differences.empty() ? "" : ", ") + finding.what;
    }
  }
  return differences;
}

bool is_active(const dynamo::TableDescription& table, const TableSpec& spec) {
  bool active = table.status == "ACTIVE";
  for (const auto& index : table.indexes) {
    active = active && (!spec.layout.indexed || index.name != spec.index || index.status == "ACTIVE");
  }
  return active;
}

Error differs(const TableSpec& spec, const std::string& differences) {
  const std::string queue = spec.layout == kDynamoMqLayout ? "a queue" : "queues of the leased layout";
  return {ErrorCode::invalid, "table '" + spec.table + "' exists but cannot hold " + queue + ": " + differences +
                                  "; name another table, or delete this one"};
}

Error table_error(const TableSpec& spec, const dynamo::Error& error) {
  return table::store_error({spec.table, spec.table, spec.index, {}}, error);
}

bool knows_no_deletion_protection(const dynamo::Error& error) {
  return error.message.find("eletionProtection") != std::string::npos;
}

// Sleeps; false when stopped first.
bool pause(Duration span, const Clock& clock, Deadline deadline, const std::stop_token& stop) {
  Mutex mutex;
  Condition never_signalled;
  const MutexLock lock(mutex);
  const Deadline end = deadline.earlier(Deadline::after(clock, span));
  never_signalled.wait_until(mutex, stop, end.time(), [] { return false; });
  return !stop.stop_requested();
}

Result<TableOutcome> wait_until_active(dynamo::Client& client, const TableSpec& spec, const Clock& clock,
                                       Deadline deadline, const std::stop_token& stop, TableOutcome outcome) {
  for (Duration span = kFirstLook;; span = std::min<Duration>(kLookInterval, span * 2)) {
    const auto table = client.describe_table(spec.table, deadline);
    // Just after CreateTable a description may not be found yet.
    if (!table && table.error().kind != dynamo::ErrorKind::resource_not_found) {
      return table_error(spec, table.error());
    }
    if (table && is_active(*table, spec)) {
      const std::string differences = differences_of(*table, spec);
      if (!differences.empty()) {
        return differs(spec, differences);
      }
      return outcome;
    }
    if (deadline.passed(clock.steady_now())) {
      return Error(ErrorCode::timeout, "table '" + spec.table + "' is still being made; look again later");
    }
    if (!pause(span, clock, deadline, stop)) {
      return Error(ErrorCode::cancelled,
                   "stopped while table '" + spec.table + "' is being made; it will be there soon");
    }
  }
}

}  // namespace

Result<TableOutcome> create_queue_table(dynamo::Client& client, const TableSpec& spec, const Clock& clock,
                                        Deadline deadline, const std::stop_token& stop) {
  const auto existing = client.describe_table(spec.table, deadline);
  if (existing) {
    const std::string differences = differences_of(*existing, spec);
    if (!differences.empty()) {
      return differs(spec, differences);
    }
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
  const std::string differences = differences_of(*table, spec);
  if (!differences.empty()) {
    return differs(spec, differences);
  }
  if (!is_active(*table, spec)) {
    return Error(ErrorCode::unavailable,
                 "table '" + spec.table + "' is " + table->status + "; wait until it is ACTIVE");
  }
  return {};
}

}  // namespace sluice::queue::dynamodb
