#include "host/stores/leased/owned_half.hpp"

#include <algorithm>
#include <utility>

#include "host/queue/message.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/read_item.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {
namespace {

constexpr Duration kBusy = std::chrono::seconds(5);
constexpr int kLocatorShift = 32;
constexpr std::size_t kMostLost = 10'000;
constexpr std::size_t kLeastPage = 100;
constexpr std::size_t kMostPage = 1000;
// The groups that are held are read again, less often where they are many.
constexpr Duration kHoldsAgain = std::chrono::seconds(1);
constexpr std::size_t kHoldsPage = 100;
// Of a claim that has enough already.
constexpr std::size_t kReadsAhead = 2;
// Of one that has not.
constexpr std::size_t kSideBySide = 16;
// For a page of a shard that was throttled: a slow answer's time, in which hardly a retry falls.
constexpr Duration kProbe = std::chrono::milliseconds(250);
constexpr Duration kFirstDeadLook = std::chrono::seconds(3);
constexpr Duration kDeadLookSoon = std::chrono::seconds(2);
constexpr Duration kDeadFailurePause = std::chrono::seconds(5);
constexpr std::size_t kDeadReads = 16;  // at once

std::string sort_of(const dynamo::Item& key) {
  const auto* sort = dynamo::find<std::string>(key, attribute::kSort);
  return sort == nullptr ? std::string() : *sort;
}

// Whatever has become of the shard since: who has done a message may take it away, as long as it is as it was.
bool is_plain_ack(const Completion& completion) {
  return completion.action == CompletionAction::remove && !completion.effects;
}

}  // namespace

OwnedHalf::OwnedHalf(Settings settings, LeasedQueue& queue, owned::HostLease& lease, const Clock& machine)
    : settings_(std::move(settings)),
      queue_(queue),
      parts_(queue.parts),
      place_(queue.place),
      address_{place_.queue, settings_.half},
      lease_(lease),
      machine_(machine),
      locator_base_(static_cast<std::int64_t>((queue.random.next() >> 33U) | 1U) << kLocatorShift),
      name_(owned::half_name(address_)),
      remarks_(settings_.warn) {}

std::uint32_t OwnedHalf::enter(SourceEvents events) {
  const MutexLock lock(mutex_);
  sources_.emplace(++entered_, std::make_shared<owned::EventGate>(std::move(events)));
  return entered_;
}

bool OwnedHalf::exit(std::uint32_t source) {
  std::shared_ptr<owned::EventGate> gate;
  bool last = false;
  {
    const MutexLock lock(mutex_);
    const auto found = sources_.find(source);
    if (found == sources_.end()) {
      return false;
    }
    gate = std::move(found->second);
    sources_.erase(found);
    asked_.erase(source);
    last = sources_.empty();
  }
  gate->close();
  return last;
}

bool OwnedHalf::has_sources() const {
  const MutexLock lock(mutex_);
  return !sources_.empty();
}

void OwnedHalf::rung() {
  const MutexLock lock(mutex_);
  for (auto& [number, shard] : shards_) {
    shard.reader.rung(machine_.steady_now());
    shard.holds_read = shard.holds_read && backlog_.of(number).held.empty();
  }
}

void OwnedHalf::tell(const News& news) {
  std::map<std::uint32_t, std::shared_ptr<owned::EventGate>> sources;
  {
    const MutexLock lock(mutex_);
    sources = sources_;
  }
  for (const auto& [source, gate] : sources) {
    if (const auto lost = news.lost.find(source); lost != news.lost.end()) {
      gate->lost(lost->second);
    }
    if (news.ready) {
      gate->ready();
    }
  }
}

// What the coordinator says and asks.

void OwnedHalf::own(std::span<const ShardHolder::Shard> shards, std::uint32_t all, SteadyTime now) {
  News news;
  {
    const MutexLock lock(mutex_);
    count_ = all;
    std::set<std::uint32_t> gone;
    for (const auto& [number, shard] : shards_) {
      gone.insert(number);
    }
    for (const ShardHolder::Shard& mine : shards) {
      gone.erase(mine.number);
    }
    for (const std::uint32_t number : gone) {
      lose(number, news);
    }
    for (const ShardHolder::Shard& mine : shards) {
      const auto found = shards_.find(mine.number);
      if (found == shards_.end()) {
        gain(mine, now);
        news.ready = true;
      } else if (found->second.closing && !mine.closing) {
        // It stays after all: what was dropped is read anew.
        found->second = Shard{.reader = owned::PartReader(now, true), .number = ++taken_, .dead = found->second.dead};
        backlog_.take_part(mine.number, mine.left, parts_.clock.wall_now());
      }
      Shard& shard = shards_.at(mine.number);
      shard.epoch = mine.epoch;
      if (mine.closing && !std::exchange(shard.closing, true)) {
        backlog_.close_part(mine.number);
      }
    }
  }
  tell(news);
}

