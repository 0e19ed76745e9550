#include "host/stores/leased/leased_source.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "base/timestamp.hpp"
#include "dynamo/item_write.hpp"
#include "host/queue/message.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/table_clock.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {
namespace {

// So many records are looked at where turns go by group, which may hide behind one another.
constexpr std::int64_t kLookInTurns = 1'000;
constexpr std::int64_t kLeastLook = 25;
constexpr int kMostPages = 10;
constexpr int kMaxRounds = 4;
constexpr std::size_t kMostInTransaction = 99;  // beside the check of the owner
constexpr std::size_t kGroupsRemembered = 10'000;
constexpr owned::Backlog::Bounds kNoBounds{std::numeric_limits<std::size_t>::max(),
                                           std::numeric_limits<std::size_t>::max()};

/// Claims for those who own no shard. Thread-safe.
class DirectClaimer {
 public:
  DirectClaimer(LeasedQueue& queue, Half half) : queue_(queue), parts_(queue.parts), place_(queue.place), half_(half) {}

  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) {
    SLUICE_PASS_ON(parts_.clock.be_sure(place_, request.visibility / 2, deadline));
    if (request.rules.max_in_flight > 0) {
      return Error(ErrorCode::invalid, "queue '" + place_.queue +
                                           "' lies in a leased table, where nobody counts what is in "
                                           "flight; take max_in_flight away, or start a host, which counts its own");
    }
    SLUICE_TRY(shards, queue_.shards.get(deadline));
    Attempt attempt;
    bool again = request.max > 0;
    for (int round = 0; again && round < kMaxRounds; ++round) {
      SLUICE_TRY(all, claim_once(shards->most_ever, request, attempt, deadline));
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

 private:
  using Records = std::vector<owned::Found>;
  /// A shard that nobody owns, as far as it has been read.
  struct Shard {
    std::uint32_t number = 0;
    std::int64_t epoch = 0;  ///< of its ownership item; 0: nothing is written down
    Records records{};
  };

  struct Unowned {
    ClaimRules rules;  ///< as the strictest of whoever has claimed wants it
    std::vector<Shard> shards{};
    std::set<std::string> held{};  ///< groups that wait for an operator
  };

  struct Attempt {
    std::vector<Delivery> deliveries;
    std::map<std::string, std::size_t> turns;  ///< in which order they were chosen, by id
    std::optional<Duration> next_due;
    std::optional<Error> error;
  };

  // From the head, strongly consistent, so that the first of a group is the first. Of each priority no more than may be
  // wanted: what follows within it cannot come before.
  dynamo::Result<Records> read(std::uint32_t shard, const ClaimRequest& request, bool in_turns,
                               Deadline deadline) const {
    const WallTime now = parts_.clock.wall_now();
    const auto enough =
        in_turns ? kLookInTurns
                 : std::max(kLeastLook, static_cast<std::int64_t>(std::min<std::size_t>(request.max, 500)) * 2);
    auto query = range_query(place_.table, partition_of(place_.queue, half_, shard),
                             first_sort_key(Priority::critical, {}), last_sort_key(Priority::low, kEndOfTime), true);
    query.limit = enough;
    Records found;
    std::int64_t due = 0;  // of the priority that is being read
    for (int pages = 0; pages < kMostPages; ++pages) {
      SLUICE_TRY(page, parts_.client.query(query, deadline));
      std::string last;
      for (dynamo::Item& item : page->items) {
        const owned::Found& one = found.emplace_back(found_of(std::move(item)));
        if (!last.empty() && last.front() != one.sort.front()) {
          due = 0;
        }
        last = one.sort;
        due += one.is_due(now) ? 1 : 0;
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
    return found;
  }

  // What lies in shards that nobody owns.
  Result<Unowned> read_unowned(std::uint32_t shards, const ClaimRequest& request, Deadline deadline) const {
    const std::string owners = ownership_partition(place_.queue, half_);
    SLUICE_TRY(items, table::checked(place_, read_partition(parts_.client, place_.table, owners, true, deadline)));
    const OwnershipPage page = decode_ownership(*items);
    if (request.rules.order == Order::group && !page.ordered) {
      parts_.client.write(ordered_mark(place_, half_), deadline);  // the next claim tries again
    }
    Unowned unowned{.rules = request.rules};
    if (page.ordered && unowned.rules.order == Order::none) {
      unowned.rules.order = Order::group;
    }
    const bool in_turns = unowned.rules.fair || unowned.rules.order != Order::none;
    for (std::uint32_t number = 0; number < shards; ++number) {
      const Ownership owned = page.of(number);
      if (!owned.owner.empty()) {
        continue;
      }
      Shard& shard = unowned.shards.emplace_back(Shard{.number = number, .epoch = owned.epoch});
      SLUICE_TRY(records, table::checked(place_, read(number, request, in_turns, deadline)));
      shard.records = std::move(*records);
      if (half_ == Half::standard && (page.ordered || unowned.rules.order == Order::group)) {
        SLUICE_TRY(groups, table::checked(place_, read_held_groups(parts_.client, place_, number, deadline)));
        unowned.held.merge(*groups);
      }
    }
    return unowned;
  }

  // Puts what may be handed out among what waits. A group that has something out waits as one does that is held.
  void fill(owned::Backlog& backlog, Unowned& unowned, Attempt& attempt) const {
    const table::Moment now = parts_.now();
    backlog.rules(unowned.rules, now.wall);
    std::set<std::string> busy;  // groups of what was read that cannot go on
    for (Shard& shard : unowned.shards) {
      backlog.take_part(shard.number, 0, now.wall);
      backlog.read(shard.number, {.frontier = {.settled = "~"}});  // of what was read nothing can be missing
      for (owned::Found& one : shard.records) {
        if (!one.odd.empty()) {
          continue;
        }
        if (!one.is_due(now.wall)) {
          const Duration wait = one.due_at() - now.wall + Duration(1);
          attempt.next_due = std::min(attempt.next_due.value_or(Duration::max()), wait);
        }
        const bool in_flight = one.state.is_in_flight(now.wall);
        if (in_flight || unowned.held.contains(one.state.group)) {
          busy.insert(one.state.group);
        }
        if (!in_flight && one.due() <= now.wall) {
          backlog.admit(shard.number, std::move(one), {.began = now.steady, .consistent = true, .now = now.wall});
        }
      }
    }
    if (unowned.rules.order == Order::queue && !busy.empty()) {
      busy.insert(std::string());  // all go one after the other
    }
    if (!unowned.shards.empty()) {
      backlog.hold(unowned.shards.front().number, std::move(busy), now.wall);
    }
  }

  std::vector<owned::Entry*> choose(owned::Backlog& backlog, const ClaimRequest& request, WallTime now)
      SLUICE_REQUIRES(mutex_) {
    last_served_ = std::max(last_served_ + Duration(1), now);
    const auto claim =
        backlog.take({.max = request.max, .bytes = request.bytes, .suspects = request.suspects}, last_served_);
    for (const owned::Entry* one : claim.entries) {
      last_served_ += Duration(1);
      if (!one->state.group.empty() && turns_.served.insert_or_assign(one->state.group, last_served_).second) {
        served_order_.push_back(one->state.group);
      }
    }
    turns_.priorities.clear();
    while (served_order_.size() > kGroupsRemembered) {
      turns_.served.erase(served_order_.front());
      served_order_.pop_front();
    }
    return claim.entries;
  }

  /// One look and what it brings. False: some of what was chosen has gone to somebody else.
  Result<bool> claim_once(std::uint32_t shards, const ClaimRequest& request, Attempt& attempt, Deadline deadline) {
    SLUICE_TRY(unowned, read_unowned(shards, request, deadline));
    attempt.next_due.reset();
    std::optional<owned::Backlog> backlog;  // of what is chosen, until that has been claimed
    std::vector<owned::Entry*> chosen;
    {
      const MutexLock lock(mutex_);
      backlog.emplace(kNoBounds, &turns_);
      fill(*backlog, *unowned, attempt);
      chosen = choose(*backlog, request, parts_.clock.wall_now());
    }
    if (chosen.size() == request.max) {
      attempt.next_due.reset();
    }
    for (const owned::Entry* one : chosen) {
      attempt.turns.emplace(id_of(item_of(*one)), attempt.turns.size());
    }
    bool all = true;
    for (const Shard& shard : unowned->shards) {
      std::vector<owned::Entry*> of_shard;
      std::copy_if(chosen.begin(), chosen.end(), std::back_inserter(of_shard),
                   [&](const owned::Entry* one) { return one->part == shard.number; });
      all = claim_of_shard(shard, std::move(of_shard), request, attempt, deadline) && all;
    }
    return all;
  }

  /// False: some of them have gone to somebody else, or cannot be claimed.
  bool claim_of_shard(const Shard& shard, std::vector<owned::Entry*> wanted, const ClaimRequest& request,
                      Attempt& attempt, Deadline deadline) {
    bool all = true;
    while (!wanted.empty()) {
      const std::size_t count = std::min(wanted.size(), kMostInTransaction);
      const table::Moment now = parts_.now();
      const WallTime until = whole_milliseconds(later(now.wall, request.visibility));
      dynamo::TransactWriteRequest claim;
      claim.token = table::transaction_token(place_, parts_.nonces);
      claim.actions.push_back(
          owner_check(place_.table, OwnerFence::of({place_.queue, half_}, shard.number, shard.epoch)));
      const core::ClaimTerms terms{now.wall, until, request.counts};
      for (std::size_t i = 0; i < count; ++i) {
        const owned::Entry& one = *wanted[i];
        claim.actions.push_back(table::request_of(
            update_message(place_.table, {{partition_of(place_.queue, half_, one.part), one.sort}, one.state.version},
                           parts_.nonces.next(), now.wall, attributes_of(core::claim(one.state, terms), false))));
      }
      const auto answer = parts_.client.transact(claim, deadline);
      if (answer) {
        for (std::size_t i = 0; i < count; ++i) {
          attempt.deliveries.push_back(deliver(*wanted[i], request, now, until));
        }
        wanted.erase(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(count));
        continue;
      }
      all = false;
      const auto& reasons = answer.error().cancellation_reasons;
      if (reasons.size() != claim.actions.size()) {
        attempt.error = store_error(place_, answer.error());
        return false;
      }
      if (reasons.front().stood_in_the_way()) {
        return false;  // a host has taken the shard
      }
      // What others have taken or changed meanwhile is left to them.
      std::vector<owned::Entry*> left;
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const bool taken = i < count && reasons[i + 1].stood_in_the_way();
        if (!taken) {
          left.push_back(wanted[i]);
        }
      }
      if (left.size() == wanted.size()) {
        attempt.error = store_error(place_, answer.error());
        return false;
      }
      wanted = std::move(left);
    }
    return all;
  }

  Delivery deliver(const owned::Entry& one, const ClaimRequest& request, table::Moment now, WallTime until) {
    Delivery delivery;
    delivery.suspect = one.state.is_suspect();
    delivery.message = decode_record(item_of(one), half_).message;
    owned::Out out{.spot = one.spot(),
                   .id = delivery.message.id,
                   .holds_group = one.holds_group,
                   .state = one.state,
                   .counted = true};
    core::apply(core::claim(one.state, {now.wall, until, request.counts}), out.state);
    out.state.checkpoint.clear();  // it is on the delivery, and nothing asks for it here
    delivery.message.attempt = out.state.receives;
    delivery.receipt = {out.id, out.state.version, owned::locator_of(0, one.sort)};
    delivery.leased_until = table::until(now.steady, request.visibility);
    delivery.invisible_until = until;
    queue_.writer(half_).outs.remember(delivery.receipt, std::move(out));
    return delivery;
  }

  // Fixed after construction.
  LeasedQueue& queue_;
  const table::StoreParts& parts_;
  const table::QueueTable& place_;
  const Half half_;

  Mutex mutex_;
  // Guarded by mutex_.
  owned::Backlog::Turns turns_ SLUICE_GUARDED_BY(mutex_);
  std::deque<std::string> served_order_ SLUICE_GUARDED_BY(mutex_);
  WallTime last_served_ SLUICE_GUARDED_BY(mutex_){};
};

class LeasedSource final : public Source {
 public:
  LeasedSource(OwnedTable& table, OwnedHalf& half, LeasedQueue& queue, Doorbell& doorbell)
      : table_(table), half_(half), queue_(queue), direct_(queue, half.address().half), doorbell_(doorbell) {}
  ~LeasedSource() override { LeasedSource::stop(); }

  const SourceTraits& traits() const override { return kLeasedTraits; }

  void start(SourceEvents events) override {
    auto subscription = doorbell_.subscribe(half_.address(), [this, ready = events.on_ready] {
      half_.rung();
      if (ready) {
        ready();
      }
    });
    const auto started = events.by_call ? std::nullopt : std::optional(table_.start(half_, std::move(events)));
    const MutexLock lock(mutex_);
    SLUICE_ASSERT(!number_);
    number_ = started;
    std::swap(subscription_, subscription);
  }

  void stop() override {
    Doorbell::Subscription ended;
    std::uint32_t number = 0;
    {
      const MutexLock lock(mutex_);
      std::swap(subscription_, ended);
      if (!number_ || std::exchange(stopped_, true)) {
        return;
      }
      number = *number_;
    }
    table_.stop(half_, number);
  }

  Result<Claimed> claim(const ClaimRequest& request, Deadline deadline) override {
    std::optional<std::uint32_t> number;
    {
      const MutexLock lock(mutex_);
      if (stopped_) {
        return Claimed{};
      }
      number = number_;
    }
    return number ? table_.claim(half_, *number, request, deadline) : direct_.claim(request, deadline);
  }

  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override {
    table_.coordinator().tend(deadline);
    auto results = number() ? half_.settle(completions, deadline) : writer().settle(completions, {}, deadline);
    doorbell_.ring_settled(half_.address(), completions, results);
    table_.coordinator().tend(deadline);  // a shard may be handed over now
    return results;
  }

  // What was claimed directly is its own by its record.
  bool holds(std::uint32_t /*part*/) override { return !number() || half_.holds(); }

  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline) override {
    return number() ? half_.extend(receipts) : writer().extend(receipts, visibility, deadline);
  }

 private:
  std::optional<std::uint32_t> number() {
    const MutexLock lock(mutex_);
    return number_;
  }
  LeasedWriter writer() { return LeasedWriter(queue_, half_.address().half); }

  // Fixed after construction.
  OwnedTable& table_;
  OwnedHalf& half_;
  LeasedQueue& queue_;
  DirectClaimer direct_;
  Doorbell& doorbell_;

  Mutex mutex_;
  bool stopped_ SLUICE_GUARDED_BY(mutex_) = false;
  std::optional<std::uint32_t> number_ SLUICE_GUARDED_BY(mutex_);  ///< among the half's sources, once it is started
  Doorbell::Subscription subscription_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace

OwnedTable::OwnedTable(const owned::OwnershipCoordinator::Settings& settings, const table::StoreParts& parts,
                       const Clock& machine)
    : machine_(machine),
      records_(
          settings.table, parts, machine, [this](const std::string& queue) -> LeasedQueue& { return queue_of(queue); },
          settings.warn),
      coordinator_(settings, records_, machine) {}

OwnedHalf& OwnedTable::half(const HalfSettings& settings, LeasedQueue& queue) {
  const MutexLock lock(mutex_);
  auto& half = halves_[{queue.place.queue, settings.half}];
  if (!half) {
    half = std::make_unique<OfQueue>(settings, queue, coordinator_.lease());
  }
  return half->half;
}

LeasedQueue& OwnedTable::queue_of(const std::string& queue) {
  const MutexLock lock(mutex_);
  return halves_.lower_bound({queue, Half::standard})->second->messages.queue();
}

OwnedTable::OfQueue& OwnedTable::of_queue(const OwnedHalf& half) {
  const MutexLock lock(mutex_);
  return *halves_.at(half.address());
}

std::uint32_t OwnedTable::start(OwnedHalf& half, SourceEvents events) {
  OfQueue& own = of_queue(half);
  ++own.coming;
  const MutexLock alone(own.door);
  --own.coming;
  const std::uint32_t source = half.enter(std::move(events));
  coordinator_.join(half);
  return source;
}

void OwnedTable::stop(OwnedHalf& half, std::uint32_t source) {
  OfQueue& own = of_queue(half);
  const MutexLock alone(own.door);
  // What is still out keeps its shard until it is settled, or until this host's lease has ended.
  const auto in_vain = [&] { return own.coming > 0 || half.figures(machine_.steady_now()).in_flight > 0; };
  if (half.exit(source) && own.coming == 0 && coordinator_.leave(half, in_vain)) {
    coordinator_.forget(half);
  }
}

Result<Claimed> OwnedTable::claim(OwnedHalf& half, std::uint32_t source, const ClaimRequest& request,
                                  Deadline deadline) {
  coordinator_.tend(deadline);
  auto claimed = half.claim(
      source, request, [&](InFlightBound bound) { return coordinator_.announce(bound, deadline); }, deadline);
  if (claimed && claimed->deliveries.empty() && !half.works()) {
    if (const auto trouble = records_.trouble()) {
      return table::store_error(queue_of(half.address().queue).place, *trouble);
    }
  }
  if (const auto due = coordinator_.due_at(); claimed && due && claimed->deliveries.size() < request.max) {
    const Duration wait = std::max(Duration::zero(), Duration(*due - machine_.steady_now()));
    claimed->next_due = std::min(claimed->next_due.value_or(wait), wait);
  }
  return claimed;
}

std::optional<OwnWord> OwnedTable::word_of(const QueueAddress& address) {
  const OwnedHalf* half = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto found = halves_.find(address);
    half = found == halves_.end() ? nullptr : &found->second->half;
  }
  if (half == nullptr || !half->has_sources()) {
    return std::nullopt;
  }
  return OwnWord{.host = coordinator_.host(), .figures = half->figures(machine_.steady_now())};
}

std::unique_ptr<Source> make_leased_source(OwnedTable& table, OwnedHalf& half, LeasedQueue& queue, Doorbell& doorbell) {
  return std::make_unique<LeasedSource>(table, half, queue, doorbell);
}

}  // namespace sluice::queue::leased
