#include "host/stores/owned/owned_half.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "host/stores/core/outcomes.hpp"

namespace sluice::queue::owned {
namespace {

constexpr Duration kBusy = std::chrono::seconds(5);
constexpr std::size_t kMostLost = 50'000;
constexpr std::size_t kLeastPage = 100;
constexpr std::size_t kMostPage = 1000;
// Of a claim that has enough already.
constexpr std::size_t kReadsAhead = 2;
// Of one that has not.
constexpr std::size_t kSideBySide = 16;
// For a page of a part that was throttled: a slow answer's time, in which hardly a retry falls.
constexpr Duration kProbe = std::chrono::milliseconds(250);
constexpr Duration kFirstDeadLook = std::chrono::seconds(3);
constexpr Duration kDeadLookSoon = std::chrono::seconds(2);
constexpr Duration kDeadFailurePause = std::chrono::seconds(5);
constexpr std::size_t kDeadReads = 16;  // at once

// Whatever has become of the part since: who has done a message may take it away, as long as it is as it was.
bool is_plain_ack(const Completion& completion) {
  return completion.action == CompletionAction::remove && !completion.effects;
}

}  // namespace

OwnedHalf::OwnedHalf(QueueAddress address, MessageRecords& records, HostLease& lease, Remarks& remarks,
                     const Clock& clock, Random& random)
    : address_(std::move(address)),
      records_(records),
      lease_(lease),
      remarks_(remarks),
      clock_(clock),
      name_(half_name(address_)),
      handed_out_(static_cast<std::uint32_t>(random.next())) {}

std::uint32_t OwnedHalf::enter(SourceEvents events) {
  const MutexLock lock(mutex_);
  sources_.emplace(++entered_, SourceOfHalf{std::make_shared<EventGate>(std::move(events))});
  return entered_;
}

bool OwnedHalf::exit(std::uint32_t source) {
  std::shared_ptr<EventGate> gate;
  bool last = false;
  {
    const MutexLock lock(mutex_);
    const auto found = sources_.find(source);
    if (found == sources_.end()) {
      return false;
    }
    gate = std::move(found->second.gate);
    sources_.erase(found);
    last = sources_.empty();
  }
  gate->close();
  return last;
}

void OwnedHalf::rung() {
  const MutexLock lock(mutex_);
  for (auto& [number, part] : parts_) {
    part.reader.rung(clock_.steady_now());
  }
}

void OwnedHalf::tell(const News& news) {
  std::map<std::uint32_t, SourceOfHalf> sources;
  {
    const MutexLock lock(mutex_);
    sources = sources_;
  }
  for (const auto& [number, source] : sources) {
    if (const auto lost = news.lost.find(number); lost != news.lost.end()) {
      source.gate->lost(lost->second);
    }
    if (news.ready) {
      source.gate->ready();
    }
  }
}

// What the coordinator says and asks.

// A part's dead letters are looked at first when the start is over.
void OwnedHalf::own(std::span<const ShardHolder::Shard> parts, std::uint32_t all) {
  const Moment now = moment();
  News news;
  {
    const MutexLock lock(mutex_);
    count_ = all;
    std::set<std::uint32_t> kept;
    std::transform(parts.begin(), parts.end(), std::inserter(kept, kept.end()),
                   [](const ShardHolder::Shard& mine) { return mine.number; });
    for (auto next = parts_.begin(); next != parts_.end();) {
      if (const std::uint32_t number = (next++)->first; !kept.contains(number)) {
        lose(number, news);
      }
    }
    for (const ShardHolder::Shard& mine : parts) {
      const auto found = parts_.find(mine.number);
      const bool fresh = found == parts_.end();
      if (fresh || (!backlog_.of(mine.number).open && !mine.closing)) {
        const DeadLetters dead = fresh ? DeadLetters{.due_at = now.steady + kFirstDeadLook} : found->second.dead;
        parts_.insert_or_assign(
            mine.number,
            Part{.reader = PartReader(now.steady, !fresh || mine.written_before), .number = ++taken_, .dead = dead});
        backlog_.take_part(mine.number, mine.left, now.wall);
        news.ready = news.ready || fresh;
      }
      parts_.at(mine.number).epoch = mine.epoch;
      if (mine.closing && backlog_.of(mine.number).open) {
        backlog_.close_part(mine.number);
      }
    }
  }
  tell(news);
}

void OwnedHalf::lose(std::uint32_t part, News& news) {
  const auto spots = backlog_.lose_part(part);
  parts_.erase(part);
  if (spots.empty()) {
    return;
  }
  const std::set<Spot> gone(spots.begin(), spots.end());
  for (auto& [locator, out] : outs_) {
    if (!out.lost && gone.contains(out.spot)) {
      out.lost = true;
      lost_.push_back(locator);
      news.lost[out.source].push_back({.id = out.id, .version = out.state.version, .locator = locator});
    }
  }
  while (lost_.size() > kMostLost) {
    outs_.erase(lost_.front());
    lost_.pop_front();
  }
}

OwnedHalf::Part* OwnedHalf::part_of(std::uint32_t part, std::uint64_t number) {
  const auto found = parts_.find(part);
  return found == parts_.end() || found->second.number != number ? nullptr : &found->second;
}

std::optional<InFlightBound> OwnedHalf::left_in(std::uint32_t part) {
  const MutexLock lock(mutex_);
  return backlog_.of(part).out > 0 ? std::nullopt : std::optional(backlog_.left_in(part));
}

bool OwnedHalf::is_empty(std::uint32_t part) const {
  const MutexLock lock(mutex_);
  const auto found = parts_.find(part);
  return found != parts_.end() && backlog_.of(part).entries == 0 && found->second.reader.found_empty();
}

bool OwnedHalf::busy() const {
  const MutexLock lock(mutex_);
  return handed_out_at_ && clock_.steady_now() < *handed_out_at_ + kBusy;
}

InFlightBound OwnedHalf::in_flight_bound() {
  const MutexLock lock(mutex_);
  return backlog_.in_flight_bound();
}

// Claims.

Result<void> OwnedHalf::check(const ClaimRules& rules) const {
  if (rules.order == Order::queue && count_ > 1) {
    return Error(ErrorCode::invalid, "queue " + address_.queue + " has " + std::to_string(count_) +
                                         " shards, which are worked off side by side; to go through it one after the "
                                         "other give it a single shard, or have it on SQLite");
  }
  if (rules.max_in_flight > 0 && rules.max_in_flight < count_) {
    return Error(ErrorCode::invalid,
                 "queue " + address_.queue + " has " + std::to_string(count_) +
                     " shards, each of which needs its share of max_in_flight; make that at least " +
                     std::to_string(count_) + ", or give the queue fewer shards");
  }
  return {};
}

// Each part has its share of the limit, so that the hosts keep to it without asking one another.
std::size_t OwnedHalf::budget(const ClaimRequest& request) const {
  if (request.rules.max_in_flight == 0 || count_ == 0) {
    return request.max;
  }
  std::uint64_t share = 0;
  for (const auto& [number, part] : parts_) {
    share += request.rules.max_in_flight / count_ + (number < request.rules.max_in_flight % count_ ? 1 : 0);
  }
  const std::uint64_t out = backlog_.figures().out;
  return std::min<std::uint64_t>(request.max, share > out ? share - out : 0);
}

void OwnedHalf::follow_rules(std::uint32_t source, const ClaimRules& asked) {
  const auto strictness = [](const ClaimRules& rules) {
    return rules.order == Order::queue ? 3 : rules.order == Order::group ? 2 : rules.fair ? 1 : 0;
  };
  // A source may have left while its claim was under way: what that one asks for is not kept.
  if (const auto known = sources_.find(source); known != sources_.end()) {
    known->second.asked = asked;
  }
  ClaimRules rules = asked;
  for (const auto& [number, other] : sources_) {
    if (strictness(other.asked) > strictness(rules)) {
      rules.order = other.asked.order;
      rules.fair = other.asked.fair;
    }
  }
  if (strictness(rules) > strictness(asked)) {
    remarks_.say("'" + name_ + "' is handed out by the strictest order that a job of this host asks for; another job " +
                 "asks for less; give both the same order");
  }
  const Order before = backlog_.rules().order;
  if (rules.order != before && rules.order != Order::none) {
    for (auto& [number, part] : parts_) {
      part.reader.doubt_holds();
      if (before == Order::none) {  // what has been read so far was not read in passes
        part.reader = PartReader(clock_.steady_now(), true);
        part.number = ++taken_;
      }
    }
  }
  backlog_.rules(rules, clock_.wall_now());
}

Result<Claimed> OwnedHalf::claim(std::uint32_t source, const ClaimRequest& request, const Announce& announce,
                                 Deadline deadline) {
  {
    const MutexLock lock(mutex_);
    SLUICE_PASS_ON(check(request.rules));
  }
  if (request.rules.order != Order::none) {
    records_.order_wanted(request.rules.order, deadline);
  }
  {
    const MutexLock lock(mutex_);
    follow_rules(source, request.rules);
  }
  read(request, deadline);
  std::size_t most = request.max;
  InFlightBound bound = 0;
  {
    const MutexLock lock(mutex_);
    backlog_.wake(clock_.wall_now());
    const Backlog::Figures known = backlog_.figures();
    most = std::min(budget(request), known.ready + known.size);
    if (most == 0 && request.max > 0 && known.ready > 0) {
      return Error(ErrorCode::over_limit, "queue " + address_.queue + " has as many messages in flight as it may");
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
        claimed.next_due = next_due(moment());
      }
    }
    again = claimed.deliveries.empty() && refused && announce(*refused);
  }
  write_claims(claimed.deliveries, deadline);
  // A claim that finds nothing because nothing can be read would pass for one of an empty queue.
  const MutexLock lock(mutex_);
  const auto reads = [](const auto& each) { return !each.second.trouble; };
  if (claimed.deliveries.empty() && !parts_.empty() && std::none_of(parts_.begin(), parts_.end(), reads)) {
    return *parts_.begin()->second.trouble;
  }
  return claimed;
}

