#include "host/stores/table/keyed_inserter.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/timestamp.hpp"
#include "host/stores/table/item_values.hpp"

namespace sluice::queue::table {
namespace {

/// Whether another try may go better: others were at the same items, or DynamoDB was busy.
bool passes(const dynamo::Error& error) {
  return error.kind == dynamo::ErrorKind::conditional_check_failed || error.kind == dynamo::ErrorKind::throttled ||
         error.kind == dynamo::ErrorKind::server || error.exception_name == "TransactionInProgressException";
}

}  // namespace

void KeyedInserter::insert(std::vector<Draft> drafts, Deadline deadline) {
  Entries entries;
  for (Draft& draft : drafts) {
    Entry& entry = entries.emplace_back(Entry{.draft = std::move(draft), .token = parts_.nonces.anonymous()});
    const auto put = [&entry](std::string_view name, std::string text) {
      entry.draft.item.insert_or_assign(std::string(name), std::move(text));
    };
    if (entry.draft.message == nullptr) {
      put(layout_.names().nonce, entry.token);
    } else if (entry.has_unique_key()) {
      put(layout_.names().unique_token, layout_.unique_token(*entry.draft.message, entry.token));
    }
  }
  const auto drop_ended = [&] { std::erase_if(entries, [](const Entry& entry) { return !entry.open(); }); };
  // One alone is most likely new. In a batch one duplicate would have all of its lot written for nothing.
  bool look_first = entries.size() > 1 || (!entries.empty() && entries.front().draft.replace);
  for (int round = 0; round < kMaxRounds && !entries.empty(); ++round) {
    if (look_first && !decide(entries, deadline)) {
      return;
    }
    look_first = true;
    write(lots(entries), deadline);
    drop_ended();
    // A transaction of another token could be stored beside the one that may still be on its way.
    if (std::any_of(entries.begin(), entries.end(), [](const Entry& entry) { return entry.unsure; })) {
      if (!decide(entries, deadline)) {
        return;
      }
      for (Entry& entry : entries) {
        if (entry.unsure) {
          fail(entry, {});
        }
      }
      drop_ended();
    }
    if (deadline.passed(parts_.clock.steady_now())) {
      break;
    }
  }
  const Error others(ErrorCode::throttled, "others write the same ids or keys in queue '" + layout_.place().queue +
                                               "' at the same time; try it again");
  for (Entry& entry : entries) {
    fail(entry, entry.throttled.value_or(others));
  }
}

bool KeyedInserter::decide(Entries& entries, Deadline deadline) const {
  std::set<std::string> ids;
  std::vector<const NewMessage*> messages;
  for (const Entry& entry : entries) {
    if (looks_at_id(entry)) {
      ids.insert(entry.id());
    }
    if (entry.draft.message != nullptr) {
      messages.push_back(entry.draft.message);
    }
  }
  const auto seen = layout_.see(messages, std::move(ids), deadline);
  for (Entry& entry : entries) {
    if (!seen) {
      fail(entry, store_error(layout_.place(), seen.error()));
    } else if (!decided_by_marks(entry, *seen) && looks_at_id(entry)) {
      entry.before = seen->records.at(entry.id());
      judge(entry);
    }
  }
  std::erase_if(entries, [](const Entry& entry) { return !entry.open(); });
  return seen.has_value();
}

bool KeyedInserter::decided_by_marks(Entry& entry, const RecordLayout::Seen& seen) const {
  if (entry.draft.message == nullptr) {
    return false;
  }
  const NewMessage& message = *entry.draft.message;
  const RecordLayout::SentBefore before = layout_.sent_before(message, seen);
  const Mark& unique = before.unique;
  entry.unique_before = unique.token;
  if (before.dedup.token == entry.token ||
      (unique.there() && unique.token == layout_.unique_token(message, entry.token))) {
    finish(entry, SendStatus::sent);  // all of it was written together
  } else if (const std::string* first = before.first(format_timestamp(parts_.clock.wall_now()))) {
    entry.draft.result->id = *first;
    finish(entry, SendStatus::deduplicated);
  }
  return !entry.open();
}

void KeyedInserter::judge(Entry& entry) const {
  if (entry.before.there() && !entry.draft.message->id.empty()) {
    finish(entry, SendStatus::duplicate_id, duplicate_id(layout_.place(), entry.id()));
  }
}

// No two of a lot, nor of two lots that are written side by side, touch the same item: the second one waits for the
// next round, when it is a duplicate of what the first one has left.
std::vector<KeyedInserter::Lot> KeyedInserter::lots(Entries& entries) const {
  std::vector<Lot> all;
  std::set<std::string> touched;
  std::size_t bytes = 0;
  for (Entry& entry : entries) {
    std::vector<std::string> items = items_of(entry);
    if (entry.draft.message != nullptr) {
      const auto marks = layout_.marks().mark_ids(*entry.draft.message);
      items.insert(items.end(), marks.begin(), marks.end());
    }
    const bool meets =
        std::any_of(items.begin(), items.end(), [&](const std::string& item) { return touched.contains(item); });
    // Also of what waits, so that those behind it wait too: the first one is to be the first.
    touched.insert(items.begin(), items.end());
    if (meets) {
      continue;
    }
    const std::size_t replaced = entry.draft.replace ? item_bytes(entry.before.item) : 0;
    const std::size_t size = item_bytes(entry.draft.item) + replaced;
    if (all.empty() || all.back().size() == terms_.most_together || bytes + size > kMaxTransactionBytes) {
      all.emplace_back();
      bytes = 0;
    }
    bytes += size;
    all.back().push_back(&entry);
  }
  return all;
}

void KeyedInserter::add_record(const Entry& entry, std::vector<dynamo::TransactAction>& actions) const {
  actions.push_back(put_message(layout_.place().table, entry.draft.item, layout_.names()));
}

void KeyedInserter::write(std::vector<Lot> lots, Deadline deadline) const {
  std::vector<dynamo::TransactWriteRequest> requests;
  const WallTime now = parts_.clock.wall_now();
  for (const Lot& lot : lots) {
    auto& request = requests.emplace_back();
    request.token = transaction_token(layout_.place(), parts_.nonces);
    for (const Entry* entry : lot) {
      add_record(*entry, request.actions);
      if (const NewMessage* message = entry->draft.message) {
        auto marks = layout_.put_marks(*message, entry->id(), entry->token, entry->unique_before, now);
        std::move(marks.begin(), marks.end(), std::back_inserter(request.actions));
      }
    }
  }
  // The client repeats what has a token until it knows what became of it, or until the deadline.
  for (int tries = 0; tries < terms_.tries && !requests.empty(); ++tries) {
    const auto results = parts_.client.transact_each(requests, deadline);
    std::size_t unknown = 0;
    for (std::size_t i = 0; i < lots.size(); ++i) {
      settle(lots[i], results[i]);
      if (!results[i] && results[i].error().outcome_unknown) {
        std::swap(requests[unknown], requests[i]);
        std::swap(lots[unknown++], lots[i]);
      }
    }
    requests.resize(unknown);
    lots.resize(unknown);
    if (deadline.passed(parts_.clock.steady_now())) {
      break;
    }
  }
}

void KeyedInserter::settle(const Lot& lot, const dynamo::Result<dynamo::ItemOutput>& result) const {
  for (Entry* entry : lot) {
    if (result) {
      finish(*entry, SendStatus::sent);
    } else if (result.error().outcome_unknown) {
      entry->unsure = true;
    } else if (!passes(result.error())) {
      fail(*entry, store_error(layout_.place(), result.error()));
    } else if (result.error().kind == dynamo::ErrorKind::throttled) {
      entry->throttled = store_error(layout_.place(), result.error());
    }
    // Otherwise what stands in the way is looked for, which also tells whether an earlier try has arrived.
  }
}

void KeyedInserter::fail(Entry& entry, Error error) {
  Error why = entry.unsure
                  ? Error(ErrorCode::unknown_outcome,
                          "message '" + entry.id() + "' may or may not have been stored; send it again as it is")
                  : std::move(error);
  finish(entry, SendStatus::failed, std::move(why));
}

void KeyedInserter::finish(Entry& entry, SendStatus status, Error error) {
  entry.draft.result->status = status;
  entry.draft.result->error = std::move(error);
  entry.draft.result = nullptr;
}

}  // namespace sluice::queue::table
