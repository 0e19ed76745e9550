#include "tests/support/sim_records.hpp"

#include <algorithm>
#include <deque>
#include <iterator>
#include <utility>

#include "host/queue/content_edit.hpp"
#include "host/queue/error_groups.hpp"
#include "host/queue/message.hpp"
#include "host/stores/core/transitions.hpp"
#include "tests/support/state_changes.hpp"

namespace sluice::test {

using queue::CompletionAction;
using queue::Half;
using queue::later;
using queue::MessageState;
using queue::StoredMessage;
namespace core = queue::core;

namespace {

bool is_suspect(const StoredMessage& stored) { return core::MessageState::of(stored).is_suspect(); }

}  // namespace

queue::Claimed SimRecords::claim(Half half, const queue::ClaimRequest& asked, WallTime now) {
  queue::ClaimRequest request = asked;
  const auto wants_order = [](const queue::ClaimRules& rules) {
    return rules.order != queue::Order::none || rules.fair;
  };
  if (wants_order(request.rules)) {
    kept_[half] = request.rules;
  } else if (request.counts) {
    request.rules = kept_[half];
  }
  queue::Claimed claimed;
  std::size_t bytes = 0;
  for (const Place& place : wants_order(request.rules) ? turns(half, request, now) : by_priority(half, request, now)) {
    if (claimed.deliveries.size() == request.max || bytes >= request.bytes) {
      break;
    }
    StoredMessage& stored = records_.at(ids_.at(place.second)).stored;
    const bool suspect = is_suspect(stored);
    if (suspect && (!request.suspects || !claimed.deliveries.empty())) {
      continue;
    }
    claimed.deliveries.push_back(hand_out(place, stored, request, now));
    bytes += stored.message.body.size();
    if (suspect) {
      break;
    }
  }
  if (claimed.deliveries.size() < request.max) {
    claimed.next_due = next_due(half, now);
  }
  return claimed;
}

bool SimRecords::suspected(const Place& place) const {
  const StoredMessage& stored = records_.at(ids_.at(place.second)).stored;
  return is_suspect(stored);
}

// Of each lane the first one, where nothing of the lane is out or holds it; lanes by their last turns.
std::vector<SimRecords::Place> SimRecords::turns(Half half, const queue::ClaimRequest& request, WallTime now) {
  const auto lane_of = [&](const Place& place, const StoredMessage& stored) {
    if (request.rules.order == queue::Order::queue) {
      return std::string("queue");
    }
    return stored.message.group.empty() ? "single " + std::to_string(place.second) : "group " + stored.message.group;
  };
  const bool fair = request.rules.order == queue::Order::none;
  std::map<std::string, std::vector<Place>> ready;
  std::set<std::string> blocked;
  for (const Place& place : order(half)) {
    const StoredMessage& stored = records_.at(ids_.at(place.second)).stored;
    const std::string lane = lane_of(place, stored);
    if (stored.state(now) == MessageState::ready) {
      ready[lane].push_back(place);
    } else if (!fair && core::MessageState::of(stored).holds_up_its_group()) {
      blocked.insert(lane);
    }
  }
  if (!fair && half == Half::standard) {
    for (const auto& [id, place] : holds_) {
      blocked.insert(lane_of({place, records_.at(id).sequence}, records_.at(id).stored));
    }
  }
  std::vector<Place> picked;
  std::map<std::pair<std::uint64_t, Place>, std::string> waiting;
  for (const auto& [lane, places] : ready) {
    if (!blocked.contains(lane)) {
      waiting.emplace(std::pair(turn_of_[{half, lane}], places.front()), lane);
    }
  }
  while (!waiting.empty() && picked.size() < request.max) {
    const auto [turn, lane] = *waiting.begin();
    waiting.erase(waiting.begin());
    if (suspected(turn.second) && !request.suspects) {
      continue;
    }
    picked.push_back(turn.second);
    turn_of_[{half, lane}] = next_turn_++;
    std::vector<Place>& places = ready[lane];
    places.erase(places.begin());
    if (fair && !places.empty()) {
      waiting.emplace(std::pair(turn_of_[{half, lane}], places.front()), lane);
    }
  }
  return picked;
}

std::vector<SimRecords::Place> SimRecords::by_priority(Half half, const queue::ClaimRequest& request, WallTime now) {
  std::array<std::deque<Place>, queue::kPriorities> ready;
  std::size_t count = 0;
  for (const Place& place : order(half)) {
    const StoredMessage& stored = records_.at(ids_.at(place.second)).stored;
    if (place.first <= now && stored.state(now) == MessageState::ready) {
      ready[static_cast<std::size_t>(stored.message.priority)].push_back(place);
      ++count;
    }
  }
  std::vector<Place> picked;
  auto& credits = credits_[half];
  while (picked.size() < count) {
    std::int64_t gained = 0;
    std::size_t next = queue::kPriorities;
    for (std::size_t i = 0; i < queue::kPriorities; ++i) {
      if (ready[i].empty()) {
        continue;
      }
      const std::int64_t weight = std::max<std::int64_t>(1, request.rules.weights[i]);
      gained += weight;
      if (picked.size() < request.max) {
        credits[i] += weight;
      }
      if (next == queue::kPriorities || credits[i] > credits[next]) {
        next = i;
      }
    }
    if (picked.size() < request.max) {
      credits[next] -= gained;
    }
    picked.push_back(ready[next].front());
    ready[next].pop_front();
  }
  return picked;
}

queue::Delivery SimRecords::hand_out(const Place& place, StoredMessage& stored, const queue::ClaimRequest& request,
                                     WallTime now) {
  const core::ClaimTerms terms{now, later(now, request.visibility), request.counts};
  test::apply(core::claim(core::MessageState::of(stored), terms), now, stored);
  return {.message = stored.message,
          .receipt = {.id = stored.message.id,
                      .version = stored.version,
                      .locator = static_cast<std::int64_t>(place.second)},
          .leased_until = {},
          .invisible_until = *stored.invisible_until,
          .suspect = (stored.marks & core::kSuspect) != 0};
}

std::optional<Duration> SimRecords::next_due(Half half, WallTime now) const {
  std::optional<Duration> soonest;
  for (const Place& place : order(half)) {
    const StoredMessage& stored = records_.at(ids_.at(place.second)).stored;
    if (stored.state(now) != MessageState::ready) {
      const WallTime hidden = stored.invisible_until.value_or(WallTime::min());
      const Duration wait = std::max<Duration>(stored.message.sent_at - now,
                                               hidden >= now ? hidden - now + Duration(1) : Duration::zero());
      soonest = soonest ? std::min(*soonest, wait) : wait;
    }
  }
  return soonest;
}

SimRecords::Record* SimRecords::held(Half half, const queue::Receipt& receipt) {
  const auto found = records_.find(receipt.id);
  if (found == records_.end()) {
    return nullptr;
  }
  Record& record = found->second;
  const bool ours = record.stored.version == receipt.version && record.stored.half == half &&
                    record.sequence == static_cast<std::uint64_t>(receipt.locator);
  return ours ? &record : nullptr;
}

void SimRecords::apply(Record& record, const core::StateChange& change, WallTime now) {
  const auto before = core::MessageState::of(record.stored);
  order(before.half).erase(place(record));
  test::apply(change, now, record.stored);
  order(record.stored.half).insert(place(record));
  const auto after = core::MessageState::of(record.stored);
  if (core::lets_group_go(before, &after)) {
    holds_.erase(record.stored.message.id);
  }
  if (change.holds_group) {
    holds_[record.stored.message.id] = before.sent_at;
  }
}

bool SimRecords::settle(Half half, const queue::Completion& completion, WallTime now) {
  Record* record = held(half, completion.receipt);
  if (record == nullptr) {
    return false;
  }
  const core::StateChange change = core::end(completion, core::MessageState::of(record->stored), now);
  if (change.removes) {
    return remove(completion.receipt.id);
  }
  apply(*record, change, now);
  return true;
}

std::optional<queue::Receipt> SimRecords::extend(Half half, const queue::Receipt& receipt, WallTime until,
                                                 WallTime now) {
  Record* record = held(half, receipt);
  if (record == nullptr) {
    return std::nullopt;
  }
  test::apply(core::extension(until), now, record->stored);
  return queue::Receipt{.id = receipt.id, .version = record->stored.version, .locator = receipt.locator};
}

bool SimRecords::send(const queue::NewMessage& message, const std::string& id, WallTime now) {
  if (records_.contains(id)) {
    return false;
  }
  Record record;
  record.sequence = next_sequence_++;
  StoredMessage& stored = record.stored;
  stored.message = {
      .id = id, .body = message.body, .content_type = message.content_type, .attributes = message.attributes};
  core::sent(message, now).put_into(stored);
  stored.created_at = now;
  stored.updated_at = now;
  if (!stored.invisible_until && !message.group.empty()) {
    WallTime& last = last_sent_[message.group];
    stored.message.sent_at = last = core::place_behind(last, now);
  }
  standard_.insert(place(record));
  ids_.emplace(record.sequence, id);
  records_.emplace(id, std::move(record));
  return true;
}

const StoredMessage* SimRecords::find(const std::string& id) const {
  const auto found = records_.find(id);
  return found == records_.end() ? nullptr : &found->second.stored;
}

std::vector<std::pair<SimRecords::Place, const StoredMessage*>> SimRecords::list(Half half,
                                                                                 const std::optional<Place>& after,
                                                                                 std::size_t limit,
                                                                                 bool newest_first) const {
  std::vector<std::pair<Place, const StoredMessage*>> page;
  const std::set<Place>& places = order(half);
  if (newest_first) {
    auto end = std::make_reverse_iterator(after ? places.lower_bound(*after) : places.end());
    for (; end != places.rend() && page.size() < limit; ++end) {
      page.emplace_back(*end, &records_.at(ids_.at(end->second)).stored);
    }
    return page;
  }
  auto at = after ? places.upper_bound(*after) : places.begin();
  for (; at != places.end() && page.size() < limit; ++at) {
    page.emplace_back(*at, &records_.at(ids_.at(at->second)).stored);
  }
  return page;
}

queue::QueueStats SimRecords::stats(Half half, WallTime now) const {
  queue::QueueStats stats;
  for (const Place& place : order(half)) {
    switch (records_.at(ids_.at(place.second)).stored.state(now)) {
      case MessageState::ready:
        ++stats.ready;
        stats.oldest_ready = stats.oldest_ready.value_or(place.first);
        break;
      case MessageState::in_flight:
        ++stats.in_flight;
        break;
      case MessageState::delayed:
        ++stats.delayed;
        break;
    }
  }
  return stats;
}

queue::QueueOverview SimRecords::overview(const queue::OverviewRequest& request, WallTime now) const {
  const Half half = request.half;
  queue::QueueOverview seen;
  seen.counts = stats(half, now);
  queue::ErrorGroups groups(now);
  for (const Place& place : order(half)) {
    const StoredMessage& stored = records_.at(ids_.at(place.second)).stored;
    if (seen.first_ids.size() < request.ids) {
      seen.first_ids.push_back(stored.message.id);
    }
    if (stored.state(now) != MessageState::ready && seen.first_in_flight_ids.size() < request.ids) {
      seen.first_in_flight_ids.push_back(stored.message.id);
    }
    groups.add(stored.message.id, stored.failure);
  }
  if (request.errors > 0) {
    seen.errors = std::move(groups).finish(request.errors, seen.unlisted_errors);
  }
  return seen;
}

queue::ChangeResult SimRecords::change(const std::string& queue, const queue::Change& change, WallTime now) {
  const auto found = records_.find(change.id);
  if (found == records_.end()) {
    return {queue::ChangeStatus::not_found, 0, queue::no_message(queue, change.id)};
  }
  Record& record = found->second;
  auto state = core::MessageState::of(record.stored);
  if (auto end = core::foregone(change, state, queue, now)) {
    return std::move(*end);
  }
  if (const auto held = holds_.find(change.id); held != holds_.end()) {
    state.held_place = held->second;
  }
  const WallTime front = core::place_before(order(state.half).begin()->first, now);
  const core::StateChange made = core::change(change, state, now, front);
  if (made.removes) {
    remove(change.id);
    return {};
  }
  apply(record, made, now);
  return {queue::ChangeStatus::applied, record.stored.version, {}};
}

Result<StoredMessage> SimRecords::edit(const std::string& queue, const std::string& id, std::int64_t version,
                                       std::span<const queue::ContentEdit> edits, WallTime now) {
  const auto found = records_.find(id);
  if (found == records_.end()) {
    return queue::no_message(queue, id);
  }
  StoredMessage& stored = found->second.stored;
  if (stored.version != version) {
    return queue::changed_since(queue, id);
  }
  queue::Message edited = stored.message;
  if (auto applied = queue::apply_edits(edited, edits); !applied) {
    return applied.error();
  }
  if (edited.body.size() > kSimBodyLimit) {
    return Error(ErrorCode::invalid, "a body has at most 400 KiB");
  }
  apply(found->second, core::edit(edited), now);
  stored.message.body = std::move(edited.body);
  stored.message.content_type = std::move(edited.content_type);
  stored.message.attributes = std::move(edited.attributes);
  return stored;
}

queue::PutStatus SimRecords::put(const StoredMessage& stored, queue::PutMode mode) {
  if (records_.contains(stored.message.id)) {
    if (mode == queue::PutMode::insert) {
      return queue::PutStatus::exists;
    }
    remove(stored.message.id);
  }
  Record record;
  record.stored = stored;
  record.sequence = next_sequence_++;
  order(stored.half).insert(place(record));
  ids_.emplace(record.sequence, stored.message.id);
  records_.emplace(stored.message.id, std::move(record));
  return queue::PutStatus::written;
}

bool SimRecords::remove(const std::string& id) {
  const auto found = records_.find(id);
  if (found == records_.end()) {
    return false;
  }
  holds_.erase(id);
  order(found->second.stored.half).erase(place(found->second));
  ids_.erase(found->second.sequence);
  records_.erase(found);
  return true;
}

std::size_t SimRecords::take_away(Half half, WallTime until, WallTime now) {
  std::size_t taken = 0;
  for (const Place& place : order(half)) {
    StoredMessage& stored = records_.at(ids_.at(place.second)).stored;
    if (stored.received_at) {
      ++stored.version;
      ++stored.message.attempt;
      stored.received_at = now;
      stored.invisible_until = until;
      ++taken;
    }
  }
  return taken;
}

}  // namespace sluice::test