bool OwnedHalf::works() {
  const bool may_start = lease_.may_start();
  const MutexLock lock(mutex_);
  return may_start && !parts_.empty();
}

void OwnedHalf::read(const ClaimRequest& request, Deadline deadline) {
  const MutexLock turn(reading_);
  bool some = false;  // can be handed out: what is more is read next time
  while (!some && !deadline.passed(clock_.steady_now())) {
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

bool OwnedHalf::keeps_order() const { return backlog_.rules().order != Order::none && address_.half == Half::standard; }

std::vector<OwnedHalf::Job> OwnedHalf::next_jobs(const ClaimRequest& request, std::size_t most) {
  const Moment now = moment();
  for (const std::uint32_t unswept : backlog_.take_unswept()) {
    if (const auto found = parts_.find(unswept); found != parts_.end()) {
      found->second.reader.sweep_by(now.steady);
    }
  }
  PartReader::Known known;
  known.page = std::clamp(request.max * 4, kLeastPage, kMostPage);
  known.ordered = backlog_.rules().order != Order::none;
  std::vector<Job> jobs;
  auto from = parts_.lower_bound(next_part_);
  for (std::size_t i = 0; i < parts_.size() && jobs.size() < most; ++i, ++from) {
    if (from == parts_.end()) {
      from = parts_.begin();
    }
    auto& [number, part] = *from;
    const Backlog::PartFigures& figures = backlog_.of(number);
    known.bytes = figures.bytes;
    known.waiting = figures.ready;
    known.held = keeps_order() ? std::optional(figures.held.size()) : std::nullopt;
    if (backlog_.figures().full) {
      known.waiting.fill(known.page);
    }
    if (auto order = figures.open ? part.reader.next(known, now) : std::nullopt) {
      if (order->begins) {
        backlog_.sweep_begins(number);
      }
      next_part_ = number + 1;
      const bool throttled = part.throttled && order->kind != ReadOrder::Kind::holds;
      jobs.push_back({{number, *std::move(order)}, part.number, throttled});
    }
  }
  return jobs;
}

void OwnedHalf::read_failed(const Job& job, const Error& error) {
  const std::string about = "shard " + std::to_string(job.query.part) + " of '" + name_ + "'";
  remarks_.say(about, about + " cannot be read and waits, the others go on: " + error.message());
  const MutexLock lock(mutex_);
  if (Part* part = part_of(job.query.part, job.number)) {
    part->reader.failed(clock_.steady_now());
    part->throttled = error.code() == ErrorCode::throttled;
    part->trouble = error;
  }
}

// Pages of several parts are asked for side by side, those of parts that were throttled after the others: the part's
// own pause takes the place of retries that everybody would wait for.
void OwnedHalf::read_each(const std::vector<Job>& jobs, Deadline deadline) {
  for (const bool throttled : {false, true}) {
    std::vector<MessageRecords::Query> queries;
    std::vector<const Job*> asked;
    for (const Job& job : jobs) {
      if (job.throttled != throttled) {
        continue;
      }
      if (job.query.order.kind == ReadOrder::Kind::holds) {
        read_holds(job, deadline);
      } else {
        queries.push_back(job.query);
        asked.push_back(&job);
      }
    }
    auto pages = records_.read(queries, throttled ? deadline.earlier(Deadline::after(clock_, kProbe)) : deadline);
    for (std::size_t i = 0; i < pages.size(); ++i) {
      if (pages[i]) {
        page_read(*asked[i], *std::move(pages[i]));
      } else {
        read_failed(*asked[i], pages[i].error());
      }
    }
  }
}

// Counts it into the answer, and takes it up where it is due.
void OwnedHalf::take_up(const Job& job, Found found, Moment now, ReadAnswer& answer) {
  if (!found.odd.empty()) {
    remarks_.say("an item in shard " + std::to_string(job.query.part) + " of '" + name_ +
                 "' is passed over: " + found.odd);
  }
  if (found.due() > now.wall) {
    ++answer.later;
    answer.next_due = std::min(answer.next_due.value_or(found.due()), found.due());
    return;
  }
  ++answer.due;
  const ReadOrder& order = job.query.order;
  const Backlog::Sight sight{.began = order.began.steady,
                             .consistent = order.consistent,
                             .now = now.wall,
                             .pass = parts_.at(job.query.part).reader.pass()};
  if (found.odd.empty() && backlog_.admit(job.query.part, std::move(found), sight)) {
    ++answer.fresh;
  }
}

void OwnedHalf::page_read(const Job& job, MessageRecords::Page page) {
  const MutexLock lock(mutex_);
  Part* const part = part_of(job.query.part, job.number);
  if (part == nullptr) {
    return;
  }
  const ReadOrder& order = job.query.order;
  const Moment now = moment();
  ReadAnswer answer{.stopped_at = std::move(page.stopped_at)};
  for (Found& found : page.found) {
    take_up(job, std::move(found), now, answer);
  }
  if (const std::size_t parked = backlog_.figures().parked; parked > 0) {
    remarks_.say("parked groups of " + name_,
                 std::to_string(parked) + " groups of '" + name_ +
                     "' wait for another attempt or for an operator, which is more than this host keeps in memory; "
                     "they are read anew every " +
                     std::to_string(PartReader::kSweep / std::chrono::seconds(1)) + " s, and others go on meanwhile");
  }
  part->throttled = false;
  part->trouble.reset();
  part->reader.done(order, answer, now.steady);
  const auto news = backlog_.read(
      job.query.part,
      {.frontier = part->reader.frontier(), .to_the_end = !part->reader.behind(), .swept = part->reader.take_swept()});
  if (news.unsure) {
    part->reader.confirm();
  }
  // Where those before it in its group have gone, only what was read later than the page can tell.
  if (keeps_order() && (news.vanished || (order.consistent && answer.fresh > 0))) {
    part->reader.doubt_holds();
    backlog_.doubt_holds(job.query.part);
  }
}

void OwnedHalf::read_holds(const Job& job, Deadline deadline) {
  auto groups = records_.read_holds(job.query.part, deadline);
  if (!groups) {
    return read_failed(job, groups.error());
  }
  const MutexLock lock(mutex_);
  if (Part* part = part_of(job.query.part, job.number)) {
    const SteadyTime now = clock_.steady_now();
    part->trouble.reset();
    part->reader.holds_read(groups->size(), now);
    if (backlog_.hold(job.query.part, *std::move(groups), clock_.wall_now())) {
      part->reader.sweep_now(now);
    }
  }
}

std::optional<InFlightBound> OwnedHalf::take(std::uint32_t source, const ClaimRequest& request, std::size_t most,
                                             std::vector<Delivery>& deliveries) {
  const auto claim =
      backlog_.take({.max = most, .bytes = request.bytes, .suspects = request.suspects, .allowed = lease_.announced()},
                    clock_.wall_now());
  for (const Entry* entry : claim.entries) {
    deliveries.push_back(deliver(source, *entry, request));
  }
  if (!deliveries.empty()) {
    handed_out_at_ = clock_.steady_now();
  }
  return claim.refused;
}

Delivery OwnedHalf::deliver(std::uint32_t source, const Entry& entry, const ClaimRequest& request) {
  Message message = records_.open(entry);
  const std::int64_t locator = locator_of(++handed_out_, entry.sort);
  Out out{.locator = locator,
          .spot = entry.spot(),
          .epoch = parts_.at(entry.part).epoch,
          .id = message.id,
          .state = entry.state,
          .source = source,
          .writes_claim = entry.suspect || entry.writes_claim};
  Delivery delivery;
  delivery.message = std::move(message);
  delivery.message.attempt = core::receives_when_claimed(entry.state, request.counts);
  delivery.suspect = entry.suspect;
  delivery.leased_until = SteadyTime::max();
  delivery.receipt = {.id = out.id, .version = out.state.version, .locator = locator};
  outs_.emplace(locator, std::move(out));
  return delivery;
}

std::optional<Duration> OwnedHalf::next_due(Moment now) const {
  SteadyTime next = SteadyTime::max();
  for (const auto& [number, part] : parts_) {
    if (backlog_.of(number).open) {
      next = std::min(next, part.reader.wakes_at(now.steady));
      next = keeps_order() && !backlog_.of(number).held.empty() ? std::min(next, part.reader.holds_at()) : next;
    }
  }
  Duration wait = next == SteadyTime::max() ? Duration::max() : std::max(Duration::zero(), Duration(next - now.steady));
  if (const auto timer = backlog_.figures().next_timer) {
    wait = std::min(wait, std::max(Duration::zero(), Duration(*timer - now.wall)) + Duration(1));
  }
  return wait == Duration::max() ? std::nullopt : std::optional(wait);
}

// A suspect's start is counted in its record before it runs: it may be the last thing that this host does. Its owner's
// lease covers it, so that it has none of its own.
void OwnedHalf::write_claims(std::vector<Delivery>& deliveries, Deadline deadline) {
  std::vector<MessageRecords::ClaimWrite> claims;
  const WallTime now = clock_.wall_now();
  {
    const MutexLock lock(mutex_);
    for (const Delivery& delivery : deliveries) {
      const auto found = outs_.find(delivery.receipt.locator);
      if (found == outs_.end() || !found->second.writes_claim) {
        continue;
      }
      auto& [out, change] = claims.emplace_back(MessageRecords::ClaimWrite{found->second, {}});
      change.receives = delivery.message.attempt;
      change.received_at.emplace(now);
      change.hidden_until.emplace();
      if (delivery.suspect) {
        change.marks = out.state.marks | core::kSuspect;
      }
    }
  }
  if (claims.empty()) {
    return;
  }
  const auto written = records_.write_claims(claims, deadline);
  const bool may_start = lease_.may_start();
  const MutexLock lock(mutex_);
  std::size_t next = 0;
  std::erase_if(deliveries, [&](Delivery& delivery) SLUICE_REQUIRES(mutex_) {
    if (next == claims.size() || claims[next].out.locator != delivery.receipt.locator) {
      return false;
    }
    const std::size_t at = next++;
    return !claim_written(delivery, claims[at].change, written[at] && may_start);
  });
}

bool OwnedHalf::claim_written(Delivery& delivery, const core::StateChange& change, bool written) {
  const auto found = outs_.find(delivery.receipt.locator);
  if (found == outs_.end()) {
    return false;
  }
  Out& out = found->second;
  if (!written || out.lost) {
    const Out dropped = std::move(out);
    outs_.erase(found);
    if (!dropped.lost) {
      read_anew(dropped, moment());
    }
    return false;
  }
  core::apply(change, out.state);
  out.counted = true;
  delivery.receipt.version = out.state.version;
  return true;
}

// Ends.

std::vector<SettleResult> OwnedHalf::settle(std::span<const Completion> completions, Deadline deadline) {
  std::vector<SettleResult> results(completions.size(), {SettleStatus::lost, {}});
  std::vector<Completion> wanted;
  std::vector<Out> outs;
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
        outs.push_back(out->second);
        places.push_back(i);
      }
    }
  }
  if (wanted.empty()) {
    return results;
  }
  auto made = records_.settle(wanted, outs, deadline);
  const Moment now = moment();
  bool handed_over = false;
  {
    const MutexLock lock(mutex_);
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      ended(wanted[k].receipt.locator, wanted[k], made[k], now);
      results[places[k]] = std::move(made[k]);
    }
    handed_over = std::any_of(parts_.begin(), parts_.end(), [this](const auto& part) SLUICE_REQUIRES(mutex_) {
      const Backlog::PartFigures& figures = backlog_.of(part.first);
      return !figures.open && figures.out == 0;
    });
  }
  if (handed_over) {
    lease_.nudge();
  }
  return results;
}

