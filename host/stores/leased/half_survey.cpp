#include "host/stores/leased/half_survey.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/timestamp.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/leased/leased_record.hpp"

namespace sluice::queue::leased {
namespace {

// All shards together look at about so many places, and each at no fewer and no more than these.
constexpr std::size_t kPlaces = 96;
constexpr std::size_t kLeastPlaces = 12;
constexpr std::size_t kMostPlaces = 16;
// A shard is looked at first when the start is over.
constexpr Duration kDeadFirst = std::chrono::seconds(3);
constexpr Duration kDeadSoon = std::chrono::seconds(2);

dynamo::QueryRequest query_of(const std::string& table, const std::string& partition, const KeySketch::Order& order) {
  dynamo::QueryRequest query;
  query.table = table;
  query.key_condition = "#p = :p AND #s BETWEEN :from AND :to";
  query.projection = "#s";
  query.names = {{"#p", std::string(attribute::kPartition)}, {"#s", std::string(attribute::kSort)}};
  query.values.emplace(":p", partition);
  query.values.emplace(":from", order.from);
  query.values.emplace(":to", order.to);
  query.forward = order.forward;
  query.limit = static_cast<std::int64_t>(order.limit);
  return query;
}

KeySketch::Answer answer_of(const dynamo::Page& page) {
  KeySketch::Answer answer{.keys = {}, .ended = page.last_evaluated_key.empty()};
  for (const dynamo::Item& item : page.items) {
    if (const auto* sort = dynamo::find<std::string>(item, attribute::kSort); sort != nullptr && is_sort_key(*sort)) {
      answer.keys.push_back(*sort);
    }
  }
  return answer;
}

std::uint64_t rounded(double records) { return static_cast<std::uint64_t>(std::llround(std::max(0.0, records))); }

}  // namespace

void HalfSurvey::gained(std::uint32_t shard, SteadyTime now) {
  shards_.insert_or_assign(shard, Shard{.number = ++gained_, .dead = ShardSurvey(kDeadPause, now + kDeadFirst)});
}

void HalfSurvey::knows(std::uint32_t shard, bool all, bool behind, SteadyTime now) {
  const auto found = shards_.find(shard);
  if (found == shards_.end()) {
    return;
  }
  Shard& of = found->second;
  if (all) {
    of.unknown_since.reset();
    of.unread.reset();
  } else if (!of.unknown_since) {
    of.unknown_since = now;
    of.unread.emplace(kUnreadPause, now + kPatience);
  } else if (behind && !of.behind) {
    of.unread->expect(now + kPatience);
  }
  of.behind = behind;
}

void HalfSurvey::dead_letter(std::uint32_t shard, SteadyTime now) {
  if (const auto found = shards_.find(shard); found != shards_.end()) {
    found->second.dead.expect(now + kDeadSoon);
  }
}

std::size_t HalfSurvey::places() const {
  return std::clamp(kPlaces / std::max<std::size_t>(1, shards_.size()), kLeastPlaces, kMostPlaces);
}

HalfSurvey::Look HalfSurvey::look_of(std::uint32_t shard, const Shard& of, bool dead,
                                     std::vector<KeySketch::Order> orders) const {
  Look look{.shard = shard, .number = of.number, .dead = dead, .orders = std::move(orders), .queries = {}};
  const std::string partition = partition_of(address_.queue, dead ? Half::dlq : address_.half, shard);
  for (const KeySketch::Order& order : look.orders) {
    look.queries.push_back(query_of(table_, partition, order));
  }
  return look;
}

std::vector<HalfSurvey::Look> HalfSurvey::next(table::Moment now) {
  std::vector<Look> looks;
  std::size_t reads = 0;
  const auto add = [&](std::uint32_t shard, Shard& of, ShardSurvey& survey, bool dead) {
    if (auto orders = reads < kMostReads ? survey.next(places(), now) : std::vector<KeySketch::Order>();
        !orders.empty()) {
      reads += orders.size();
      looks.push_back(look_of(shard, of, dead, std::move(orders)));
    }
  };
  for (auto& [shard, of] : shards_) {
    if (of.unread) {
      add(shard, of, *of.unread, false);
    }
    if (counts_dead()) {
      add(shard, of, of.dead, true);
    }
  }
  return looks;
}

void HalfSurvey::done(const Look& look, const std::optional<std::vector<dynamo::Page>>& pages, SteadyTime now) {
  const auto found = shards_.find(look.shard);
  if (found == shards_.end() || found->second.number != look.number || (!look.dead && !found->second.unread)) {
    return;
  }
  ShardSurvey& survey = look.dead ? found->second.dead : *found->second.unread;
  if (!pages) {
    return survey.failed(now);
  }
  std::vector<KeySketch::Answer> answers;
  std::transform(pages->begin(), pages->end(), std::back_inserter(answers), answer_of);
  survey.done(answers, now);
}

bool HalfSurvey::add_unread(OwnerFigures& figures, std::uint32_t shard, const Cursors& cursors,
                            table::Moment now) const {
  const auto found = shards_.find(shard);
  const KeySketch* sketch = found != shards_.end() && found->second.unread ? found->second.unread->sketch() : nullptr;
  if (sketch == nullptr) {
    return false;
  }
  KeySketch::Amount due;
  KeySketch::Amount later;
  for (std::size_t i = 0; i < kPriorities; ++i) {
    const auto priority = static_cast<Priority>(i);
    const std::string head = first_sort_key(priority, WallTime{});
    const KeyNumber from = number_of_key(std::max(cursors[i], head).substr(0, head.size()));
    const KeyNumber today = number_of_key(last_sort_key(priority, now.wall));
    const KeyNumber end = number_of_key(last_sort_key(priority, kEndOfTime));
    const auto add = [sketch](KeySketch::Amount& sum, KeyNumber after, KeyNumber to) {
      const KeySketch::Amount found_there = sketch->between(after, to);
      sum.records += found_there.records;
      sum.unseen += found_there.unseen;
    };
    if (from < today) {
      add(due, from, today);
    }
    add(later, std::max(from, today), end);
  }
  if (found->second.behind && due.records + later.records < 1) {
    return false;  // all of it has come since
  }
  figures.ready += rounded(due.records);
  figures.delayed += rounded(later.records);
  figures.estimated += rounded(due.unseen + later.unseen);
  figures.looked_ago = std::max(figures.looked_ago, found->second.unread->age(now.steady));
  return true;
}

void HalfSurvey::add_dead(OwnerFigures& figures, SteadyTime now) const {
  if (!counts_dead()) {
    return;
  }
  for (const auto& [shard, of] : shards_) {
    const KeySketch* sketch = of.dead.sketch();
    if (sketch == nullptr) {
      continue;
    }
    const KeySketch::Amount all = sketch->between(0, ~KeyNumber{0});
    figures.dead.records += rounded(all.records);
    figures.dead.estimated += rounded(all.unseen);
    figures.dead.looked_ago = std::max(figures.dead.looked_ago, of.dead.age(now));
    ++figures.dead.shards;
  }
}

}  // namespace sluice::queue::leased