// A shard's dead letters are looked at first when the start is over.
void OwnedHalf::gain(const ShardHolder::Shard& shard, SteadyTime now) {
  shards_.insert_or_assign(shard.number, Shard{.reader = owned::PartReader(now, shard.written_before),
                                               .number = ++taken_,
                                               .dead = {.due_at = now + kFirstDeadLook}});
  backlog_.take_part(shard.number, shard.left, parts_.clock.wall_now());
}

void OwnedHalf::lose(std::uint32_t shard, News& news) {
  const auto spots = backlog_.lose_part(shard);
  shards_.erase(shard);
  if (spots.empty()) {
    return;
  }
  const std::set<owned::Spot> gone(spots.begin(), spots.end());
  for (auto& [locator, out] : outs_) {
    if (!out.lost && gone.contains(out.spot)) {
      out.lost = true;
      lost_.push_back(locator);
      news.lost[out.source].push_back({.id = out.id, .version = out.held.version, .locator = locator});
    }
  }
  while (lost_.size() > kMostLost) {
    outs_.erase(lost_.front());
    lost_.pop_front();
  }
}

OwnedHalf::Shard* OwnedHalf::shard_of(std::uint32_t shard, std::uint64_t number) {
  const auto found = shards_.find(shard);
  return found == shards_.end() || found->second.number != number ? nullptr : &found->second;
}

std::optional<InFlightBound> OwnedHalf::left_in(std::uint32_t shard) {
  const MutexLock lock(mutex_);
  if (backlog_.of(shard).out > 0) {
    return std::nullopt;
  }
  return backlog_.left_in(shard);
}

bool OwnedHalf::is_empty(std::uint32_t shard) const {
  const MutexLock lock(mutex_);
  const auto found = shards_.find(shard);
  return found != shards_.end() && backlog_.of(shard).entries == 0 && found->second.reader.found_empty();
}

bool OwnedHalf::busy(SteadyTime now) const {
  const MutexLock lock(mutex_);
  return handed_out_at_ && now < *handed_out_at_ + kBusy;
}

InFlightBound OwnedHalf::in_flight_bound() {
  const MutexLock lock(mutex_);
  return backlog_.in_flight_bound();
}

// Claims.

Result<void> OwnedHalf::check(const ClaimRules& rules) const {
  if (rules.order == Order::queue && count_ > 1) {
    return Error(ErrorCode::invalid, "queue " + address().queue + " has " + std::to_string(count_) +
                                         " shards, which are worked off side by side; to go through it one after the "
                                         "other give it a single shard, or have it on SQLite");
  }
  if (rules.max_in_flight > 0 && rules.max_in_flight < count_) {
    return Error(ErrorCode::invalid,
                 "queue " + address().queue + " has " + std::to_string(count_) +
                     " shards, each of which needs its share of max_in_flight; make that at least " +
                     std::to_string(count_) + ", or give the queue fewer shards");
  }
  return {};
}

ClaimRules OwnedHalf::rules_for(std::uint32_t source, const ClaimRules& asked) {
  const auto strictness = [](const ClaimRules& rules) {
    return rules.order == Order::queue ? 3 : rules.order == Order::group ? 2 : rules.fair ? 1 : 0;
  };
  asked_.insert_or_assign(source, asked);
  ClaimRules rules = asked;
  for (const auto& [other, wanted] : asked_) {
    if (strictness(wanted) > strictness(rules)) {
      rules.order = wanted.order;
      rules.fair = wanted.fair;
    }
  }
  if (strictness(rules) > strictness(asked)) {
    remarks_.say("'" + name_ + "' is handed out by the strictest order that a job of this host asks for; another job " +
                     "asks for less; give both the same order",
                 machine_.steady_now());
  }
  return rules;
}

