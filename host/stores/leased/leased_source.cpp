#include "host/stores/leased/leased_source.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "base/ranges.hpp"
#include "base/timestamp.hpp"
#include "dynamo/item_write.hpp"
#include "host/queue/message.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/statements.hpp"
#include "host/stores/table/table_clock.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {
namespace {

// So many records are looked at where turns go by group, which may hide behind one another.
constexpr std::size_t kLookInTurns = 1'000;
constexpr std::size_t kLeastLook = 25;
constexpr std::size_t kMostLook = 500;
constexpr int kMostPages = 10;
constexpr int kMaxRounds = 4;
constexpr std::size_t kMostInTransaction = 99;  // beside the check of the owner
constexpr std::size_t kGroupsRemembered = 10'000;
constexpr owned::Backlog::Bounds kNoBounds{std::numeric_limits<std::size_t>::max(),
                                           std::numeric_limits<std::size_t>::max()};

/// Claims for those who own no shard. Thread-safe.
class DirectClaimer {
 public:
  explicit DirectClaimer(LeasedHalf& half)
      : messages_(half.messages),
        queue_(half.queue),
        parts_(queue_.parts),
        place_(queue_.place),
        half_(half.owned.address().half) {}

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
  /// A shard that nobody owns, as far as it has been read.
  struct Shard {
    std::uint32_t number = 0;
    std::int64_t epoch = 0;  ///< of its ownership item; 0: nothing is written down
    std::vector<owned::Found> records{};
    std::string from = first_sort_key(Priority::critical, {});  ///< where reading goes on
    std::size_t due = 0;                                        ///< records of the priority that is being read
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

  // From the heads, strongly consistent, so that the first of a group is the first.
  Result<void> read(std::vector<Shard>& shards, std::size_t enough, Deadline deadline) const {
    auto open = mapped(shards, [](Shard& shard) { return &shard; });
    for (int pages = 0; pages < kMostPages && !open.empty(); ++pages) {
      const auto queries = mapped(open, [enough](const Shard* shard) {
        return owned::MessageRecords::Query{
            shard->number,
            {.from = shard->from, .to = last_sort_key(Priority::low, kEndOfTime), .consistent = true, .limit = enough}};
      });
      auto answers = messages_.read(queries, deadline);
      std::vector<Shard*> left;
      for (std::size_t i = 0; i < open.size(); ++i) {
        SLUICE_PASS_ON(answers[i]);
        if (take_up(*open[i], *std::move(answers[i]), enough)) {
          left.push_back(open[i]);
        }
      }
      open = std::move(left);
    }
    return {};
  }

