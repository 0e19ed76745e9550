// How an OwnedHalf reads what lies in its shards, and hands it out.

#include <algorithm>
#include <utility>

#include "host/stores/leased/leased_writes.hpp"
#include "host/stores/leased/owned_half.hpp"
#include "host/stores/leased/partition_reads.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {
namespace {

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

std::string sort_of(const dynamo::Item& key) {
  const auto* sort = dynamo::find<std::string>(key, attribute::kSort);
  return sort == nullptr ? std::string() : *sort;
}

}  // namespace

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
  return std::min<std::uint64_t>(request.max, share > book_.out() ? share - book_.out() : 0);
}

Result<Claimed> OwnedHalf::claim(std::uint32_t source, const ClaimRequest& request, Deadline deadline) {
  if (request.rules.order != Order::none) {
    // What was sent before and what after goes by it; where it is not to be had, nothing can be read either.
    static_cast<void>(parts_.clock.be_sure(place_, table::kTimeTolerance, deadline));
  }
  {
    const MutexLock lock(mutex_);
    SLUICE_PASS_ON(check(request.rules));
    const ClaimRules rules = rules_for(source, request.rules);
    if (rules.order != rules_.order && rules.order != Order::none) {
      for (auto& [number, shard] : shards_) {
        shard.holds_read = false;
        if (rules_.order == Order::none) {  // what has been read so far was not read in passes
          shard.reader = ShardReader(machine_.steady_now(), true);
          shard.number = ++taken_;
        }
      }
    }
    rules_ = rules;
    book_.rules(rules_, parts_.clock.wall_now());
  }
  if (request.rules.order == Order::group) {
    mark_ordered(deadline);
  }
  read(request, deadline);
  std::size_t most = request.max;
  InFlightBound bound = 0;
  {
    const MutexLock lock(mutex_);
    book_.wake(parts_.clock.wall_now());
    most = std::min(budget(request), book_.ready() + book_.size());
    if (most == 0 && request.max > 0 && book_.ready() > 0) {
      return Error(ErrorCode::over_limit, "queue " + address().queue + " has as many messages in flight as it may");
    }
    most = std::min(std::max<std::size_t>(1, most), request.max);
    bound = book_.expected(most);
  }
  // What cannot be announced now does not go out. If that is all, what the next one needs is announced.
  coordinator_.announce(bound, deadline);
  Claimed claimed;
  for (bool again = true; again;) {
    const bool may_start = coordinator_.may_start();
    std::optional<InFlightBound> refused;
    {
      const MutexLock lock(mutex_);
      if (may_start) {
        claimed.deliveries = take(source, request, most);
        refused = book_.refused();
      }
      if (claimed.deliveries.size() < request.max) {
        claimed.next_due = next_due(parts_.now());
      }
    }
    again = claimed.deliveries.empty() && refused && coordinator_.announce(*refused, deadline);
  }
  write_claims(claimed.deliveries, deadline);
  if (auto trouble = claimed.deliveries.empty() ? cut_off() : std::nullopt) {
    return *std::move(trouble);
  }
  return claimed;
}

// A claim that finds nothing because nothing can be read would pass for one of an empty queue.
std::optional<Error> OwnedHalf::cut_off() const {
  const bool may_start = coordinator_.may_start();
  {
    const MutexLock lock(mutex_);
    const auto reads = [](const auto& each) { return !each.second.trouble; };
    if (!shards_.empty() && std::none_of(shards_.begin(), shards_.end(), reads)) {
      return shards_.begin()->second.trouble;
    }
    if (may_start && !shards_.empty()) {
      return std::nullopt;
    }
  }
  const auto trouble = coordinator_.trouble();
  return trouble ? std::optional(table::store_error(place_, *trouble)) : std::nullopt;
}

void OwnedHalf::read(const ClaimRequest& request, Deadline deadline) {
  const MutexLock turn(reading_);
  bool some = false;  // can be handed out: what is more is read next time
  while (!some && !deadline.passed(machine_.steady_now())) {
    std::vector<Job> jobs;
    {
      const MutexLock lock(mutex_);
      jobs = next_jobs(request, book_.ready() >= request.max ? kReadsAhead : kSideBySide);
    }
    if (jobs.empty()) {
      break;
    }
    read_each(jobs, deadline);
    const MutexLock lock(mutex_);
    some = book_.ready() > 0;
  }
}