// Each shard has its share of the limit, so that the hosts keep to it without asking one another.
std::size_t OwnedHalf::budget(const ClaimRequest& request) const {
  if (request.rules.max_in_flight == 0 || count_ == 0) {
    return request.max;
  }
  std::uint64_t share = 0;
  for (const auto& [number, shard] : shards_) {
    share += request.rules.max_in_flight / count_ + (number < request.rules.max_in_flight % count_ ? 1 : 0);
  }
  const std::uint64_t out = backlog_.figures().out;
  return std::min<std::uint64_t>(request.max, share > out ? share - out : 0);
}

void OwnedHalf::follow_rules(std::uint32_t source, const ClaimRules& asked) {
  const ClaimRules rules = rules_for(source, asked);
  if (rules.order != rules_.order && rules.order != Order::none) {
    for (auto& [number, shard] : shards_) {
      shard.holds_read = false;
      if (rules_.order == Order::none) {  // what has been read so far was not read in passes
        shard.reader = owned::PartReader(machine_.steady_now(), true);
        shard.number = ++taken_;
      }
    }
  }
  rules_ = rules;
  backlog_.rules(rules_, parts_.clock.wall_now());
}

Result<Claimed> OwnedHalf::claim(std::uint32_t source, const ClaimRequest& request, const Announce& announce,
                                 Deadline deadline) {
  if (request.rules.order != Order::none) {
    // What was sent before and what after goes by it; where it is not to be had, nothing can be read either.
    static_cast<void>(parts_.clock.be_sure(place_, table::kTimeTolerance, deadline));
  }
  {
    const MutexLock lock(mutex_);
    SLUICE_PASS_ON(check(request.rules));
    follow_rules(source, request.rules);
  }
  if (request.rules.order == Order::group) {
    mark_ordered(deadline);
  }
  read(request, deadline);
  std::size_t most = request.max;
  InFlightBound bound = 0;
  {
    const MutexLock lock(mutex_);
    backlog_.wake(parts_.clock.wall_now());
    const owned::Backlog::Figures known = backlog_.figures();
    most = std::min(budget(request), known.ready + known.size);
    if (most == 0 && request.max > 0 && known.ready > 0) {
      return Error(ErrorCode::over_limit, "queue " + address().queue + " has as many messages in flight as it may");
    }
    most = std::min(std::max<std::size_t>(1, most), request.max);
    bound = backlog_.expected(most);
  }
  // What cannot be announced now does not go out. If that is all, what the next one needs is announced.
  announce(bound);
  Claimed claimed;
  for (bool again = true; again;) {
    const bool may_start = lease_.may_start();
    std::optional<InFlightBound> refused;
    {
      const MutexLock lock(mutex_);
      if (may_start) {
        refused = take(source, request, most, claimed.deliveries);
      }
      if (claimed.deliveries.size() < request.max) {
        claimed.next_due = next_due(parts_.now());
      }
    }
    again = claimed.deliveries.empty() && refused && announce(*refused);
  }
  write_claims(claimed.deliveries, deadline);
  // A claim that finds nothing because nothing can be read would pass for one of an empty queue.
  const MutexLock lock(mutex_);
  const auto reads = [](const auto& each) { return !each.second.trouble; };
  if (claimed.deliveries.empty() && !shards_.empty() && std::none_of(shards_.begin(), shards_.end(), reads)) {
    return *shards_.begin()->second.trouble;
  }
  return claimed;
}

bool OwnedHalf::works() {
  const bool may_start = lease_.may_start();
  const MutexLock lock(mutex_);
  return may_start && !shards_.empty();
}

void OwnedHalf::read(const ClaimRequest& request, Deadline deadline) {
  const MutexLock turn(reading_);
  bool some = false;  // can be handed out: what is more is read next time
  while (!some && !deadline.passed(machine_.steady_now())) {
    std::vector<Job> jobs;
    {
      const MutexLock lock(mutex_);
      jobs = next_jobs(request, backlog_.figures().ready >= request.max ? kReadsAhead : kSideBySide);
    }
    if (jobs.empty()) {
      break;
    }
    read_each(jobs, deadline);
    const MutexLock lock(mutex_);
    some = backlog_.figures().ready > 0;
  }
}

