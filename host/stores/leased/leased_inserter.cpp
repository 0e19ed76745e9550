#include "host/stores/leased/leased_inserter.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/timestamp.hpp"
#include "host/stores/leased/leased_actions.hpp"

namespace sluice::queue::leased {
namespace {

// DynamoDB's limit is 4 MB for all items of a transaction.
constexpr std::size_t kMostBytes = 3'000'000;

const dynamo::Item* at(const LeasedLookup::Items& items, const Place& place) {
  const auto found = items.find(place);
  return found == items.end() ? nullptr : &found->second;
}

/// Whether another try may go better: others were at the same items, or DynamoDB was busy.
bool passes(const dynamo::Error& error) {
  return error.kind == dynamo::ErrorKind::throttled || error.kind == dynamo::ErrorKind::server ||
         error.exception_name == "TransactionInProgressException";
}

}  // namespace

/// What stands in the way of some records.
struct LeasedInserter::Seen {
  std::map<std::string, LeasedLookup::Found> records;  // their own ids, and those that unique marks name
  LeasedLookup::Items marks;
};

void LeasedInserter::insert(std::vector<Draft> drafts, Deadline deadline) {
  std::deque<Entry> entries;
  for (Draft& draft : drafts) {
    Entry entry{.draft = std::move(draft)};
    entry.token = parts_.store.nonces.anonymous();
    if (entry.draft.message == nullptr) {
      entry.draft.item.insert_or_assign(std::string(attribute::kNonce), entry.token);
    }
    if (entry.has_unique_key()) {
      entry.token = unique_token(*entry.draft.message, std::move(entry.token));
      entry.draft.item.insert_or_assign(std::string(attribute::kUniqueToken), entry.token);
    }
    entries.push_back(std::move(entry));
  }
  // One alone is most likely new. In a batch one duplicate would have all of its lot written for nothing.
  bool look_first = entries.size() > 1 || (!entries.empty() && entries.front().draft.replace);
  for (int round = 0; round < kMaxRounds && !entries.empty(); ++round) {
    if (look_first && !decide(entries, deadline)) {
      return;
    }
    look_first = true;
    write(lots(entries), deadline);
    std::erase_if(entries, [](const Entry& entry) { return !entry.open(); });
    if (!give_up_unsure(entries, deadline)) {
      return;
    }
    if (deadline.passed(parts_.store.clock.steady_now())) {
      break;
    }
  }
  for (Entry& entry : entries) {
    fail(entry, {ErrorCode::throttled,
                 "others write the same ids or keys in queue '" + place_.queue + "' at the same time; try it again"});
  }
}

// A transaction of another token could be stored beside the one that may still be on its way.
bool LeasedInserter::give_up_unsure(std::deque<Entry>& entries, Deadline deadline) {
  const auto unsure = [](const Entry& entry) { return entry.unsure; };
  if (std::none_of(entries.begin(), entries.end(), unsure)) {
    return true;
  }
  if (!decide(entries, deadline)) {
    return false;
  }
  for (Entry& entry : entries) {
    if (entry.unsure) {
      fail(entry, {});
    }
  }
  std::erase_if(entries, [](const Entry& entry) { return !entry.open(); });
  return true;
}

dynamo::Result<LeasedInserter::Seen> LeasedInserter::look(const std::deque<Entry>& entries, Deadline deadline) const {
  std::set<std::string> ids;
  std::set<Place> marks;
  for (const Entry& entry : entries) {
    if (entry.may_exist()) {
      ids.insert(entry.draft.id);
    }
    if (entry.deduplicated_by_id()) {
      marks.insert(mark_place(scope_.dedup_id(entry.draft.message->dedup_id)));
    }
    if (entry.has_unique_key()) {
      marks.insert(mark_place(scope_.unique_id(entry.draft.message->unique_key)));
    }
  }
  Seen seen;
  auto found =
      marks.empty() ? dynamo::Result<LeasedLookup::Items>(LeasedLookup::Items()) : lookup_.read(marks, deadline);
  SLUICE_PASS_ON(found);
  seen.marks = std::move(*found);
  for (const Entry& entry : entries) {
    const auto* item = entry.has_unique_key()
                           ? at(seen.marks, mark_place(scope_.unique_id(entry.draft.message->unique_key)))
                           : nullptr;
    if (const table::Mark mark = table::Mark::of(item); mark.there()) {
      ids.insert(mark.first);
    }
  }
  SLUICE_TRY(records, lookup_.find(ids, deadline));
  seen.records = std::move(*records);
  return seen;
}

bool LeasedInserter::decide(std::deque<Entry>& entries, Deadline deadline) {
  const auto seen = look(entries, deadline);
  for (Entry& entry : entries) {
    if (seen) {
      judge(entry, *seen);
    } else {
      fail(entry, table::store_error(place_, seen.error()));
    }
  }
  std::erase_if(entries, [](const Entry& entry) { return !entry.open(); });
  return seen.has_value();
}

bool LeasedInserter::judge_marks(Entry& entry, const Seen& seen) const {
  const auto mark_at = [&](const std::string& id) { return table::Mark::of(at(seen.marks, mark_place(id))); };
  const auto dedup =
      entry.deduplicated_by_id() ? mark_at(scope_.dedup_id(entry.draft.message->dedup_id)) : table::Mark();
  const auto unique =
      entry.has_unique_key() ? mark_at(scope_.unique_id(entry.draft.message->unique_key)) : table::Mark();
  if (dedup.token == entry.token || unique.token == entry.token) {
    finish(entry, {Inserted::Fate::written});  // all of it was written together
    return true;
  }
  if (dedup.there() && dedup.until > format_timestamp(parts_.store.clock.wall_now())) {
    finish(entry, {Inserted::Fate::deduplicated, dedup.first});
    return true;
  }
  if (unique.there() && holds_key(seen.records.at(unique.first).item, unique)) {
    finish(entry, {Inserted::Fate::deduplicated, unique.first});
    return true;
  }
  entry.unique_before = unique.token;
  return false;
}

void LeasedInserter::judge(Entry& entry, const Seen& seen) const {
  if (judge_marks(entry, seen) || !entry.may_exist()) {
    return;
  }
  entry.standing = seen.records.at(entry.draft.id);
  const bool ours = entry.standing.there() && Candidate::of(entry.standing.item).nonce == entry.token;
  // Nobody else comes upon a place that was made by chance.
  if (ours || (entry.has_alias() && entry.standing.alias == Place::of(entry.draft.item))) {
    return finish(entry, {Inserted::Fate::written});
  }
  if (entry.standing.there() && !entry.draft.replace) {
    finish(entry, {Inserted::Fate::exists});
  }
}

// Every item that its transaction writes or looks at.
std::vector<Place> LeasedInserter::places_of(const Entry& entry) const {
  std::vector<Place> places{Place::of(entry.draft.item)};
  if (entry.may_exist()) {
    places.push_back(alias_place(place_.queue, entry.draft.id));
  }
  if (entry.deduplicated_by_id()) {
    places.push_back(mark_place(scope_.dedup_id(entry.draft.message->dedup_id)));
  }
  if (entry.has_unique_key()) {
    places.push_back(mark_place(scope_.unique_id(entry.draft.message->unique_key)));
  }
  return places;
}

// No two of a lot, nor of two lots that are written side by side, touch the same item: the second one waits for the
// next round, when it is a duplicate of what the first one has left.
std::vector<LeasedInserter::Lot> LeasedInserter::lots(std::deque<Entry>& entries) const {
  std::vector<Lot> all;
  std::set<Place> touched;
  std::size_t bytes = 0;
  for (Entry& entry : entries) {
    const auto places = places_of(entry);
    const bool meets =
        std::any_of(places.begin(), places.end(), [&](const Place& place) { return touched.contains(place); });
    // Also of what waits, so that those behind it wait too: the first one is to be the first.
    touched.insert(places.begin(), places.end());
    if (meets) {
      continue;
    }
    const std::size_t size = table::item_bytes(entry.draft.item);
    if (all.empty() || all.back().size() == kRecordsPerTransaction || bytes + size > kMostBytes) {
      all.emplace_back();
      bytes = 0;
    }
    bytes += size;
    all.back().push_back(&entry);
  }
  return all;
}

// The record, its alias, and what has to go or must not be there.
void LeasedInserter::add_record(const Entry& entry, std::vector<dynamo::TransactAction>& actions) const {
  const Place place = Place::of(entry.draft.item);
  const bool replaces = entry.draft.replace && entry.standing.there();
  const bool in_place = replaces && Place::of(entry.standing.item) == place;
  dynamo::TransactAction put = table::put_message(place_.table, entry.draft.item, kLoneNames);
  if (in_place) {
    put.names.clear();
    put.condition = version_condition(version_of(entry.standing.item), put.names, put.values);
  }
  actions.push_back(std::move(put));
  if (entry.has_alias()) {
    actions.push_back(put_alias(place_, entry.draft.id, place, entry.standing.alias));
  }
  if (replaces && !in_place) {
    actions.push_back(remove_record(place_, entry.standing.item));
    if (auto freed = free_group(place_, entry.standing.item)) {
      actions.push_back(std::move(*freed));
    }
  } else if (const auto made = made_place(place_.queue, entry.draft.id); made && *made != place && entry.has_alias()) {
    // It looks like an id that we made, and such a message needs no alias.
    dynamo::TransactAction check{.kind = dynamo::TransactAction::Kind::check, .table = place_.table};
    check.item_or_key = made->key();
    check.condition = "attribute_not_exists(#p)";
    check.names.emplace("#p", attribute::kPartition);
    actions.push_back(std::move(check));
  }
}

void LeasedInserter::add_actions(const Entry& entry, WallTime now, std::vector<dynamo::TransactAction>& actions) const {
  add_record(entry, actions);
  if (entry.deduplicated_by_id()) {
    actions.push_back(put_dedup_mark(place_.table, *entry.draft.message, entry.draft.id, entry.token, now, scope_));
  }
  if (entry.has_unique_key()) {
    actions.push_back(put_unique_mark(place_.table, *entry.draft.message, entry.draft.id, entry.token,
                                      entry.unique_before, now, scope_));
  }
}

void LeasedInserter::write(std::vector<Lot> lots, Deadline deadline) {
  std::vector<dynamo::TransactWriteRequest> requests;
  const WallTime now = parts_.store.clock.wall_now();
  for (const Lot& lot : lots) {
    dynamo::TransactWriteRequest& request = requests.emplace_back();
    request.token = transaction_token(place_, parts_.random);
    for (const Entry* entry : lot) {
      add_actions(*entry, now, request.actions);
    }
  }
  // What became of it is asked with the same token each time: a try that was held up finds that it has been made.
  for (int tries = 0; tries < kMaxRounds && !requests.empty(); ++tries) {
    const auto results = parts_.store.client.transact_each(requests, deadline);
    std::size_t unknown = 0;
    for (std::size_t i = 0; i < lots.size(); ++i) {
      settle(lots[i], results[i]);
      if (results[i].error && results[i].error->outcome_unknown) {
        std::swap(requests[unknown], requests[i]);
        std::swap(lots[unknown++], lots[i]);
      }
    }
    requests.resize(unknown);
    lots.resize(unknown);
    if (deadline.passed(parts_.store.clock.steady_now())) {
      break;
    }
  }
}

void LeasedInserter::settle(const Lot& lot, const dynamo::TransactResult& result) const {
  for (Entry* entry : lot) {
    if (!result.error) {
      finish(*entry, {Inserted::Fate::written});
    } else if (result.error->outcome_unknown) {
      entry->unsure = true;
    } else if (result.error->kind != dynamo::ErrorKind::conditional_check_failed && !passes(*result.error)) {
      fail(*entry, table::store_error(place_, *result.error));
    }
    // Otherwise what stands in the way is looked for, which also tells whether an earlier try has arrived.
  }
}

void LeasedInserter::fail(Entry& entry, Error error) const {
  const bool unsure = entry.unsure;
  finish(entry, {.fate = Inserted::Fate::failed,
                 .error = unsure ? Error(ErrorCode::unknown_outcome,
                                         "message '" + entry.draft.id +
                                             "' may or may not have been stored; send it again as it is")
                                 : std::move(error)});
}

void LeasedInserter::finish(Entry& entry, Inserted result) {
  *entry.draft.result = std::move(result);
  entry.draft.result = nullptr;
}

}  // namespace sluice::queue::leased
