#include "host/stores/leased/ownership_items.hpp"

#include <algorithm>
#include <concepts>
#include <iterator>
#include <utility>

#include "base/guard.hpp"
#include "base/ranges.hpp"
#include "base/uuid.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/leased_schema.hpp"

namespace sluice::queue::leased {
namespace {

using dynamo::AttributeValue;
using dynamo::Item;

constexpr Duration kLongestLease = std::chrono::hours(1);
constexpr std::size_t kOfChance = 8;          // characters that tell a process from another one of the same host
constexpr std::string_view kOldestDue = "t";  // of figures; ms; absent: none
// TTL removes the heartbeat of a host that nobody clears up behind.
constexpr Duration kForgotten = std::chrono::hours(24);

bool flag_of(const Item& item, std::string_view name) {
  const bool* flag = dynamo::find<bool>(item, name);
  return flag != nullptr && *flag;
}

std::uint64_t count_of(const Item& item, std::string_view name) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, dynamo::whole_number(item, name).value_or(0)));
}

void put_number(Item& item, std::string_view name, std::uint64_t value) {
  item.insert_or_assign(std::string(name), AttributeValue::number(static_cast<long long>(value)));
}

std::set<std::string> texts_of(const Item& item, std::string_view name) {
  const auto* found = dynamo::find<dynamo::StringSet>(item, name);
  return found == nullptr ? std::set<std::string>() : std::set(found->values.begin(), found->values.end());
}

// An empty set cannot be stored.
void put_texts(Item& item, std::string_view name, const std::set<std::string>& texts) {
  if (!texts.empty()) {
    item.emplace(std::string(name), dynamo::StringSet{std::vector<std::string>(texts.begin(), texts.end())});
  }
}

// The attributes of one half's figures; all N.
template <typename Figures, typename Visit>
void each_figure(Figures& figures, const Visit& visit) {
  visit("r", figures.ready);
  visit("d", figures.delayed);
  visit("f", figures.in_flight);
  visit("u", figures.unread);
  visit("a", figures.looked_ago);
  visit("s", figures.shards);
  visit("n", figures.in_use);
}

std::uint64_t stored(Duration span) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, span / std::chrono::milliseconds(1)));
}
std::uint64_t stored(std::uint64_t count) { return count; }
void take_stored(Duration& span, std::uint64_t stored) {
  constexpr std::uint64_t kLongest = std::chrono::hours(24 * 366) / std::chrono::milliseconds(1);  // sums of it fit
  span = std::chrono::milliseconds(std::min(stored, kLongest));
}
template <std::unsigned_integral Count>
void take_stored(Count& count, std::uint64_t stored) {
  count = static_cast<Count>(stored);
}

// What is nothing costs nothing.
Item encode_figures(const OwnerFigures& figures) {
  Item item;
  each_figure(figures, [&item](std::string_view name, const auto& figure) {
    if (const std::uint64_t value = stored(figure); value > 0) {
      put_number(item, name, value);
    }
  });
  if (figures.oldest_due) {
    item.emplace(std::string(kOldestDue), stored_time(*figures.oldest_due));
  }
  return item;
}

OwnerFigures decode_figures(const Item& item) {
  OwnerFigures figures;
  each_figure(figures, [&item](std::string_view name, auto& figure) { take_stored(figure, count_of(item, name)); });
  figures.oldest_due = time_of(item, kOldestDue);
  return figures;
}

InFlightBound bound_in(const Item& item) {
  return static_cast<InFlightBound>(
      std::min<std::uint64_t>(count_of(item, attribute::kInFlightBound), owned::kUnbounded));
}

// The attribute must be as it was read: that value, or not there.
void demand(dynamo::ItemWrite& request, const Item& before, std::string_view name) {
  const std::string placeholder = "#" + std::string(name);
  request.names.emplace(placeholder, std::string(name));
  if (!request.condition.empty()) {
    request.condition += " AND ";
  }
  if (const auto found = before.find(name); found != before.end()) {
    request.condition += placeholder + " = :before_" + std::string(name);
    request.values.emplace(":before_" + std::string(name), found->second);
  } else {
    request.condition += "attribute_not_exists(" + placeholder + ")";
  }
}

}  // namespace

std::string make_incarnation(const std::string& host, Random& random) {
  return host + "/" + make_uuid(random).substr(0, kOfChance);
}

