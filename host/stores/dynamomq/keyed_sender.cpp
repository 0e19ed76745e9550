#include "host/stores/dynamomq/keyed_sender.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/timestamp.hpp"
#include "base/uuid.hpp"
#include "host/stores/dynamomq/dynamomq_layout.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/schema.hpp"
#include "host/stores/table/item_values.hpp"

namespace sluice::queue::dynamomq {

namespace {

// DynamoDB's limit is 4 MB for all items of a transaction.
constexpr std::size_t kMostBytes = 3'000'000;
// A token has 36 bytes at most: so much of a UUID, and a number for the table.
constexpr std::size_t kTokenBytes = 28;
constexpr std::uint64_t kTables = 100'000'000;

const dynamo::Item* find(const std::unordered_map<std::string, dynamo::Item>& records, const std::string& id) {
  const auto found = records.find(id);
  return found == records.end() ? nullptr : &found->second;
}

Error taken(const table::QueueTable& place, const std::string& id) {
  return {ErrorCode::duplicate_id, "queue '" + place.queue + "' has a message '" + id + "' already"};
}

/// Whether another try may go better: others were at the same items, or DynamoDB was busy.
bool passes(const dynamo::Error& error) {
  return error.kind == dynamo::ErrorKind::throttled || error.kind == dynamo::ErrorKind::server ||
         error.exception_name == "TransactionInProgressException";
}

}  // namespace

void KeyedSender::send(std::vector<Draft> drafts, Deadline deadline) {
  std::deque<Entry> entries;
  for (Draft& draft : drafts) {
    Entry entry{.draft = std::move(draft), .token = parts_.nonces.anonymous()};
    if (!entry.draft.message->unique_key.empty()) {
      entry.draft.item.insert_or_assign(std::string(attribute::kUniqueToken), entry.token);
    }
    entries.push_back(std::move(entry));
  }
  // One alone is most likely new. In a batch one duplicate would have all of its lot written for nothing.
  bool look_first = entries.size() > 1;
  for (int round = 0; round < kMaxRounds && !entries.empty(); ++round) {
    if (look_first && !decide(entries, deadline)) {
      return;
    }
    look_first = true;
    write(lots(entries), deadline);
    std::erase_if(entries, [](const Entry& entry) { return entry.draft.result == nullptr; });
    if (deadline.passed(parts_.clock.steady_now())) {
      break;
    }
  }
  for (Entry& entry : entries) {
    fail(entry, entry.unsure
                    ? Error(ErrorCode::unknown_outcome, "message '" + entry.draft.result->id +
                                                            "' may or may not have been stored; send it again as it is")
                    : Error(ErrorCode::throttled, "others send with the same keys to queue '" + place_.queue +
                                                      "' at the same time; send it again"));
  }
}

bool KeyedSender::decide(std::deque<Entry>& entries, Deadline deadline) {
  std::set<std::string> ids;
  for (const Entry& entry : entries) {
    const NewMessage& message = *entry.draft.message;
    ids.insert(entry.draft.result->id);
    if (!message.dedup_id.empty()) {
      ids.insert(table::dedup_mark_id(message.dedup_id));
    }
    if (!message.unique_key.empty()) {
      ids.insert(table::unique_mark_id(message.unique_key));
    }
  }
  auto marks = parts_.runner.read(place_.table, attribute::kId, {ids.begin(), ids.end()}, deadline);
  std::set<std::string> named;
  for (const Entry& entry : entries) {
    if (marks && !entry.draft.message->unique_key.empty()) {
      const table::Mark mark = table::Mark::of(find(*marks, table::unique_mark_id(entry.draft.message->unique_key)));
      if (mark.there()) {
        named.insert(mark.first);
      }
    }
  }
  auto holders = marks && !named.empty()
                     ? parts_.runner.read(place_.table, attribute::kId, {named.begin(), named.end()}, deadline)
                     : dynamo::Result<Records>(Records());
  if (!marks || !holders) {
    const Error why = table::store_error(place_, marks ? holders.error() : marks.error());
    for (Entry& entry : entries) {
      fail(entry, entry.unsure ? Error(ErrorCode::unknown_outcome, why.message()) : why);
    }
    return false;
  }
  std::erase_if(entries, [&](Entry& entry) { return decided(entry, *marks, *holders); });
  return true;
}

bool KeyedSender::decided(Entry& entry, const Records& marks, const Records& holders) const {
  const NewMessage& message = *entry.draft.message;
  SendResult& result = *entry.draft.result;
  const table::Mark dedup =
      message.dedup_id.empty() ? table::Mark() : table::Mark::of(find(marks, table::dedup_mark_id(message.dedup_id)));
  const table::Mark unique = message.unique_key.empty()
                                 ? table::Mark()
                                 : table::Mark::of(find(marks, table::unique_mark_id(message.unique_key)));
  if (dedup.token == entry.token || unique.token == entry.token) {
    finish(entry, SendStatus::sent);  // all of it was written together
    return true;
  }
  if (dedup.there() && dedup.until > format_timestamp(parts_.clock.wall_now())) {
    result.id = dedup.first;
    finish(entry, SendStatus::deduplicated);
    return true;
  }
  if (unique.there() && holds_key(find(holders, unique.first), unique)) {
    result.id = unique.first;
    finish(entry, SendStatus::deduplicated);
    return true;
  }
  entry.unique_before = unique.token;
  if (!message.id.empty() && find(marks, result.id) != nullptr) {
    result.error = taken(place_, result.id);
    finish(entry, SendStatus::duplicate_id);
    return true;
  }
  return false;
}

// No two of a lot, nor of two lots that are written side by side, touch the same item: the second one waits for the
// next round, when it is a duplicate of what the first one has left.
std::vector<KeyedSender::Lot> KeyedSender::lots(std::deque<Entry>& entries) const {
  std::vector<Lot> all;
  std::set<std::string> touched;
  std::size_t bytes = 0;
  for (Entry& entry : entries) {
    const NewMessage& message = *entry.draft.message;
    std::vector<std::string> items{entry.draft.result->id};
    if (!message.dedup_id.empty()) {
      items.push_back(table::dedup_mark_id(message.dedup_id));
    }
    if (!message.unique_key.empty()) {
      items.push_back(table::unique_mark_id(message.unique_key));
    }
    const bool meets =
        std::any_of(items.begin(), items.end(), [&](const std::string& item) { return touched.contains(item); });
    // Also of what waits, so that those behind it wait too: the first one is to be the first.
    touched.insert(items.begin(), items.end());
    if (meets) {
      continue;
    }
    const std::size_t size = table::item_bytes(entry.draft.item);
    if (all.empty() || all.back().size() == kMessagesPerTransaction || bytes + size > kMostBytes) {
      all.emplace_back();
      bytes = 0;
    }
    bytes += size;
    all.back().push_back(&entry);
  }
  return all;
}

dynamo::TransactWriteRequest KeyedSender::request_of(const Lot& lot) const {
  dynamo::TransactWriteRequest request;
  // DynamoDB knows tokens by account, not by table.
  request.token =
      make_uuid(random_).substr(0, kTokenBytes - 1) + std::to_string(table::stable_hash(place_.table) % kTables);
  const WallTime now = parts_.clock.wall_now();
  for (const Entry* entry : lot) {
    const NewMessage& message = *entry->draft.message;
    const std::string& id = entry->draft.result->id;
    request.actions.push_back(table::put_message(place_.table, entry->draft.item, kLoneNames));
    if (!message.dedup_id.empty()) {
      request.actions.push_back(table::put_dedup_mark(place_.table, message, id, entry->token, now, {kLoneNames}));
    }
    if (!message.unique_key.empty()) {
      request.actions.push_back(
          table::put_unique_mark(place_.table, message, id, entry->token, entry->unique_before, now, {kLoneNames}));
    }
  }
  return request;
}

void KeyedSender::write(const std::vector<Lot>& lots, Deadline deadline) {
  std::vector<dynamo::TransactWriteRequest> requests;
  requests.reserve(lots.size());
  for (const Lot& lot : lots) {
    requests.push_back(request_of(lot));
  }
  // The client repeats what has a token until it knows what became of it, or until the deadline.
  const auto results = parts_.client.transact_each(requests, deadline);
  for (std::size_t i = 0; i < lots.size(); ++i) {
    settle(lots[i], results[i]);
  }
}

void KeyedSender::settle(const Lot& lot, const dynamo::TransactResult& result) {
  for (Entry* entry : lot) {
    if (!result.error) {
      finish(*entry, SendStatus::sent);
    } else if (result.error->outcome_unknown) {
      entry->unsure = true;
    } else if (result.error->kind != dynamo::ErrorKind::conditional_check_failed && !passes(*result.error)) {
      const Error error = table::store_error(place_, *result.error);
      fail(*entry, entry->unsure ? Error(ErrorCode::unknown_outcome, error.message()) : error);
    }
    // Otherwise what stands in the way is looked for, which also tells whether an earlier try has arrived.
  }
}

void KeyedSender::fail(Entry& entry, Error error) const {
  entry.draft.result->error = std::move(error);
  finish(entry, SendStatus::failed);
}

void KeyedSender::finish(Entry& entry, SendStatus status) {
  entry.draft.result->status = status;
  entry.draft.result = nullptr;
}

}  // namespace sluice::queue::dynamomq
