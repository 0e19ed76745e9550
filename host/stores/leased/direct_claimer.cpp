#include "host/stores/leased/direct_claimer.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/timestamp.hpp"
#include "dynamo/transaction.hpp"
#include "host/queue/message.hpp"
#include "host/stores/leased/leased_writes.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/table_clock.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {

using dynamo::AttributeValue;
using dynamo::TransactAction;

namespace {

// So many records are looked at where turns go by group, which may hide behind one another.
constexpr std::int64_t kLookInTurns = 1'000;
constexpr std::int64_t kLeastLook = 25;
constexpr int kMostPages = 10;

// In which order messages of one line go: as they were sent.
bool goes_later(const DirectCandidate* a, const DirectCandidate* b) {
  const auto position = [](const DirectCandidate& one) {
    return std::tuple(one.candidate.due, one.candidate.place.sort, one.shard);
  };
  return position(*a) > position(*b);
}

}  // namespace

// Empty: it has its turn by itself.
std::string DirectChoice::line_of(const DirectCandidate& one, const Asked& asked) const {
  const ClaimRules& rules = asked.request.rules;
  if (rules.order == Order::queue) {
    return "queue";
  }
  const bool by_group = rules.order == Order::group || rules.fair || asked.ordered;
  return by_group && !one.candidate.group.empty() ? "group " + one.candidate.group : std::string();
}

void DirectChoice::offer(DirectCandidate& one, WallTime at) {
  if (offered_.emplace(one.spot(), &one).second) {
    turns_.add(one.candidate.priority, {at, one.spot()});
  }
}

// The next one of a line that is due. Where the order is kept, it is the first one or none.
void DirectChoice::offer_next(const std::string& name, Line& line, const Asked& asked) {
  const bool strict = asked.request.rules.order != Order::none || asked.ordered;
  if (strict && (line.busy || line.waiting.empty() || !line.waiting.back()->candidate.is_due(asked.now))) {
    return;
  }
  while (!line.waiting.empty() && !line.waiting.back()->candidate.is_due(asked.now)) {
    line.waiting.pop_back();
  }
  if (line.waiting.empty()) {
    return;
  }
  DirectCandidate& next = *line.waiting.back();
  line.waiting.pop_back();
  const auto served = served_.find(name);
  offer(next, served == served_.end() ? next.candidate.due : served->second);
  line.busy = strict;
}

DirectChoice::Choice DirectChoice::choose(std::vector<DirectCandidate>& found, const Asked& asked) {
  turns_.clear();
  offered_.clear();
  last_served_ = std::max(last_served_, asked.now);
  Choice choice;
  std::map<std::string, Line> lines;
  for (DirectCandidate& one : found) {
    const Candidate& candidate = one.candidate;
    if (!candidate.is_due(asked.now)) {
      const Duration wait = candidate.due_at() - asked.now + Duration(1);
      choice.next_due = std::min(choice.next_due.value_or(Duration::max()), wait);
    }
    const std::string name = line_of(one, asked);
    if (name.empty()) {
      if (candidate.is_due(asked.now)) {
        offer(one, candidate.due);
      }
      continue;
    }
    Line& line = lines[name];
    line.busy = line.busy || one.state().is_in_flight(asked.now) || asked.held.contains(candidate.group);
    if (candidate.due <= asked.now && !one.state().is_in_flight(asked.now)) {
      line.waiting.push_back(&one);
    }
  }
  for (auto& [name, line] : lines) {
    std::sort(line.waiting.begin(), line.waiting.end(), goes_later);
    offer_next(name, line, asked);
  }
  std::size_t bytes = 0;
  const ClaimRequest& request = asked.request;
  while (choice.chosen.size() < request.max && (choice.chosen.empty() || bytes < request.bytes)) {
    const auto turn = turns_.next(request.rules.weights, [&](const owned::Spot& spot) {
      return !offered_.at(spot)->state().is_suspect() || (request.suspects && choice.chosen.empty());
    });
    if (!turn) {
      break;
    }
    DirectCandidate& one = *offered_.at(turn->spot);
    turns_.remove(one.candidate.priority, *turn);
    choice.chosen.push_back(&one);
    bytes += table::item_bytes(one.item);
    if (const std::string name = line_of(one, asked); !name.empty()) {
      last_served_ += Duration(1);
      if (served_.insert_or_assign(name, last_served_).second) {
        served_order_.push_back(name);
      }
      offer_next(name, lines[name], asked);
    }
    if (one.state().is_suspect()) {
      break;
    }
  }
  while (served_order_.size() > kGroupsRemembered) {
    served_.erase(served_order_.front());
    served_order_.pop_front();
  }
  return choice;
}

