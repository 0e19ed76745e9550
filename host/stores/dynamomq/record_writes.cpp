#include "host/stores/dynamomq/record_writes.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/timestamp.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::AttributeValue;

using table::StatementFate;

bool same(const dynamo::Item& a, const dynamo::Item& b, std::string_view name) {
  const auto left = a.find(name);
  const auto right = b.find(name);
  return left != a.end() && right != b.end() && left->second == right->second;
}

/// Whether the record is as this insert, or what came after it, has left it.
bool is_ours(const Insert& insert, const dynamo::Item& record) {
  return nonce_of(record) == nonce_of(insert.item) ||
         (insert.is_new && version_of(record).number > 1 && same(insert.item, record, attribute::kCreatedAt) &&
          same(insert.item, record, attribute::kData));
}

PutResult failed(Error error) { return {PutStatus::failed, std::move(error)}; }

/// The item that puts this record.
Result<dynamo::Item> item_of(const table::StoreParts& parts, const StoredMessage& record) {
  const std::string name = "message '" + record.message.id + "'";
  if (record.message.priority != Priority::normal) {
    return Error(ErrorCode::invalid,
                 name + " has the priority " + std::string(to_string(record.message.priority)) +
                     ", and a DynamoDB table has none; take it away, or put it into the queue of its class");
  }
  SLUICE_TRY(item, encode_stored(record));
  item->insert_or_assign(std::string(attribute::kNonce), parts.nonces.anonymous());
  if (const std::size_t bytes = table::item_bytes(*item); bytes > table::kMaxItemBytes) {
    return Error(ErrorCode::invalid, name + " takes " + std::to_string(bytes) +
                                         " bytes as an item and DynamoDB holds " +
                                         std::to_string(table::kMaxItemBytes));
  }
  return std::move(*item);
}

}  // namespace

table::RecordWrite update_of(std::string_view table, table::Expected expected, const WriteMark& mark,
                             table::RecordChange change, bool returning) {
  table::RecordWrite write{.table = table, .expected = std::move(expected), .returning = returning};
  write.names = &kNames;
  auto& set = write.change.set;
  set.reserve(change.set.size() + 3);
  set.emplace_back(attribute::kVersion, AttributeValue::number(write.expected.version.next()));
  set.emplace_back(attribute::kUpdatedAt, format_timestamp(mark.now));
  set.emplace_back(attribute::kNonce, std::string(mark.nonce));
  std::move(change.set.begin(), change.set.end(), std::back_inserter(set));
  write.change.removed = std::move(change.removed);
  return write;
}

table::RecordWrite removal_of(std::string_view table, table::Expected expected) {
  table::RecordWrite write{.kind = table::RecordWrite::Kind::remove, .table = table, .expected = std::move(expected)};
  write.returning = true;
  write.names = &kNames;
  return write;
}

table::RecordChange attributes_of(const core::StateChange& change, MayHave may_have) {
  table::RecordChange made;
  auto& set = made.set;
  if (change.half) {
    set.emplace_back(attribute::kQueueType, std::string(to_string(*change.half)));
  }
  if (change.receives) {
    set.emplace_back(attribute::kReceiveCount, AttributeValue::number(*change.receives));
  }
  if (change.sent_at) {
    set.emplace_back(attribute::kSentAt, format_timestamp(*change.sent_at));
  }
  if (change.received_at) {
    set.emplace_back(attribute::kReceivedAt, stored_time(*change.received_at));
  }
  if (change.hidden_until) {
    set.emplace_back(attribute::kInvisibleUntilAt, stored_time(*change.hidden_until));
  }
  if (change.created_at) {
    set.emplace_back(attribute::kCreatedAt, format_timestamp(*change.created_at));
  }
  if (change.failure && !change.failure->empty()) {
    set.emplace_back(attribute::kFailure, table::encode_failure(*change.failure));
  } else if (change.failure && may_have.failure) {
    made.removed.push_back(attribute::kFailure);
  }
  if (change.checkpoint && !change.checkpoint->empty()) {
    set.emplace_back(attribute::kCheckpoint, dynamo::Binary{*change.checkpoint});
  } else if (change.checkpoint && may_have.checkpoint) {
    made.take_away(attribute::kCheckpoint, dynamo::Binary{});
  }
  if (change.marks.value_or(0) != 0) {
    set.emplace_back(attribute::kMarks, AttributeValue::number(*change.marks));
  } else if (change.marks && may_have.marks) {
    made.take_away(attribute::kMarks, AttributeValue::number(0));
  }
  return made;
}