void OwnedHalf::ended(std::int64_t locator, const Completion& completion, const SettleResult& result, Moment now) {
  const auto found = outs_.find(locator);
  if (found == outs_.end()) {
    return;
  }
  const bool holds_group =
      completion.action == CompletionAction::dead_letter && completion.hold_group && !found->second.state.group.empty();
  if (result.status == SettleStatus::failed || result.status == SettleStatus::refused) {
    found->second.may_be_held = found->second.may_be_held || holds_group;
    found->second.unsure =
        found->second.unsure || (completion.action == CompletionAction::keep && result.status == SettleStatus::failed);
    return;
  }
  if (result.status == SettleStatus::applied && completion.action == CompletionAction::keep) {
    core::MessageState& state = found->second.state;
    core::apply(core::end(completion, state, now.wall), state);
    state.version = result.version;
    return;
  }
  Out out = std::move(found->second);
  outs_.erase(found);
  // Of checkpoints that had no answer, too: a read that still sees one is older than this end.
  out.state.version = std::max(out.state.version, result.version - 1);
  const auto part = parts_.find(out.spot.first);
  if (result.status == SettleStatus::lost) {
    if (!out.lost) {
      read_anew(out, now);
    }
    if (part != parts_.end()) {
      part->second.reader.doubt_holds();  // it may be a dead letter by now, for which its group waits
    }
    return;
  }
  if (part != parts_.end()) {
    if (DeadLetters& dead = part->second.dead; completion.action == CompletionAction::dead_letter && dead.looked_at) {
      const SteadyTime soonest = *dead.looked_at + kDeadFailurePause;
      dead.due_at = std::min(dead.due_at, std::max(now.steady + kDeadLookSoon, soonest));
    }
    if (holds_group) {
      auto held = backlog_.of(out.spot.first).held;
      held.insert(out.state.group);
      backlog_.hold(out.spot.first, std::move(held), now.wall);
    } else if (out.may_be_held) {
      part->second.reader.doubt_holds();
      backlog_.doubt_holds(out.spot.first);
    }
  }
  returned(std::move(out), completion, now);
}