struct DirectClaimer::Attempt {
  std::vector<Delivery> deliveries;
  std::map<std::string, std::size_t> turns;  ///< in which order they were chosen, by id
  std::optional<Duration> next_due;
  std::optional<Error> error;
};

dynamo::Result<DirectClaimer::Ownerships> DirectClaimer::look(std::uint32_t shards, Deadline deadline) const {
  const auto items =
      read_partition(parts_.client, place_.table, ownership_partition(place_.queue, half_), true, deadline);
  SLUICE_PASS_ON(items);
  const OwnershipPage page = decode_ownership(*items);
  Ownerships standing{.free = {}, .ordered = page.ordered};
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    const auto row = page.rows.find(shard);
    if (row == page.rows.end()) {
      standing.free.push_back({shard, std::nullopt});
    } else if (row->second.value.owner.empty()) {
      standing.free.push_back({shard, row->second.value.epoch});
    }
  }
  return standing;
}

// From the head, strongly consistent, so that the first of a group is the first. Of each priority no more than may be
// wanted: what follows within it cannot come before.
dynamo::Result<void> DirectClaimer::read(const Shard& shard, const ClaimRequest& request, bool in_turns,
                                         std::vector<DirectCandidate>& found, Deadline deadline) const {
  const WallTime now = parts_.clock.wall_now();
  const auto enough =
      in_turns ? kLookInTurns
               : std::max(kLeastLook, static_cast<std::int64_t>(std::min<std::size_t>(request.max, 500)) * 2);
  auto query = range_query(place_.table, partition_of(place_.queue, half_, shard.number),
                           first_sort_key(Priority::critical, {}), last_sort_key(Priority::low, kEndOfTime), true);
  query.limit = enough;
  std::int64_t due = 0;  // of the priority that is being read
  for (int pages = 0; pages < kMostPages; ++pages) {
    SLUICE_TRY(page, parts_.client.query(query, deadline));
    std::string last;
    for (dynamo::Item& item : page->items) {
      DirectCandidate one{.shard = shard.number, .candidate = Candidate::of(item)};
      if (!last.empty() && last.front() != one.candidate.place.sort.front()) {
        due = 0;
      }
      last = one.candidate.place.sort;
      due += one.candidate.is_due(now) ? 1 : 0;
      if (one.candidate.odd.empty()) {
        one.item = std::move(item);
        found.push_back(std::move(one));
      }
    }
    if (page->last_evaluated_key.empty()) {
      break;
    }
    query.exclusive_start_key = std::move(page->last_evaluated_key);
    if (last.empty() || (due < enough && due_of(last) <= now)) {
      continue;
    }
    if (last.front() == last_sort_key(Priority::low, now).front()) {
      break;
    }
    // On to the next priority.
    query.exclusive_start_key.clear();
    query.values.insert_or_assign(":from", std::string(1, static_cast<char>(last.front() + 1)));
    due = 0;
  }
  return {};
}