dynamo::QueryRequest partition_query(const std::string& table, const std::string& partition, bool consistent) {
  dynamo::QueryRequest query;
  query.table = table;
  query.key_condition = "#p = :p";
  query.names.emplace("#p", attribute::kPartition);
  query.values.emplace(":p", partition);
  query.consistent = consistent;
  return query;
}

void limit_range(dynamo::QueryRequest& query, const std::string& from, const std::string& to) {
  query.key_condition += " AND #s BETWEEN :from AND :to";
  query.names.insert_or_assign("#s", std::string(attribute::kSort));
  query.values.emplace(":from", from);
  query.values.emplace(":to", to);
}

dynamo::Result<std::vector<dynamo::Item>> read_partition(dynamo::Client& client, const std::string& table,
                                                         const std::string& partition, bool consistent,
                                                         Deadline deadline) {
  dynamo::QueryRequest query = partition_query(table, partition, consistent);
  std::vector<dynamo::Item> items;
  do {
    SLUICE_TRY(page, client.query(query, deadline));
    std::move(page->items.begin(), page->items.end(), std::back_inserter(items));
    query.exclusive_start_key = std::move(page->last_evaluated_key);
  } while (!query.exclusive_start_key.empty());
  return items;
}

Item encode_beat(const Heartbeat& beat, WallTime expires) {
  Item item = Place{std::string(kHosts), beat.host}.key();
  put_number(item, attribute::kCounter, static_cast<std::uint64_t>(beat.counter));
  put_number(item, attribute::kLease, stored(beat.lease));
  if (beat.leaving) {
    item.emplace(std::string(attribute::kLeaving), true);
  }
  put_texts(item, attribute::kWorksOn, beat.works_on);
  put_texts(item, attribute::kMoves, beat.moves);
  put_number(item, attribute::kInFlightBound, beat.in_flight_bound);
  if (!beat.bell.empty()) {
    item.emplace(std::string(attribute::kBell), beat.bell);
  }
  dynamo::Map figures;
  for (const auto& [half, known] : beat.figures) {
    figures.emplace(half, encode_figures(known));
  }
  if (!figures.empty()) {
    item.emplace(std::string(attribute::kFigures), std::move(figures));
  }
  if (beat.written_at) {
    item.emplace(std::string(attribute::kUpdated), stored_time(*beat.written_at));
  }
  item.emplace(std::string(attribute::kExpires),
               AttributeValue::number(std::chrono::floor<std::chrono::seconds>(expires.time_since_epoch()).count()));
  return item;
}

std::optional<Heartbeat> decode_beat(const Item& item) {
  const std::string host = Place::of(item).sort;
  const auto counter = dynamo::whole_number(item, attribute::kCounter);
  const auto lease = dynamo::whole_number(item, attribute::kLease);
  if (host.empty() || !counter || !lease || *lease <= 0 || *lease > kLongestLease / std::chrono::milliseconds(1)) {
    return std::nullopt;
  }
  Heartbeat beat{.host = host, .counter = *counter, .lease = std::chrono::milliseconds(*lease)};
  beat.leaving = flag_of(item, attribute::kLeaving);
  beat.works_on = texts_of(item, attribute::kWorksOn);
  beat.moves = texts_of(item, attribute::kMoves);
  beat.ended = dynamo::find<bool>(item, attribute::kEnded) != nullptr;
  beat.settled = flag_of(item, attribute::kEnded);
  beat.in_flight_bound = bound_in(item);
  beat.bell = dynamo::text_of(item, attribute::kBell);
  if (const auto* figures = dynamo::find<dynamo::Map>(item, attribute::kFigures)) {
    for (const auto& [half, known] : *figures) {
      if (const auto* map = known.get<dynamo::Map>()) {
        beat.figures.emplace(half, decode_figures(*map));
      }
    }
  }
  beat.written_at = time_of(item, attribute::kUpdated);
  return beat;
}

dynamo::Result<std::vector<Heartbeat>> read_beats(dynamo::Client& client, const std::string& table, Deadline deadline) {
  SLUICE_TRY(items, read_partition(client, table, std::string(kHosts), false, deadline));
  std::vector<Heartbeat> beats;
  for (const Item& item : *items) {
    if (auto beat = decode_beat(item)) {
      beats.push_back(std::move(*beat));
    }
  }
  return beats;
}