  // Of each priority no more than may be wanted: what follows within it cannot come before. True: there is more.
  bool take_up(Shard& shard, owned::MessageRecords::Page page, std::size_t enough) const {
    const WallTime now = parts_.clock.wall_now();
    for (owned::Found& one : page.found) {
      const bool of_next = !shard.records.empty() && shard.records.back().sort.front() != one.sort.front();
      shard.due = (of_next ? 0 : shard.due) + (one.is_due(now) ? 1 : 0);
      shard.records.push_back(std::move(one));
    }
    const std::string& last = page.stopped_at;
    if (last.empty()) {
      return false;
    }
    if (shard.due < enough && due_of(last) <= now) {
      shard.from = owned::beyond(last);
      return true;
    }
    shard.from = std::string(1, static_cast<char>(last.front() + 1));  // the next priority
    return last.front() != last_sort_key(Priority::low, now).front();
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
    for (std::uint32_t number = 0; number < shards; ++number) {
      if (const Ownership owned = page.of(number); owned.owner.empty()) {
        unowned.shards.push_back({.number = number, .epoch = owned.epoch});
      }
    }
    const bool in_turns = unowned.rules.fair || unowned.rules.order != Order::none;
    SLUICE_PASS_ON(read(unowned.shards,
                        in_turns ? kLookInTurns : std::max(kLeastLook, std::min(request.max, kMostLook) * 2),
                        deadline));
    const bool may_hold = half_ == Half::standard && (page.ordered || unowned.rules.order == Order::group);
    for (std::size_t i = 0; may_hold && i < unowned.shards.size(); ++i) {
      SLUICE_TRY(groups, messages_.read_holds(unowned.shards[i].number, deadline));
      unowned.held.merge(*groups);
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
      if (!one->state.group.empty()) {
        turns_.served.insert_or_assign(one->state.group, last_served_);
      }
    }
    turns_.priorities.clear();
    if (turns_.served.size() > kGroupsRemembered) {
      turns_.served.clear();
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
      const std::size_t count = table::fitting(std::span(wanted), kMostInTransaction, [](const owned::Entry* one) {
        return table::item_bytes(item_of(*one));
      });
      const table::Moment now = parts_.now();
      const WallTime until = whole_milliseconds(later(now.wall, request.visibility));
      dynamo::TransactWriteRequest claim;
      claim.token = table::transaction_token(place_, parts_.nonces);
      claim.actions.push_back(
          owner_check(place_.table, OwnerFence::of({place_.queue, half_}, shard.number, shard.epoch)));
      const core::ClaimTerms terms{now.wall, until, request.counts};
      for (std::size_t i = 0; i < count; ++i) {
        const owned::Entry& one = *wanted[i];
        claim.actions.push_back(table::request_of(update_of(
            kNames, place_.table, as_read(Place::of(item_of(one)), version_of(item_of(one))),
            {parts_.nonces.next(), now.wall}, attributes_of(kNames, core::claim(one.state, terms), {.marks = false}))));
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
    delivery.message = decode_record(item_of(one)).message;
    owned::Out out = out_of(item_of(one));
    core::apply(core::claim(one.state, {now.wall, until, request.counts}), out.state);
    out.counted = true;
    delivery.message.attempt = out.state.receives;
    delivery.receipt = {out.id, out.state.version, owned::locator_of(0, one.sort)};
    delivery.leased_until = table::until(now.steady, request.visibility);
    delivery.invisible_until = until;
    queue_.writer(half_).outs.remember(delivery.receipt, std::move(out));
    return delivery;
  }

  // Fixed after construction.
  TableMessages& messages_;
  LeasedQueue& queue_;
  const table::StoreParts& parts_;
  const table::QueueTable& place_;
  const Half half_;

  Mutex mutex_;
  // Guarded by mutex_.
  owned::Backlog::Turns turns_ SLUICE_GUARDED_BY(mutex_);
  WallTime last_served_ SLUICE_GUARDED_BY(mutex_){};
};

class LeasedSource final : public Source {
 public:
  explicit LeasedSource(LeasedHalf& half) : half_(half), direct_(half), doorbell_(half.queue.parts.doorbell) {}
  ~LeasedSource() override { LeasedSource::stop(); }

  const SourceTraits& traits() const override { return kLeasedTraits; }

  void start(SourceEvents events) override {
    auto subscription = doorbell_.subscribe(half_.owned.address(), [this, ready = events.on_ready] {
      half_.owned.rung();
      if (ready) {
        ready();
      }
    });
    std::optional<std::uint32_t> started;
    if (!events.by_call) {
      ++half_.coming;
      const MutexLock alone(half_.door);
      --half_.coming;
      started = half_.owned.enter(std::move(events));
      coordinator_.join(half_.owned);
    }
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
    const MutexLock alone(half_.door);
    // What is still out keeps its shard until it is settled, or until this host's lease has ended.
    const auto in_vain = [this] { return half_.coming > 0 || half_.owned.figures().in_flight > 0; };
    if (half_.owned.exit(number) && half_.coming == 0 && coordinator_.leave(half_.owned, in_vain)) {
      coordinator_.forget(half_.owned);
    }
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
    return number ? claim_owned(*number, request, deadline) : direct_.claim(request, deadline);
  }

  std::vector<SettleResult> settle(std::span<const Completion> completions, Deadline deadline) override {
    coordinator_.tend(deadline);
    auto results = number() ? half_.owned.settle(completions, deadline) : writer().settle(completions, {}, deadline);
    doorbell_.ring_settled(half_.owned.address(), completions, results);
    coordinator_.tend(deadline);  // a shard may be handed over now
    return results;
  }

  // What was claimed directly is its own by its record.
  bool holds(std::uint32_t /*part*/) override { return !number() || half_.owned.holds(); }

  std::vector<ExtendResult> extend(std::span<const Receipt> receipts, Duration visibility, Deadline deadline) override {
    return number() ? half_.owned.extend(receipts) : writer().extend(receipts, visibility, deadline);
  }

 private:
  std::optional<std::uint32_t> number() {
    const MutexLock lock(mutex_);
    return number_;
  }
  LeasedWriter writer() { return LeasedWriter(half_.queue, half_.owned.address().half); }

  Result<Claimed> claim_owned(std::uint32_t number, const ClaimRequest& request, Deadline deadline) {
    coordinator_.tend(deadline);
    const auto announce = [&](InFlightBound bound) { return coordinator_.announce(bound, deadline); };
    auto claimed = half_.owned.claim(number, request, announce, deadline);
    if (claimed && claimed->deliveries.empty() && !half_.owned.works()) {
      if (const auto trouble = half_.table.records.trouble()) {
        return table::store_error(half_.queue.place, *trouble);
      }
    }
    if (const auto due = coordinator_.due_at(); claimed && due && claimed->deliveries.size() < request.max) {
      const Duration wait = std::max(Duration::zero(), Duration(*due - half_.queue.parts.clock.steady_now()));
      claimed->next_due = std::min(claimed->next_due.value_or(wait), wait);
    }
    return claimed;
  }

  // Fixed after construction.
  LeasedHalf& half_;
  owned::OwnershipCoordinator& coordinator_ = half_.table.coordinator;
  DirectClaimer direct_;
  Doorbell& doorbell_;

  Mutex mutex_;
  bool stopped_ SLUICE_GUARDED_BY(mutex_) = false;
  std::optional<std::uint32_t> number_ SLUICE_GUARDED_BY(mutex_);  ///< among the half's sources, once it is started
  Doorbell::Subscription subscription_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Source> make_leased_source(LeasedHalf& half) { return std::make_unique<LeasedSource>(half); }

}  // namespace sluice::queue::leased