bool OwnedHalf::keeps_order() const { return rules_.order != Order::none && address().half == Half::standard; }

std::vector<OwnedHalf::Job> OwnedHalf::next_jobs(const ClaimRequest& request, std::size_t most) {
  const bool strict = keeps_order();
  owned::PartReader::Known known;
  known.page = std::clamp(request.max * 4, kLeastPage, kMostPage);
  known.ordered = rules_.order != Order::none;
  const table::Moment now = parts_.now();
  for (const std::uint32_t shard : backlog_.take_unswept()) {
    if (const auto found = shards_.find(shard); found != shards_.end()) {
      found->second.reader.sweep_by(now.steady);
    }
  }
  std::vector<Job> jobs;
  auto from = shards_.lower_bound(next_shard_);
  for (std::size_t i = 0; i < shards_.size() && jobs.size() < most; ++i, ++from) {
    if (from == shards_.end()) {
      from = shards_.begin();
    }
    auto& [number, shard] = *from;
    if (shard.closing || shard.reader.pauses(now.steady)) {
      continue;
    }
    if (strict && (!shard.holds_read || (!backlog_.of(number).held.empty() && now.steady >= shard.holds_again_at))) {
      jobs.push_back({number, shard.number, std::nullopt, false});
      continue;
    }
    known.bytes = backlog_.of(number).bytes;
    known.waiting = backlog_.of(number).ready;
    if (backlog_.figures().full) {
      known.waiting.fill(known.page);
    }
    if (auto order = shard.reader.next(known, now)) {
      if (order->begins) {
        backlog_.sweep_begins(number);
        shard.holds_read = shard.holds_read && backlog_.of(number).held.empty();
      }
      next_shard_ = number + 1;
      jobs.push_back({number, shard.number, std::move(order), shard.throttled});
    }
  }
  return jobs;
}

void OwnedHalf::read_failed(const Job& job, const dynamo::Error& error) {
  Error mapped = table::store_error(place_, error);
  const SteadyTime now = machine_.steady_now();
  const std::string about = "shard " + std::to_string(job.shard) + " of '" + name_ + "'";
  remarks_.say(about, about + " cannot be read and waits, the others go on: " + mapped.message(), now);
  const MutexLock lock(mutex_);
  if (Shard* shard = shard_of(job.shard, job.number)) {
    shard->reader.failed(now);
    shard->throttled = error.kind == dynamo::ErrorKind::throttled;
    shard->trouble = std::move(mapped);
  }
}

// Pages of several shards are asked for side by side, those of shards that were throttled after the others: the shard's
// own pause takes the place of retries that everybody would wait for.
void OwnedHalf::read_each(const std::vector<Job>& jobs, Deadline deadline) {
  for (const bool throttled : {false, true}) {
    std::vector<dynamo::QueryRequest> queries;
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      if (jobs[i].throttled != throttled) {
        continue;
      }
      if (jobs[i].order) {
        queries.push_back(page_query(jobs[i]));
        places.push_back(i);
      } else {
        read_holds(jobs[i], deadline);
      }
    }
    const Deadline until = throttled ? deadline.earlier(Deadline::after(machine_, kProbe)) : deadline;
    auto pages = parts_.client.query_each(queries, until);
    for (std::size_t k = 0; k < pages.size(); ++k) {
      const Job& job = jobs[places[k]];
      if (pages[k]) {
        page_read(job, std::move(*pages[k]));
      } else {
        read_failed(job, pages[k].error());
      }
    }
  }
}

dynamo::QueryRequest OwnedHalf::page_query(const Job& job) const {
  auto query = range_query(place_.table, partition_of(address().queue, address().half, job.shard), job.order->from,
                           job.order->to, job.order->consistent);
  if (job.order->limit > 0) {
    query.limit = static_cast<std::int64_t>(job.order->limit);
  }
  return query;
}