bool OwnedHalf::keeps_order() const { return rules_.order != Order::none && address().half == Half::standard; }

std::vector<OwnedHalf::Job> OwnedHalf::next_jobs(const ClaimRequest& request, std::size_t most) {
  const bool strict = keeps_order();
  ShardReader::Known known;
  known.page = std::clamp(request.max * 4, kLeastPage, kMostPage);
  known.ordered = rules_.order != Order::none;
  const table::Moment now = parts_.now();
  for (const std::uint32_t shard : book_.take_unswept()) {
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
    if (strict && (!shard.holds_read || (!shard.holds.empty() && now.steady >= shard.holds_again_at))) {
      jobs.push_back({number, shard.number, std::nullopt, false});
      continue;
    }
    known.bytes = book_.bytes_of(number);
    known.waiting = book_.waiting_in(number);
    if (book_.full()) {
      known.waiting.fill(known.page);
    }
    if (auto order = shard.reader.next(known, now)) {
      if (order->begins) {
        book_.sweep_begins(number);
        shard.holds_read = shard.holds_read && shard.holds.empty();
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
  if (const auto found = shards_.find(job.shard); found != shards_.end() && found->second.number == job.number) {
    found->second.reader.failed(now);
    found->second.throttled = error.kind == dynamo::ErrorKind::throttled;
    found->second.trouble = std::move(mapped);
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
  dynamo::QueryRequest query;
  query.table = place_.table;
  query.key_condition = "#p = :p AND #s BETWEEN :from AND :to";
  query.names = {{"#p", std::string(attribute::kPartition)}, {"#s", std::string(attribute::kSort)}};
  query.values.emplace(":p", partition_of(address().queue, address().half, job.shard));
  query.values.emplace(":from", job.order->from);
  query.values.emplace(":to", job.order->to);
  query.consistent = job.order->consistent;
  if (job.order->limit > 0) {
    query.limit = static_cast<std::int64_t>(job.order->limit);
  }
  return query;
}

void OwnedHalf::page_read(const Job& job, dynamo::Page page) {
  const MutexLock lock(mutex_);
  const auto found = shards_.find(job.shard);
  if (found == shards_.end() || found->second.number != job.number) {
    return;
  }
  const ReadOrder& order = *job.order;
  const table::Moment now = parts_.now();
  ReadAnswer answer{.stopped_at = sort_of(page.last_evaluated_key)};
  for (dynamo::Item& item : page.items) {
    const std::string sort = sort_of(item);
    if (const std::string odd = oddity_of(item); !odd.empty()) {
      remarks_.say("an item in shard " + std::to_string(job.shard) + " of '" + name_ + "' is passed over: " + odd,
                   now.steady);
    }
    if (due_of(sort) > now.wall) {
      ++answer.later;
      answer.next_due = std::min(answer.next_due.value_or(due_of(sort)), due_of(sort));
      continue;
    }
    ++answer.due;
    const auto admission = book_.admit(job.shard, std::move(item),
                                       {.began = order.began.steady,
                                        .consistent = order.consistent,
                                        .now = now.wall,
                                        .pass = found->second.reader.pass()});
    answer.fresh += admission == OwnedBacklog::Admission::fresh ? 1 : 0;
  }
  if (book_.parked() > 0) {
    remarks_.say("parked",
                 std::to_string(book_.parked()) + " groups of '" + name_ +
                     "' wait for another attempt or for an operator, which is more than this host keeps in memory; "
                     "they are read anew every " +
                     std::to_string(ShardReader::kSweep / std::chrono::seconds(1)) + " s, and others go on meanwhile",
                 now.steady);
  }
  found->second.throttled = false;
  found->second.trouble.reset();
  found->second.reader.done(order, answer, now.steady);
  if (book_.passed(job.shard, found->second.reader.frontier())) {
    found->second.reader.confirm();
  }
  if (!found->second.reader.behind()) {
    book_.read_to_end(job.shard);
  }
  bool doubts_holds = order.consistent && answer.fresh > 0;
  if (const auto swept = found->second.reader.take_swept()) {
    doubts_holds = book_.swept(job.shard, *swept) || doubts_holds;
    if (!found->second.reader.behind()) {
      book_.read_wholly(job.shard);
    }
  }
  // Where those before it in its group have gone, only what was read later than the page can tell.
  if (doubts_holds && keeps_order()) {
    found->second.holds_read = false;
    book_.doubt_holds(job.shard);
  }
}

void OwnedHalf::read_holds(const Job& job, Deadline deadline) {
  auto groups = read_held_groups(parts_.client, place_, job.shard, deadline);
  if (!groups) {
    return read_failed(job, groups.error());
  }
  const MutexLock lock(mutex_);
  if (const auto found = shards_.find(job.shard); found != shards_.end() && found->second.number == job.number) {
    const SteadyTime now = machine_.steady_now();
    found->second.holds_read = true;
    found->second.trouble.reset();
    found->second.holds = *groups;
    found->second.holds_again_at = now + kHoldsAgain * (1 + groups->size() / kHoldsPage);
    if (book_.hold(job.shard, std::move(*groups), parts_.clock.wall_now())) {
      found->second.reader.sweep_now(now);
    }
  }
}

Held OwnedHalf::held_of(const Entry& entry) const {
  const Candidate& candidate = entry.candidate;
  Held held;
  held.place = candidate.place;
  held.version = candidate.version;
  held.receive_count = candidate.receive_count;
  held.marked = candidate.suspect;
  held.aliased = !candidate.own_id.empty();
  held.held_group = candidate.hold ? candidate.group : std::string();
  if (settings_.strict_fence) {
    held.fence = OwnerFence{{ownership_partition(address().queue, address().half), ownership_sort(entry.shard)},
                            keeper_.epoch(entry.shard)};
  }
  return held;
}

Delivery OwnedHalf::deliver(std::uint32_t source, const OwnedBacklog::Taken& taken, const ClaimRequest& request) {
  const Entry& entry = *taken.entry;
  const Candidate& candidate = entry.candidate;
  StoredMessage record = decode_record(entry.item, address().half);
  Out out{.spot = entry.spot(), .held = held_of(entry), .id = candidate.id, .group = candidate.group, .source = source};
  if (!record.failure.empty()) {
    if (writer_.note_failure) {
      writer_.note_failure(candidate.id, record.failure);
    }
    out.failure = record.failure;
  }
  Delivery delivery;
  delivery.message = std::move(record.message);
  delivery.message.id = candidate.id;
  delivery.message.attempt = core::receives_when_claimed(candidate.state(address().half), request.counts);
  delivery.suspect = taken.suspect;
  delivery.leased_until = SteadyTime::max();
  out.writes_claim = taken.suspect || candidate.frees_key_at_claim();
  const std::int64_t locator = locator_base_ | ++handed_out_;
  delivery.receipt = {.id = candidate.id, .version = candidate.version, .locator = locator};
  outs_.emplace(locator, std::move(out));
  return delivery;
}

std::vector<Delivery> OwnedHalf::take(std::uint32_t source, const ClaimRequest& request, std::size_t most) {
  std::vector<Delivery> deliveries;
  const OwnedBacklog::Wanted wanted{
      .max = most, .bytes = request.bytes, .suspects = request.suspects, .allowed = coordinator_.announced()};
  for (const OwnedBacklog::Taken& taken : book_.take(wanted, parts_.clock.wall_now())) {
    deliveries.push_back(deliver(source, taken, request));
  }
  if (!deliveries.empty()) {
    handed_out_at_ = machine_.steady_now();
  }
  return deliveries;
}

std::optional<Duration> OwnedHalf::next_due(table::Moment now) const {
  SteadyTime next = SteadyTime::max();
  for (const auto& [number, shard] : shards_) {
    if (!shard.closing) {
      next = std::min(next, shard.reader.wakes_at(now.steady));
      next = keeps_order() && !shard.holds.empty() ? std::min(next, shard.holds_again_at) : next;
    }
  }
  Duration wait = next == SteadyTime::max() ? Duration::max() : std::max(Duration::zero(), Duration(next - now.steady));
  if (const auto timer = book_.next_timer()) {
    wait = std::min(wait, std::max(Duration::zero(), Duration(*timer - now.wall)) + Duration(1));
  }
  return wait == Duration::max() ? std::nullopt : std::optional(wait);
}

}  // namespace sluice::queue::leased