void OwnedHalf::read_anew(const Out& out, Moment now) {
  backlog_.returned(out.spot, {.kind = Return::Kind::unknown, .state = out.state}, now.wall, now.steady);
}

// What became of it, as its record says now.
void OwnedHalf::returned(Out out, const Completion& completion, Moment now) {
  const bool back = completion.action == CompletionAction::retry || completion.action == CompletionAction::release;
  // In the DLQ a dead letter stays, under a key that has to be read.
  const bool stays = completion.action == CompletionAction::dead_letter && address_.half == Half::dlq;
  if (out.lost && (back || stays)) {
    return;
  }
  if (back && out.unsure) {
    return read_anew(out, now);
  }
  Return what{.kind = back    ? Return::Kind::back
                      : stays ? Return::Kind::unknown
                              : Return::Kind::gone,
              .state = std::move(out.state)};
  if (back) {
    what.state.receives += out.counted ? 0 : 1;
    core::apply(core::end(completion, what.state, now.wall), what.state);
  }
  backlog_.returned(out.spot, what, now.wall, now.steady);
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

// What was read is told. A part in which there may be more is one of those that hold at least so much.
OwnerFigures OwnedHalf::figures() const {
  const SteadyTime now = clock_.steady_now();
  const MutexLock lock(mutex_);
  OwnerFigures figures;
  const Backlog::Figures known = backlog_.figures();
  figures.in_flight = known.out;
  figures.delayed = known.timers;
  figures.ready = known.size - known.out - known.timers;
  figures.oldest_due = backlog_.oldest_due();
  figures.shards = static_cast<std::uint32_t>(parts_.size());
  figures.in_use = count_;
  for (const auto& [number, part] : parts_) {
    if (const auto later = part.reader.later(now); later && backlog_.of(number).dropped == 0) {
      figures.delayed += later->records;
      figures.looked_ago = std::max(figures.looked_ago, later->seen_ago);
    } else {
      ++figures.unread;
      figures.ready += part.reader.behind() ? 1U : 0U;
    }
  }
  return figures;
}

OwnerFigures OwnedHalf::dead_letters() const {
  const SteadyTime now = clock_.steady_now();
  const MutexLock lock(mutex_);
  OwnerFigures figures{.in_use = count_};
  for (const auto& [number, part] : parts_) {
    if (const DeadLetters& dead = part.dead; dead.looked_at) {
      figures.ready += dead.count.records;
      figures.unread += dead.count.more ? 1U : 0U;
      figures.looked_ago = std::max<Duration>(figures.looked_ago, now - *dead.looked_at);
      ++figures.shards;
    }
  }
  return figures;
}

// Dead letters lie in the parts of the messages that they were, so that their owner counts them, by a short read.
void OwnedHalf::spare_time(Deadline deadline) {
  std::vector<std::uint32_t> looks;
  std::vector<std::uint64_t> numbers;
  const SteadyTime began = clock_.steady_now();
  {
    const MutexLock lock(mutex_);
    if (address_.half != Half::standard) {
      return;
    }
    for (auto& [number, part] : parts_) {
      if (began >= part.dead.due_at && looks.size() < kDeadReads) {
        looks.push_back(number);
        numbers.push_back(part.number);
        part.dead.due_at = began + kDeadFailurePause;  // later, where it can be read
      }
    }
  }
  if (looks.empty()) {
    return;
  }
  const auto counts = records_.count_dead(looks, kMostDeadOfAPart, deadline);
  const MutexLock lock(mutex_);
  for (std::size_t i = 0; i < looks.size(); ++i) {
    Part* const part = part_of(looks[i], numbers[i]);
    if (part != nullptr && counts[i]) {
      part->dead = {.due_at = began + kDeadPause, .looked_at = began, .count = *counts[i]};
    }
  }
}

}  // namespace sluice::queue::owned