dynamo::ItemWrite beat_write(const std::string& table, const Heartbeat& beat, bool anew) {
  dynamo::ItemWrite request{.table = table,
                            .item = encode_beat(beat, beat.written_at.value_or(WallTime{}) + kForgotten)};
  if (!anew) {
    request.condition = "attribute_not_exists(#e) AND (attribute_not_exists(#c) OR #c <= :counter)";
    request.names = {{"#e", std::string(attribute::kEnded)}, {"#c", std::string(attribute::kCounter)}};
    request.values.emplace(":counter", AttributeValue::number(beat.counter));
  }
  return request;
}

Result<void> mark_ended(dynamo::Client& client, const table::QueueTable& place, const std::string& incarnation,
                        bool settled, Deadline deadline) {
  const Place where{std::string(kHosts), incarnation};
  SLUICE_TRY(
      found,
      table::checked(place, client.get_item({.table = place.table, .key = where.key(), .consistent = true}, deadline)));
  Item& item = found->item;
  const auto counter = dynamo::whole_number(item, attribute::kCounter);
  if (!counter || item.contains(attribute::kEnded)) {
    return {};
  }
  // Whoever knows nothing of the mark sees a host that leaves, and waits for its lease.
  item.insert_or_assign(std::string(attribute::kLeaving), true);
  item.insert_or_assign(std::string(attribute::kEnded), settled);
  item.erase(std::string(attribute::kBell));
  item.erase(std::string(attribute::kFigures));
  dynamo::ItemWrite mark{.table = place.table, .item = std::move(item)};
  mark.condition = "#c = :counter AND attribute_not_exists(#e)";
  mark.names = {{"#e", std::string(attribute::kEnded)}, {"#c", std::string(attribute::kCounter)}};
  mark.values.emplace(":counter", AttributeValue::number(*counter));
  SLUICE_PASS_ON(table::checked(place, client.write(mark, deadline)));
  return {};
}

OwnershipPage decode_ownership(std::span<const Item> items) {
  OwnershipPage page;
  for (const Item& item : items) {
    const Place place = Place::of(item);
    if (place.sort == kShardsKey) {
      page.shards = item;
      continue;
    }
    if (place.sort == kOrderedKey) {
      page.ordered = true;
      continue;
    }
    const auto shard = shard_of_ownership(place.sort);
    if (!shard || *shard >= kMostShards) {
      page.odd.push_back("the item '" + place.sort + "' in partition '" + place.partition +
                         "' is none of ours; it is passed over, remove it if nobody needs it");
      continue;
    }
    Ownership row{.part = *shard, .drained = flag_of(item, attribute::kDrained)};
    const auto* owner = dynamo::find<std::string>(item, attribute::kOwner);
    const auto epoch = dynamo::whole_number(item, attribute::kEpoch);
    row.clean = flag_of(item, attribute::kClean);
    const bool readable = epoch && *epoch >= 0;
    if (owner == nullptr || !readable) {
      page.odd.push_back("the ownership item '" + place.sort + "' in partition '" + place.partition +
                         "' is only half there; its shard is taken as nobody's, and the item written anew");
      row.clean = false;
    }
    row.owner = owner == nullptr ? std::string() : *owner;
    row.epoch = readable ? *epoch : item.contains(attribute::kEpoch) ? -1 : 0;
    row.left = row.clean ? 0 : bound_in(item);
    page.rows.emplace(*shard, std::move(row));
  }
  return page;
}

dynamo::ItemWrite ordered_mark(const table::QueueTable& place, Half half) {
  return {.table = place.table, .item = Place{ownership_partition(place.queue, half), std::string(kOrderedKey)}.key()};
}

// What no reader understands counts as nothing: so it does here.
dynamo::ItemWrite ownership_write(const std::string& table, const std::string& partition, const Ownership& before,
                                  const Ownership& after) {
  dynamo::ItemWrite request{.table = table, .item = Place{partition, ownership_sort(after.part)}.key()};
  request.item.emplace(std::string(attribute::kOwner), after.owner);
  request.item.emplace(std::string(attribute::kEpoch), AttributeValue::number(after.epoch));
  request.item.emplace(std::string(attribute::kClean), after.clean);
  if (!after.clean) {
    put_number(request.item, attribute::kInFlightBound, after.left);
  }
  if (after.drained) {
    request.item.emplace(std::string(attribute::kDrained), true);
  }
  if (SLUICE_GUARD(leased_epoch)) {
    request.condition = before.owner.empty() ? "NOT #o > :o AND " : "#o = :o AND ";
    request.condition += before.epoch < 0 ? "attribute_exists(#e)" : before.epoch == 0 ? "NOT #e > :e" : "#e = :e";
    request.names = {{"#o", std::string(attribute::kOwner)}, {"#e", std::string(attribute::kEpoch)}};
    request.values = {{":o", before.owner}};
    if (before.epoch >= 0) {
      request.values.emplace(":e", AttributeValue::number(before.epoch));
    }
  }
  return request;
}