// Counts it into the answer, and takes it up where it is due.
void OwnedHalf::item_read(const Job& job, dynamo::Item item, table::Moment now, owned::ReadAnswer& answer) {
  auto record = std::make_unique<ReadItem>(std::move(item));
  const Candidate& read = record->candidate;
  if (!read.odd.empty()) {
    remarks_.say("an item in shard " + std::to_string(job.shard) + " of '" + name_ + "' is passed over: " + read.odd,
                 now.steady);
  }
  if (read.due > now.wall) {
    ++answer.later;
    answer.next_due = std::min(answer.next_due.value_or(read.due), read.due);
    return;
  }
  ++answer.due;
  const owned::Backlog::Sight sight{.began = job.order->began.steady,
                                    .consistent = job.order->consistent,
                                    .now = now.wall,
                                    .pass = shards_.at(job.shard).reader.pass()};
  const bool fresh = read.odd.empty() && backlog_.admit(job.shard, found_of(std::move(record), address().half), sight);
  answer.fresh += fresh ? 1 : 0;
}

void OwnedHalf::page_read(const Job& job, dynamo::Page page) {
  const MutexLock lock(mutex_);
  Shard* const shard = shard_of(job.shard, job.number);
  if (shard == nullptr) {
    return;
  }
  const owned::ReadOrder& order = *job.order;
  const table::Moment now = parts_.now();
  owned::ReadAnswer answer{.stopped_at = sort_of(page.last_evaluated_key)};
  for (dynamo::Item& item : page.items) {
    item_read(job, std::move(item), now, answer);
  }
  if (const std::size_t parked = backlog_.figures().parked; parked > 0) {
    remarks_.say("parked",
                 std::to_string(parked) + " groups of '" + name_ +
                     "' wait for another attempt or for an operator, which is more than this host keeps in memory; "
                     "they are read anew every " +
                     std::to_string(owned::PartReader::kSweep / std::chrono::seconds(1)) +
                     " s, and others go on meanwhile",
                 now.steady);
  }
  shard->throttled = false;
  shard->trouble.reset();
  shard->reader.done(order, answer, now.steady);
  const auto news = backlog_.read(job.shard, {.frontier = shard->reader.frontier(),
                                              .to_the_end = !shard->reader.behind(),
                                              .swept = shard->reader.take_swept()});
  if (news.unsure) {
    shard->reader.confirm();
  }
  const bool doubts_holds = news.vanished || (order.consistent && answer.fresh > 0);
  // Where those before it in its group have gone, only what was read later than the page can tell.
  if (doubts_holds && keeps_order()) {
    shard->holds_read = false;
    backlog_.doubt_holds(job.shard);
  }
}

void OwnedHalf::read_holds(const Job& job, Deadline deadline) {
  auto groups = read_held_groups(parts_.client, place_, job.shard, deadline);
  if (!groups) {
    return read_failed(job, groups.error());
  }
  const MutexLock lock(mutex_);
  if (Shard* shard = shard_of(job.shard, job.number)) {
    const SteadyTime now = machine_.steady_now();
    shard->holds_read = true;
    shard->trouble.reset();
    shard->holds_again_at = now + kHoldsAgain * (1 + groups->size() / kHoldsPage);
    if (backlog_.hold(job.shard, std::move(*groups), parts_.clock.wall_now())) {
      shard->reader.sweep_now(now);
    }
  }
}

Held OwnedHalf::held_of(const owned::Entry& entry) const {
  Held held = Held::of(candidate_of(entry));
  if (settings_.strict_fence) {
    held.fence = OwnerFence::of(address(), entry.part, shards_.at(entry.part).epoch);
  }
  return held;
}

Delivery OwnedHalf::deliver(std::uint32_t source, const owned::Backlog::Taken& taken, const ClaimRequest& request) {
  const owned::Entry& entry = *taken.entry;
  const ReadItem& read = read_of(entry);
  const std::string& id = read.candidate.id;
  StoredMessage record = decode_record(read.item, address().half);
  Out out{.spot = entry.spot(), .held = held_of(entry), .id = id, .group = entry.group, .source = source};
  if (!record.failure.empty()) {
    queue_.writer(settings_.half).failures.note(id, record.failure);
    out.failure = record.failure;
  }
  Delivery delivery;
  delivery.message = std::move(record.message);
  delivery.message.id = id;
  delivery.message.attempt = core::receives_when_claimed(entry.state, request.counts);
  delivery.suspect = taken.suspect;
  delivery.leased_until = SteadyTime::max();
  out.writes_claim = taken.suspect || read.candidate.frees_key_at_claim();
  const std::int64_t locator = locator_base_ | ++handed_out_;
  delivery.receipt = {.id = id, .version = entry.version, .locator = locator};
  outs_.emplace(locator, std::move(out));
  return delivery;
}