dynamo::QueryRequest query_of_half(const table::QueueTable& place, Half half) {
  dynamo::QueryRequest query;
  query.table = place.table;
  query.index = place.index;
  query.key_condition = "queue_type = :type";
  query.values.emplace(":type", std::string(to_string(half)));
  return query;
}

dynamo::Result<Records> read_records(const table::StoreParts& parts, const table::QueueTable& place,
                                     const std::vector<std::string>& ids, Deadline deadline) {
  std::vector<dynamo::Item> keys;
  std::transform(ids.begin(), ids.end(), std::back_inserter(keys),
                 [](const std::string& id) { return kNames.key(id); });
  SLUICE_TRY(items, table::read_items(parts.client, place.table, keys, deadline));
  Records records;
  for (dynamo::Item& item : *items) {
    std::string id = dynamo::text_of(item, attribute::kId);
    records.emplace(std::move(id), std::move(item));
  }
  return records;
}

std::vector<table::StatementOutcome> put_new(const table::StoreParts& parts, const table::QueueTable& place,
                                             std::span<const Insert> inserts, Deadline deadline) {
  std::vector<table::RecordWrite> writes;
  writes.reserve(inserts.size());
  for (const Insert& insert : inserts) {
    writes.push_back({.kind = table::RecordWrite::Kind::insert,
                      .table = place.table,
                      .expected = {insert.id(), {}},
                      .whatever_it_is = insert.replace,
                      .item = insert.item,
                      .names = &kNames});
  }
  auto outcomes = parts.runner.run(std::move(writes), table::Repetition::until_known, deadline);
  std::vector<std::string> doubtful;
  for (std::size_t i = 0; i < inserts.size(); ++i) {
    if (table::in_doubt(outcomes[i])) {
      doubtful.push_back(inserts[i].id());
    }
  }
  if (doubtful.empty()) {
    return outcomes;
  }
  const auto records = read_records(parts, place, doubtful, deadline);
  for (std::size_t i = 0; i < inserts.size(); ++i) {
    table::StatementOutcome& outcome = outcomes[i];
    if (!table::in_doubt(outcome)) {
      continue;
    }
    const bool refused = outcome.fate == StatementFate::refused;
    if (!records) {
      // Why the write itself got no answer says more than why the look afterwards got none; if refused, it got one.
      outcome.error = refused ? records.error() : outcome.error;
      outcome.fate = StatementFate::unknown;
      continue;
    }
    const auto found = records->find(inserts[i].id());
    if (found != records->end()) {
      outcome.fate = is_ours(inserts[i], found->second) ? StatementFate::done
                     : inserts[i].replace               ? StatementFate::unknown
                                                        : StatementFate::refused;
    } else if (refused) {
      outcome.fate = StatementFate::done;  // its first try was ours, and somebody has finished with it since
    }
  }
  return outcomes;
}

Error error_of(const table::QueueTable& place, const table::StatementOutcome& outcome) {
  Error error = table::store_error(place, outcome.error);
  return outcome.fate == StatementFate::unknown ? Error(ErrorCode::unknown_outcome, error.message()) : error;
}

std::vector<PutResult> put_records(const table::StoreParts& parts, const table::QueueTable& place,
                                   std::span<const StoredMessage> records, PutMode mode, Deadline deadline) {
  std::vector<PutResult> results(records.size());
  std::vector<Insert> inserts;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (auto item = item_of(parts, records[i])) {
      inserts.push_back({.place = i, .item = std::move(*item), .replace = mode == PutMode::replace});
    } else {
      results[i] = failed(item.error());
    }
  }
  const auto outcomes = put_new(parts, place, inserts, deadline);
  for (std::size_t k = 0; k < inserts.size(); ++k) {
    PutResult& result = results[inserts[k].place];
    if (outcomes[k].fate == StatementFate::refused) {
      result = {PutStatus::exists, {}};
    } else if (outcomes[k].fate != StatementFate::done) {
      result = failed(error_of(place, outcomes[k]));
    }
  }
  return results;
}

}  // namespace sluice::queue::dynamomq