Place shards_place(std::string_view queue) {
  return {ownership_partition(queue, Half::standard), std::string(kShardsKey)};
}

dynamo::ItemWrite numbers_write(const table::QueueTable& place, const Item& before, const Shards& after) {
  dynamo::ItemWrite request{.table = place.table, .item = shards_place(place.queue).key()};
  put_number(request.item, attribute::kShards, after.count);
  put_number(request.item, attribute::kMostEver, after.most_ever);
  for (const std::string_view name : {attribute::kShards, attribute::kMostEver}) {
    demand(request, before, name);
  }
  return request;
}

dynamo::Result<dynamo::ItemOutput> write_numbers(dynamo::Client& client, const table::QueueTable& place,
                                                 const Item& before, const Shards& after, Deadline deadline) {
  if (before.empty()) {
    SLUICE_PASS_ON(
        client.write({.table = place.table, .item = Place{std::string(kQueues), place.queue}.key()}, deadline));
  }
  return client.write(numbers_write(place, before, after), deadline);
}

dynamo::Result<std::vector<std::string>> read_queues(dynamo::Client& client, const std::string& table,
                                                     Deadline deadline) {
  SLUICE_TRY(items, read_partition(client, table, std::string(kQueues), true, deadline));
  return mapped(*items, [](const Item& item) { return Place::of(item).sort; });
}

std::optional<Shards> shards_in(const Item& item) {
  const auto count = dynamo::whole_number(item, attribute::kShards);
  if (!count || *count < kLeastShards || *count > kMostShards) {
    return std::nullopt;
  }
  const auto most = dynamo::whole_number(item, attribute::kMostEver).value_or(*count);
  return Shards{static_cast<std::uint32_t>(*count),
                static_cast<std::uint32_t>(std::clamp<std::int64_t>(most, *count, kMostShards))};
}

// What owners have told.

namespace {

/// What one host says of a half, and how old that is.
struct Word {
  OwnerFigures figures;
  Duration age{};
};

std::vector<Word> words_of(std::span<const Heartbeat> beats, const std::string& half, WallTime now) {
  std::vector<Word> words;
  for (const Heartbeat& beat : beats) {
    const auto told = beat.figures.find(half);
    if (told == beat.figures.end() || !beat.written_at || beat.leaving || beat.moves.contains(half)) {
      continue;
    }
    // One of a clock that is farther ahead than that would be young for ever, also once its host is dead.
    const Duration ago = now - *beat.written_at;
    if (told->second.shards > 0 && ago <= beat.lease && ago >= -beat.lease) {
      words.push_back({told->second, std::max(ago, Duration::zero())});
    }
  }
  return words;
}

}  // namespace

std::optional<QueueStats> announced_stats(std::span<const Heartbeat> beats, const QueueAddress& address, WallTime now) {
  auto words = words_of(beats, owned::half_name(address), now);
  if (words.empty() && address.half == Half::dlq) {
    words = words_of(beats, owned::dead_letters_name(address.queue), now);
  }
  if (words.empty()) {
    return std::nullopt;
  }
  QueueStats sum;
  std::uint32_t held = 0;
  std::uint32_t in_use = 0;
  for (const auto& [figures, age] : words) {
    sum.ready += figures.ready;
    sum.delayed += figures.delayed;
    sum.in_flight += figures.in_flight;
    if (figures.oldest_due) {
      sum.oldest_ready = std::min(sum.oldest_ready.value_or(*figures.oldest_due), *figures.oldest_due);
    }
    sum.at_least = sum.at_least || figures.unread > 0;
    sum.age = std::max(sum.age.value_or(Duration::zero()), age + figures.looked_ago);
    held += figures.shards;
    in_use = std::max(in_use, figures.in_use);
  }
  sum.at_least = sum.at_least || held < in_use;
  return sum;
}

}  // namespace sluice::queue::leased