std::optional<InFlightBound> OwnedHalf::take(std::uint32_t source, const ClaimRequest& request, std::size_t most,
                                             std::vector<Delivery>& deliveries) {
  const auto claim =
      backlog_.take({.max = most, .bytes = request.bytes, .suspects = request.suspects, .allowed = lease_.announced()},
                    parts_.clock.wall_now());
  for (const owned::Backlog::Taken& taken : claim.messages) {
    deliveries.push_back(deliver(source, taken, request));
  }
  if (!deliveries.empty()) {
    handed_out_at_ = machine_.steady_now();
  }
  return claim.refused;
}

std::optional<Duration> OwnedHalf::next_due(table::Moment now) const {
  SteadyTime next = SteadyTime::max();
  for (const auto& [number, shard] : shards_) {
    if (!shard.closing) {
      next = std::min(next, shard.reader.wakes_at(now.steady));
      next = keeps_order() && !backlog_.of(number).held.empty() ? std::min(next, shard.holds_again_at) : next;
    }
  }
  Duration wait = next == SteadyTime::max() ? Duration::max() : std::max(Duration::zero(), Duration(next - now.steady));
  if (const auto timer = backlog_.figures().next_timer) {
    wait = std::min(wait, std::max(Duration::zero(), Duration(*timer - now.wall)) + Duration(1));
  }
  return wait == Duration::max() ? std::nullopt : std::optional(wait);
}

// A suspect's start is counted in its record before it runs: it may be the last thing that this host does. And some
// unique keys are free again once their message has been claimed.
void OwnedHalf::write_claims(std::vector<Delivery>& deliveries, Deadline deadline) {
  std::vector<RecordWrite> writes;
  std::vector<std::string> nonces;
  std::vector<Place> places;
  std::vector<std::size_t> which;
  const WallTime now = parts_.clock.wall_now();
  {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < deliveries.size(); ++i) {
      const auto out = outs_.find(deliveries[i].receipt.locator);
      if (out == outs_.end() || !out->second.writes_claim) {
        continue;
      }
      const Held& held = out->second.held;
      // Its owner's lease covers it, so that it has none of its own.
      core::StateChange change;
      change.receives = deliveries[i].message.attempt;
      change.received_at.emplace(now);
      change.hidden_until.emplace();
      if (deliveries[i].suspect) {
        change.marks = held.marks | core::kSuspect;
      }
      nonces.push_back(parts_.nonces.next());
      writes.push_back(
          update_message(place_.table, {held.place, held.version}, nonces.back(), now, attributes_of(change, false)));
      places.push_back(held.place);
      which.push_back(i);
    }
  }
  if (writes.empty()) {
    return;
  }
  const auto outcomes = parts_.runner.run(std::move(writes), table::Repetition::until_known, deadline);
  std::vector<bool> written;
  for (std::size_t k = 0; k < which.size(); ++k) {
    bool done = outcomes[k].fate == table::StatementFate::done;
    if (!done && outcomes[k].fate != table::StatementFate::failed) {
      const auto item = parts_.client.get_item({.table = place_.table, .key = places[k].key()}, deadline);
      done = item && Candidate::of(item->item).nonce == nonces[k];
    }
    written.push_back(done);
  }
  const bool may_start = lease_.may_start();
  std::set<std::size_t> dropped;
  const MutexLock lock(mutex_);
  for (std::size_t k = 0; k < which.size(); ++k) {
    if (!claim_written(deliveries[which[k]], written[k] && may_start)) {
      dropped.insert(which[k]);
    }
  }
  for (auto place = dropped.rbegin(); place != dropped.rend(); ++place) {
    deliveries.erase(deliveries.begin() + static_cast<std::ptrdiff_t>(*place));
  }
}

bool OwnedHalf::claim_written(Delivery& delivery, bool written) {
  const auto found = outs_.find(delivery.receipt.locator);
  if (found == outs_.end()) {
    return false;
  }
  Out& out = found->second;
  if (!written || out.lost) {
    const Out dropped = std::move(out);
    outs_.erase(found);
    if (!dropped.lost) {
      read_anew(dropped, parts_.now());
    }
    return false;
  }
  out.held.claimed(delivery.message.attempt, delivery.suspect);
  delivery.receipt.version = out.held.version;
  return true;
}

