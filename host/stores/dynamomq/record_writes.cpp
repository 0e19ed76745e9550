#include "host/stores/dynamomq/record_writes.hpp"

#include <utility>

#include "base/ranges.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::dynamomq {
namespace {

using table::StatementFate;

bool same(const dynamo::Item& a, const dynamo::Item& b, std::string_view name) {
  const auto left = a.find(name);
  const auto right = b.find(name);
  return left != a.end() && right != b.end() && left->second == right->second;
}

/// Whether the record is as this insert, or what came after it, has left it: whoever has claimed a message that was
/// sent has replaced the nonce, but neither the time of its creation nor its data.
bool is_ours(const Insert& insert, const dynamo::Item& record) {
  return nonce_of(record) == nonce_of(insert.item) ||
         (insert.message != nullptr && version_of(record).number > 1 &&
          same(insert.item, record, attribute::kCreatedAt) && same(insert.item, record, attribute::kData));
}

/// What became of an insert in doubt, by what lies under its id.
void find_out(const Insert& insert, const dynamo::Result<table::FoundRecords>& records,
              table::StatementOutcome& outcome) {
  const bool refused = outcome.fate == StatementFate::refused;
  if (!records) {
    // Why the write itself got no answer says more than why the look afterwards got none; if refused, it got one.
    outcome.error = refused ? records.error() : outcome.error;
    outcome.fate = StatementFate::unknown;
  } else if (const table::FoundRecord& found = records->at(insert.result->id); found.there()) {
    outcome.fate = is_ours(insert, found.item) ? StatementFate::done
                   : insert.replace            ? StatementFate::unknown
                                               : StatementFate::refused;
  } else if (refused) {
    outcome.fate = StatementFate::done;  // its first try was ours, and somebody has finished with it since
  }
}

}  // namespace

dynamo::QueryRequest query_of_half(const table::QueueTable& place, Half half) {
  dynamo::QueryRequest query;
  query.table = place.table;
  query.index = place.index;
  query.key_condition = "queue_type = :type";
  query.values.emplace(":type", std::string(to_string(half)));
  return query;
}

void put_new(const table::RecordLayout& layout, std::span<const Insert> inserts, Deadline deadline) {
  const table::QueueTable& place = layout.place();
  auto writes = mapped(inserts, [&](const Insert& insert) {
    return table::RecordWrite{.kind = table::RecordWrite::Kind::insert,
                              .table = place.table,
                              .expected = {insert.result->id, {}},
                              .whatever_it_is = insert.replace,
                              .item = insert.item,
                              .names = &kNames};
  });
  auto outcomes = layout.parts().runner.run(std::move(writes), table::Repetition::until_known, deadline);
  std::set<std::string> doubtful;
  for (std::size_t i = 0; i < inserts.size(); ++i) {
    if (table::in_doubt(outcomes[i])) {
      doubtful.insert(inserts[i].result->id);
    }
  }
  const auto records = layout.find(doubtful, deadline);
  for (std::size_t i = 0; i < inserts.size(); ++i) {
    table::StatementOutcome& outcome = outcomes[i];
    if (table::in_doubt(outcome)) {
      find_out(inserts[i], records, outcome);
    }
    SendResult& result = *inserts[i].result;
    if (outcome.fate == StatementFate::refused) {
      result = {SendStatus::duplicate_id, result.id, table::duplicate_id(place, result.id)};
    } else if (outcome.fate != StatementFate::done) {
      Error error = table::store_error(place, outcome.error);
      const bool unknown = outcome.fate == StatementFate::unknown;
      result = {SendStatus::failed, result.id,
                unknown ? Error(ErrorCode::unknown_outcome, error.message()) : std::move(error)};
    }
  }
}

}  // namespace sluice::queue::dynamomq