Result<Claimed> DirectClaimer::claim(const ClaimRequest& request, Deadline deadline) {
  SLUICE_PASS_ON(parts_.clock.be_sure(place_, request.visibility / 2, deadline));
  if (request.rules.max_in_flight > 0) {
    return Error(ErrorCode::invalid, "queue '" + place_.queue +
                                         "' lies in a leased table, where nobody counts what is in "
                                         "flight; take max_in_flight away, or start a host, which counts its own");
  }
  SLUICE_TRY(shards, shards_(deadline));
  Attempt attempt;
  bool again = request.max > 0;
  for (int round = 0; again && round < kMaxRounds; ++round) {
    SLUICE_TRY(all, claim_once(*shards, request, attempt, deadline));
    again = !*all && attempt.deliveries.empty() && !attempt.error;
  }
  if (attempt.deliveries.empty() && attempt.error) {
    return *attempt.error;
  }
  std::sort(attempt.deliveries.begin(), attempt.deliveries.end(), [&](const Delivery& left, const Delivery& right) {
    return attempt.turns.at(left.receipt.id) < attempt.turns.at(right.receipt.id);
  });
  return Claimed{std::move(attempt.deliveries), attempt.next_due};
}

Result<bool> DirectClaimer::claim_once(std::uint32_t shards, const ClaimRequest& request, Attempt& attempt,
                                       Deadline deadline) {
  const auto standing = look(shards, deadline);
  if (!standing) {
    return store_error(place_, standing.error());
  }
  const bool ordered = standing->ordered || request.rules.order == Order::group;
  if (request.rules.order == Order::group && !standing->ordered) {
    parts_.client.put_item(ordered_mark(place_, half_), deadline);  // the next claim tries again
  }
  std::vector<DirectCandidate> found;
  DirectChoice::Asked asked{.request = request, .ordered = ordered, .now = parts_.clock.wall_now()};
  const bool in_turns = ordered || request.rules.fair || request.rules.order != Order::none;
  for (const Shard& shard : standing->free) {
    if (const auto answer = read(shard, request, in_turns, found, deadline); !answer) {
      return store_error(place_, answer.error());
    }
    if (ordered && half_ == Half::standard) {
      auto groups = read_held_groups(parts_.client, place_, shard.number, deadline);
      if (!groups) {
        return store_error(place_, groups.error());
      }
      asked.held.merge(*groups);
    }
  }
  DirectChoice::Choice choice;
  {
    const MutexLock lock(mutex_);
    choice = choice_.choose(found, asked);
  }
  attempt.next_due = choice.chosen.size() < request.max ? choice.next_due : std::nullopt;
  for (const DirectCandidate* one : choice.chosen) {
    attempt.turns.emplace(one->candidate.id, attempt.turns.size());
  }
  bool all = true;
  for (const Shard& shard : standing->free) {
    std::vector<DirectCandidate*> of_shard;
    std::copy_if(choice.chosen.begin(), choice.chosen.end(), std::back_inserter(of_shard),
                 [&](const DirectCandidate* one) { return one->shard == shard.number; });
    all = claim_of_shard(shard, std::move(of_shard), request, attempt, deadline) && all;
  }
  return all;
}