void OwnedHalf::mark_ordered(Deadline deadline) {
  {
    const MutexLock lock(mutex_);
    if (ordered_) {
      return;
    }
  }
  if (parts_.client.write(ordered_mark(place_, address().half), deadline)) {
    const MutexLock lock(mutex_);
    ordered_ = true;
  }
}

// Ends.

bool OwnedHalf::knows(const Receipt& receipt) const {
  const MutexLock lock(mutex_);
  return outs_.contains(receipt.locator);
}

std::vector<SettleResult> OwnedHalf::settle(std::span<const Completion> completions, Deadline deadline) {
  std::vector<SettleResult> results(completions.size(), {SettleStatus::lost, {}});
  std::vector<Completion> wanted;
  std::vector<std::optional<Held>> held;
  std::vector<std::size_t> places;
  const bool holds = lease_.holds();
  {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < completions.size(); ++i) {
      const auto out = outs_.find(completions[i].receipt.locator);
      if (out == outs_.end() || out->second.id != completions[i].receipt.id) {
        continue;
      }
      if ((holds && !out->second.lost) || is_plain_ack(completions[i])) {
        wanted.push_back(completions[i]);
        held.emplace_back(out->second.held);
        places.push_back(i);
      }
    }
  }
  if (wanted.empty()) {
    return results;
  }
  auto made = LeasedWriter(queue_, settings_.half).settle(wanted, held, deadline);
  const table::Moment now = parts_.now();
  bool handed_over = false;
  {
    const MutexLock lock(mutex_);
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      ended(wanted[k].receipt.locator, wanted[k], made[k], now);
      results[places[k]] = std::move(made[k]);
    }
    handed_over = std::any_of(shards_.begin(), shards_.end(), [this](const auto& shard) SLUICE_REQUIRES(mutex_) {
      return shard.second.closing && backlog_.of(shard.first).out == 0;
    });
  }
  if (handed_over) {
    lease_.nudge();
  }
  return results;
}

void OwnedHalf::ended(std::int64_t locator, const Completion& completion, const SettleResult& result,
                      table::Moment now) {
  const auto found = outs_.find(locator);
  if (found == outs_.end()) {
    return;
  }
  const bool holds_group =
      completion.action == CompletionAction::dead_letter && completion.hold_group && !found->second.group.empty();
  if (result.status == SettleStatus::failed || result.status == SettleStatus::refused) {
    found->second.may_be_held = found->second.may_be_held || holds_group;
    return;
  }
  const Out out = std::move(found->second);
  outs_.erase(found);
  if (result.status == SettleStatus::lost) {
    if (!out.lost) {
      read_anew(out, now);
    }
    // It may be a dead letter by now, for which its group waits.
    if (const auto shard = shards_.find(out.spot.first); shard != shards_.end()) {
      shard->second.holds_read = false;
    }
    return;
  }
  if (const auto shard = shards_.find(out.spot.first); shard != shards_.end()) {
    if (DeadLetters& dead = shard->second.dead; completion.action == CompletionAction::dead_letter && dead.looked_at) {
      const SteadyTime soonest = *dead.looked_at + kDeadFailurePause;
      dead.due_at = std::min(dead.due_at, std::max(now.steady + kDeadLookSoon, soonest));
    }
    if (holds_group) {
      auto held = backlog_.of(out.spot.first).held;
      held.insert(out.group);
      backlog_.hold(out.spot.first, std::move(held), now.wall);
    } else if (out.may_be_held) {
      shard->second.holds_read = false;
      backlog_.doubt_holds(out.spot.first);
    }
  }
  returned(out, completion, now);
}

void OwnedHalf::read_anew(const Out& out, table::Moment now) {
  const owned::Return unknown{.kind = owned::Return::Kind::unknown, .version = out.held.version};
  backlog_.returned(out.spot, unknown, now.wall, now.steady);
}

