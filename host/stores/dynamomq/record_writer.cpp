#include "host/stores/dynamomq/record_writer.hpp"

#include <unordered_set>
#include <utility>

#include "host/stores/dynamomq/record.hpp"
#include "host/stores/table/item_values.hpp"

namespace sluice::queue::dynamomq {
namespace {

// DynamoDB's limit for the text of a statement; the values are beside it.
constexpr std::size_t kMaxStatementBytes = 8192;
constexpr std::size_t kStatementFrame = 300;  // the words, and a table's name of 255 characters
constexpr std::size_t kAroundAName = 5;       // ,'':?

PutResult failed(Error error) { return {PutStatus::failed, std::move(error)}; }

}  // namespace

/// A record on its way: its place in the request, and its item.
struct RecordWriter::Draft {
  std::size_t place = 0;
  std::string id;
  dynamo::Item item;

  // Whether a statement may carry the names between its quotes as they are, and has room for all of them.
  bool fits_a_statement() const {
    std::size_t length = kStatementFrame;
    for (const auto& [name, value] : item) {
      length += name.size() + kAroundAName;
      if (name.find_first_of("'\"\\?") != std::string::npos) {
        return false;
      }
    }
    return length <= kMaxStatementBytes;
  }
};

std::vector<RecordWriter::Draft> RecordWriter::draft(std::span<const StoredMessage> records,
                                                     std::vector<PutResult>& results) const {
  std::vector<Draft> drafts;
  drafts.reserve(records.size());
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (records[i].message.priority != Priority::normal) {
      results[i] = failed({ErrorCode::invalid, "message '" + records[i].message.id + "' has the priority " +
                                                   std::string(to_string(records[i].message.priority)) +
                                                   ", and a DynamoDB table has none; take it away, or put it into the "
                                                   "queue of its class"});
      continue;
    }
    auto item = encode_stored(records[i]);
    if (!item) {
      results[i] = failed(item.error());
      continue;
    }
    item->insert_or_assign(std::string(attribute::kNonce), parts_.nonces.anonymous());
    if (const std::size_t bytes = table::item_bytes(*item); bytes > table::kMaxItemBytes) {
      results[i] = failed({ErrorCode::invalid, "message '" + records[i].message.id + "' takes " +
                                                   std::to_string(bytes) + " bytes as an item and DynamoDB holds " +
                                                   std::to_string(table::kMaxItemBytes)});
      continue;
    }
    drafts.push_back({i, records[i].message.id, std::move(*item)});
  }
  return drafts;
}

std::vector<PutResult> RecordWriter::put(std::span<const StoredMessage> records, PutMode mode,
                                         Deadline deadline) const {
  std::vector<PutResult> results(records.size());
  const auto drafts = draft(records, results);
  if (mode == PutMode::insert) {
    insert(drafts, results, deadline);
  } else {
    replace(drafts, results, deadline);
  }
  return results;
}

void RecordWriter::insert(const std::vector<Draft>& drafts, std::vector<PutResult>& results, Deadline deadline) const {
  std::vector<table::RecordWrite> writes;
  writes.reserve(drafts.size());
  for (const Draft& draft : drafts) {
    writes.push_back(build_.insert(draft.id, draft.item));
    writes.back().alone = !draft.fits_a_statement();
  }
  auto outcomes = parts_.runner.run(std::move(writes), table::Repetition::until_known, deadline);
  std::vector<WriteTrace> traces;
  traces.reserve(drafts.size());
  for (const Draft& draft : drafts) {
    traces.push_back({WriteTrace::Kind::insert, draft.id, nonce_of(draft.item), {}});
  }
  const OutcomeRecovery recovery(parts_.runner, place_);
  recovery.recover(traces, outcomes, deadline);
  for (std::size_t k = 0; k < drafts.size(); ++k) {
    PutResult& result = results[drafts[k].place];
    if (outcomes[k].fate == table::StatementFate::refused) {
      result = {PutStatus::exists, {}};
    } else if (outcomes[k].fate != table::StatementFate::done) {
      result = failed(recovery.error_of(outcomes[k]));
    }
  }
}

void RecordWriter::replace(std::span<const Draft> drafts, std::vector<PutResult>& results, Deadline deadline) const {
  std::size_t start = 0;
  std::size_t bytes = 0;
  std::unordered_set<std::string_view> ids;
  for (std::size_t k = 0; k <= drafts.size(); ++k) {
    const std::size_t more = k == drafts.size() ? 0 : table::item_bytes(drafts[k].item);
    const bool full = k == drafts.size() || k - start == table::kMaxStatementsPerBatch ||
                      bytes + more > table::kMaxBatchBytes || ids.count(drafts[k].id) > 0;
    if (full && k > start) {
      replace_batch(drafts.subspan(start, k - start), results, deadline);
      start = k;
      bytes = 0;
      ids.clear();
    }
    if (k < drafts.size()) {
      ids.insert(drafts[k].id);
      bytes += more;
    }
  }
}

void RecordWriter::replace_batch(std::span<const Draft> drafts, std::vector<PutResult>& results,
                                 Deadline deadline) const {
  std::vector<dynamo::Item> items;
  items.reserve(drafts.size());
  for (const Draft& draft : drafts) {
    items.push_back(draft.item);
  }
  auto written = parts_.client.batch_put(place_.table, items, deadline);
  for (int tries = 1; !written && table::outcome_unknown(written.error()) && tries < kMaxTries; ++tries) {
    written = parts_.client.batch_put(place_.table, items, deadline);
  }
  if (written) {
    return;
  }
  if (written.error().kind == dynamo::ErrorKind::validation && drafts.size() > 1) {
    for (std::size_t k = 0; k < drafts.size(); ++k) {
      replace_batch(drafts.subspan(k, 1), results, deadline);  // one record is to blame, not all of them
    }
    return;
  }
  for (const Draft& draft : drafts) {
    results[draft.place] = failed(table::store_error(place_, written.error()));
  }
}

}  // namespace sluice::queue::dynamomq