bool DirectClaimer::claim_of_shard(const Shard& shard, std::vector<DirectCandidate*> wanted,
                                   const ClaimRequest& request, Attempt& attempt, Deadline deadline) {
  bool all = true;
  while (!wanted.empty()) {
    const std::size_t count = std::min(wanted.size(), kMostInTransaction);
    const table::Moment now = parts_.now();
    const WallTime until = whole_milliseconds(later(now.wall, request.visibility));
    dynamo::TransactWriteRequest claim;
    claim.token = table::transaction_token(place_, parts_.nonces.next());
    TransactAction check{.kind = TransactAction::Kind::check, .table = place_.table};
    check.item_or_key = Place{ownership_partition(place_.queue, half_), ownership_sort(shard.number)}.key();
    check.names.emplace("#o", shard.epoch ? attribute::kEpoch : attribute::kPartition);
    check.condition = shard.epoch ? "#o = :e" : "attribute_not_exists(#o)";
    if (shard.epoch) {
      check.values.emplace(":e", AttributeValue::number(*shard.epoch));
    }
    claim.actions.push_back(std::move(check));
    const core::ClaimTerms terms{now.wall, until, request.counts};
    for (std::size_t i = 0; i < count; ++i) {
      const DirectCandidate& one = *wanted[i];
      claim.actions.push_back(table::action_of(
          update_message(place_.table, {one.candidate.place, one.candidate.version}, parts_.nonces.next(), now.wall,
                         attributes_of(core::claim(one.state(), terms), false))));
    }
    const auto answer = parts_.client.transact_each(std::span(&claim, 1), deadline).front();
    if (!answer.error) {
      for (std::size_t i = 0; i < count; ++i) {
        attempt.deliveries.push_back(deliver(*wanted[i], request, now, until));
      }
      wanted.erase(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(count));
      continue;
    }
    all = false;
    if (answer.reasons.size() != claim.actions.size()) {
      attempt.error = store_error(place_, *answer.error);
      return false;
    }
    if (answer.reasons.front().code != "None" && !answer.reasons.front().code.empty()) {
      return false;  // a host has taken the shard
    }
    // What others have taken or changed meanwhile is left to them.
    std::vector<DirectCandidate*> left;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const bool taken = i < count && !answer.reasons[i + 1].code.empty() && answer.reasons[i + 1].code != "None";
      if (!taken) {
        left.push_back(wanted[i]);
      }
    }
    if (left.size() == wanted.size()) {
      attempt.error = store_error(place_, *answer.error);
      return false;
    }
    wanted = std::move(left);
  }
  return all;
}

Delivery DirectClaimer::deliver(const DirectCandidate& one, const ClaimRequest& request, table::Moment now,
                                WallTime until) {
  StoredMessage record = decode_record(one.item, half_);
  state_.failures.note(one.candidate.id, record.failure);
  Delivery delivery;
  delivery.suspect = one.state().is_suspect();
  delivery.message = std::move(record.message);
  delivery.message.attempt = core::receives_when_claimed(one.state(), request.counts);
  delivery.receipt = {one.candidate.id, one.candidate.version + 1, mark_of(one.candidate.place)};
  delivery.leased_until = table::until(now.steady, request.visibility);
  delivery.invisible_until = until;
  remember(delivery.receipt, {.place = one.candidate.place,
                              .version = one.candidate.version + 1,
                              .receive_count = delivery.message.attempt,
                              .counted = true,
                              .marked = delivery.suspect,
                              .aliased = !one.candidate.own_id.empty(),
                              .held_group = one.candidate.hold ? one.candidate.group : std::string()});
  return delivery;
}

void DirectClaimer::remember(const Receipt& receipt, Held held) {
  const MutexLock lock(mutex_);
  const HeldKey key(receipt.id, receipt.version, receipt.locator);
  if (held_.insert_or_assign(key, std::move(held)).second) {
    held_order_.push_back(key);
  }
  while (held_order_.size() > kHeldRemembered) {
    held_.erase(held_order_.front());
    held_order_.pop_front();
  }
}

std::optional<Held> DirectClaimer::recall(const Receipt& receipt) {
  const MutexLock lock(mutex_);
  const auto found = held_.find({receipt.id, receipt.version, receipt.locator});
  return found == held_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<SettleResult> DirectClaimer::settle(std::span<const Completion> completions, Deadline deadline) {
  std::vector<std::optional<Held>> held;
  held.reserve(completions.size());
  for (const Completion& completion : completions) {
    held.push_back(recall(completion.receipt));
  }
  return LeasedWriter(parts_, place_, half_, state_).settle(completions, held, deadline);
}

std::vector<ExtendResult> DirectClaimer::extend(std::span<const Receipt> receipts, Duration visibility,
                                                Deadline deadline) {
  std::vector<std::optional<Held>> held;
  held.reserve(receipts.size());
  for (const Receipt& receipt : receipts) {
    held.push_back(recall(receipt));
  }
  auto results = LeasedWriter(parts_, place_, half_, state_).extend(receipts, held, visibility, deadline);
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].status == SettleStatus::applied && held[i]) {
      remember(results[i].receipt, *held[i]);
    }
  }
  return results;
}

}  // namespace sluice::queue::leased