// What became of it, as its record says now.
void OwnedHalf::returned(const Out& out, const Completion& completion, table::Moment now) {
  const bool back = completion.action == CompletionAction::retry || completion.action == CompletionAction::release;
  // In the DLQ a dead letter stays, under a key that has to be read.
  const bool stays = completion.action == CompletionAction::dead_letter && address().half == Half::dlq;
  if (out.lost && (back || stays)) {
    return;
  }
  if (stays) {
    return read_anew(out, now);
  }
  if (!back) {
    backlog_.returned(out.spot, {.version = out.held.version}, now.wall, now.steady);
    return;
  }
  core::StateChange change = end_of(completion, out.held, now.wall);
  const owned::Return what{.kind = owned::Return::Kind::back,
                           .version = out.held.version + 1,
                           .state = {.half = address().half,
                                     .hidden_until = change.hidden_until.value_or(std::nullopt),
                                     .receives = change.receives.value_or(out.held.receive_count),
                                     .marks = change.marks.value_or(0)}};
  owned::Entry* const again = backlog_.returned(out.spot, what, now.wall, now.steady);
  if (again != nullptr && change.failure) {
    const Failure failure =
        out.failure ? core::with_earlier(std::move(*change.failure), *out.failure) : *std::move(change.failure);
    read_of(*again).item.insert_or_assign(std::string(attribute::kFailure), table::encode_failure(failure));
  }
}

std::vector<ExtendResult> OwnedHalf::extend(std::span<const Receipt> receipts) {
  std::vector<ExtendResult> results(receipts.size());
  const bool holds = lease_.holds();
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < receipts.size(); ++i) {
    const auto out = outs_.find(receipts[i].locator);
    const bool mine = holds && out != outs_.end() && !out->second.lost;
    results[i].status = mine ? SettleStatus::applied : SettleStatus::lost;
    results[i].receipt = receipts[i];
    results[i].leased_until = SteadyTime::max();
  }
  return results;
}

// Figures.

// What was read is told. A shard in which there may be more is one of those that hold at least so much.
OwnerFigures OwnedHalf::figures(SteadyTime now) const {
  const MutexLock lock(mutex_);
  OwnerFigures figures;
  const owned::Backlog::Figures known = backlog_.figures();
  figures.in_flight = known.out;
  figures.delayed = known.timers;
  figures.ready = known.size - known.out - known.timers;
  figures.oldest_due = backlog_.oldest_due();
  figures.shards = static_cast<std::uint32_t>(shards_.size());
  figures.in_use = count_;
  for (const auto& [number, shard] : shards_) {
    if (const auto later = shard.reader.later(now); later && backlog_.of(number).dropped == 0) {
      figures.delayed += later->records;
      figures.looked_ago = std::max(figures.looked_ago, later->seen_ago);
    } else {
      ++figures.unread;
      figures.ready += shard.reader.behind() ? 1U : 0U;
    }
    if (shard.dead.looked_at) {
      figures.dead.records += shard.dead.records;
      figures.dead.looked_ago = std::max<Duration>(figures.dead.looked_ago, now - *shard.dead.looked_at);
      figures.dead.more += shard.dead.more ? 1U : 0U;
      ++figures.dead.shards;
    }
  }
  return figures;
}

// Dead letters lie in the shards of the messages that they were, so that their owner counts them, by a short read.
void OwnedHalf::spare_time(Deadline deadline) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> looks;
  std::vector<dynamo::QueryRequest> queries;
  const SteadyTime began = machine_.steady_now();
  {
    const MutexLock lock(mutex_);
    if (counting_ || address().half != Half::standard) {
      return;
    }
    for (const auto& [number, shard] : shards_) {
      if (began < shard.dead.due_at || looks.size() == kDeadReads) {
        continue;
      }
      auto query = partition_query(place_.table, partition_of(address().queue, Half::dlq, number), false);
      query.projection = "#s";
      query.names.emplace("#s", std::string(attribute::kSort));
      query.limit = static_cast<std::int64_t>(kMostDeadOfAShard);
      looks.emplace_back(number, shard.number);
      queries.push_back(std::move(query));
    }
    counting_ = !looks.empty();
  }
  if (looks.empty()) {
    return;
  }
  const auto pages = parts_.client.query_each(queries, deadline);
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    Shard* const shard = shard_of(looks[i].first, looks[i].second);
    if (shard != nullptr && pages[i]) {
      shard->dead = {.due_at = began + kDeadPause,
                     .looked_at = began,
                     .records = pages[i]->items.size(),
                     .more = !pages[i]->last_evaluated_key.empty()};
    } else if (shard != nullptr) {
      shard->dead.due_at = began + kDeadFailurePause;
    }
  }
  counting_ = false;
}

}  // namespace sluice::queue::leased
