#include "host/stores/leased/ownership_items.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/guard.hpp"
#include "base/uuid.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/leased_schema.hpp"

namespace sluice::queue::leased {
namespace {

using dynamo::AttributeValue;
using dynamo::Item;

constexpr Duration kLongestLease = std::chrono::hours(1);
constexpr std::size_t kOfChance = 8;  // characters that tell a process from another one of the same host

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

std::uint64_t whole_millis(Duration span) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(0, std::chrono::floor<std::chrono::milliseconds>(span).count()));
}

Item encode_figures(const OwnerFigures& figures) {
  Item item;
  put_number(item, attribute::kReadyKnown, figures.ready);
  put_number(item, attribute::kDelayedKnown, figures.delayed);
  put_number(item, attribute::kInFlight, figures.in_flight);
  put_number(item, attribute::kUnread, figures.unread);
  put_number(item, attribute::kShardsHeld, figures.shards);
  // What is nothing costs nothing.
  const auto put = [&item](std::string_view name, std::uint64_t value) {
    if (value > 0) {
      put_number(item, name, value);
    }
  };
  put(attribute::kShardsInUse, figures.in_use);
  put(attribute::kLookedAgo, whole_millis(figures.looked_ago));
  put(attribute::kDeadKnown, figures.dead.records);
  put(attribute::kDeadShards, figures.dead.shards);
  put(attribute::kDeadMore, figures.dead.more);
  put(attribute::kDeadLookedAgo, whole_millis(figures.dead.looked_ago));
  if (figures.oldest_due) {
    item.insert_or_assign(std::string(attribute::kOldestDue), stored_time(*figures.oldest_due));
  }
  return item;
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

dynamo::QueryRequest range_query(const std::string& table, const std::string& partition, const std::string& from,
                                 const std::string& to, bool consistent) {
  dynamo::QueryRequest query = partition_query(table, partition, consistent);
  query.key_condition += " AND #s BETWEEN :from AND :to";
  query.names.emplace("#s", attribute::kSort);
  query.values.emplace(":from", from);
  query.values.emplace(":to", to);
  return query;
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

dynamo::Result<std::set<std::string>> read_held_groups(dynamo::Client& client, const table::QueueTable& place,
                                                       std::uint32_t shard, Deadline deadline) {
  SLUICE_TRY(items, read_partition(client, place.table, hold_partition_of(place.queue, shard), true, deadline));
  std::set<std::string> groups;
  for (const dynamo::Item& item : *items) {
    if (const auto* group = dynamo::find<std::string>(item, attribute::kGroup)) {
      groups.insert(*group);
    }
  }
  return groups;
}

OwnerFigures decode_figures(const Item& item) {
  OwnerFigures figures{.ready = count_of(item, attribute::kReadyKnown),
                       .delayed = count_of(item, attribute::kDelayedKnown),
                       .in_flight = count_of(item, attribute::kInFlight)};
  figures.unread = static_cast<std::uint32_t>(count_of(item, attribute::kUnread));
  figures.shards = static_cast<std::uint32_t>(count_of(item, attribute::kShardsHeld));
  figures.oldest_due = time_of(item, attribute::kOldestDue);
  figures.in_use = static_cast<std::uint32_t>(count_of(item, attribute::kShardsInUse));
  figures.looked_ago = std::chrono::milliseconds(count_of(item, attribute::kLookedAgo));
  figures.dead = {.records = count_of(item, attribute::kDeadKnown),
                  .shards = static_cast<std::uint32_t>(count_of(item, attribute::kDeadShards)),
                  .more = static_cast<std::uint32_t>(count_of(item, attribute::kDeadMore)),
                  .looked_ago = std::chrono::milliseconds(count_of(item, attribute::kDeadLookedAgo))};
  return figures;
}

Item encode_beat(const HostBeat& host, WallTime now, WallTime expires) {
  const Heartbeat& beat = host.beat;
  Item item{{std::string(attribute::kPartition), kHosts}, {std::string(attribute::kSort), beat.host}};
  put_number(item, attribute::kCounter, static_cast<std::uint64_t>(beat.counter));
  put_number(item, attribute::kLease,
             static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(beat.lease).count()));
  if (beat.leaving) {
    item.emplace(std::string(attribute::kLeaving), true);
  }
  if (!beat.works_on.empty()) {
    item.emplace(std::string(attribute::kWorksOn),
                 dynamo::StringSet{std::vector<std::string>(beat.works_on.begin(), beat.works_on.end())});
  }
  put_number(item, attribute::kInFlightBound, host.in_flight_bound);
  if (!beat.moves.empty()) {
    item.emplace(std::string(attribute::kMoves),
                 dynamo::StringSet{std::vector<std::string>(beat.moves.begin(), beat.moves.end())});
  }
  if (!host.bell.empty()) {
    item.emplace(std::string(attribute::kBell), host.bell);
  }
  dynamo::Map figures;
  for (const auto& [half, known] : host.figures) {
    figures.emplace(half, encode_figures(known));
  }
  if (!figures.empty()) {
    item.emplace(std::string(attribute::kFigures), std::move(figures));
  }
  item.emplace(std::string(attribute::kUpdated), stored_time(now));
  item.emplace(std::string(attribute::kExpires),
               AttributeValue::number(std::chrono::floor<std::chrono::seconds>(expires.time_since_epoch()).count()));
  return item;
}

std::optional<HostBeat> decode_beat(const Item& item) {
  const Place place = Place::of(item);
  const auto counter = dynamo::whole_number(item, attribute::kCounter);
  const auto lease = dynamo::whole_number(item, attribute::kLease);
  if (place.sort.empty() || !counter || !lease || *lease <= 0 ||
      *lease > kLongestLease / std::chrono::milliseconds(1)) {
    return std::nullopt;
  }
  HostBeat host;
  host.beat = {.host = place.sort,
               .counter = *counter,
               .lease = std::chrono::milliseconds(*lease),
               .leaving = flag_of(item, attribute::kLeaving)};
  if (const bool* settled = dynamo::find<bool>(item, attribute::kEnded)) {
    host.beat.ended = true;
    host.beat.settled = *settled;
  }
  if (const auto* halves = dynamo::find<dynamo::StringSet>(item, attribute::kWorksOn)) {
    host.beat.works_on.insert(halves->values.begin(), halves->values.end());
  }
  host.in_flight_bound = bound_in(item);
  if (const auto* halves = dynamo::find<dynamo::StringSet>(item, attribute::kMoves)) {
    host.beat.moves.insert(halves->values.begin(), halves->values.end());
  }
  if (const auto* bell = dynamo::find<std::string>(item, attribute::kBell)) {
    host.bell = *bell;
  }
  if (const auto* figures = dynamo::find<dynamo::Map>(item, attribute::kFigures)) {
    for (const auto& [half, known] : *figures) {
      if (const auto* map = known.get<dynamo::Map>()) {
        host.figures.emplace(half, decode_figures(*map));
      }
    }
  }
  return host;
}

std::optional<dynamo::ItemWrite> ended_beat(const std::string& table, Item item, bool settled) {
  const auto counter = dynamo::whole_number(item, attribute::kCounter);
  if (!counter || item.contains(attribute::kEnded)) {
    return std::nullopt;
  }
  dynamo::ItemWrite request;
  request.table = table;
  request.condition = "#c = :counter";
  request.names.emplace("#c", std::string(attribute::kCounter));
  request.values.emplace(":counter", AttributeValue::number(*counter));
  demand_not_ended(request);
  // Whoever knows nothing of the mark sees a host that leaves, and waits for its lease.
  item.insert_or_assign(std::string(attribute::kLeaving), true);
  item.insert_or_assign(std::string(attribute::kEnded), settled);
  item.erase(std::string(attribute::kBell));
  item.erase(std::string(attribute::kFigures));
  request.item = std::move(item);
  return request;
}

Result<void> mark_ended(dynamo::Client& client, const table::QueueTable& place, const std::string& incarnation,
                        bool settled, Deadline deadline) {
  const Place where{std::string(kHosts), incarnation};
  auto found = client.get_item({.table = place.table, .key = where.key(), .consistent = true}, deadline);
  if (!found) {
    return table::store_error(place, found.error());
  }
  const auto mark = ended_beat(place.table, std::move(found->item), settled);
  if (!mark) {
    return {};
  }
  if (const auto written = client.write(*mark, deadline); !written) {
    return table::store_error(place, written.error());
  }
  return {};
}

void demand_not_ended(dynamo::ItemWrite& beat) {
  beat.condition += (beat.condition.empty() ? "" : " AND ") + std::string("attribute_not_exists(#e)");
  beat.names.emplace("#e", std::string(attribute::kEnded));
}

void demand_no_later_one(dynamo::ItemWrite& request, const Heartbeat& beat) {
  request.condition +=
      (request.condition.empty() ? "" : " AND ") + std::string("(attribute_not_exists(#c) OR #c <= :counter)");
  request.names.emplace("#c", std::string(attribute::kCounter));
  request.values.emplace(":counter", AttributeValue::number(beat.counter));
}

dynamo::ItemWrite remove_beat(const std::string& table, const Heartbeat& beat) {
  dynamo::ItemWrite request{.kind = dynamo::ItemWrite::Kind::remove};
  request.table = table;
  request.item = Place{std::string(kHosts), beat.host}.key();
  request.condition = "#c = :counter";
  request.names.emplace("#c", std::string(attribute::kCounter));
  request.values.emplace(":counter", AttributeValue::number(beat.counter));
  return request;
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
    OwnershipRow row{.value = {.part = *shard}, .drained = flag_of(item, attribute::kDrained), .item = item};
    const auto* owner = dynamo::find<std::string>(item, attribute::kOwner);
    const auto epoch = dynamo::whole_number(item, attribute::kEpoch);
    row.value.clean = flag_of(item, attribute::kClean);
    if (owner == nullptr || !epoch || *epoch < 0) {
      page.odd.push_back("the ownership item '" + place.sort + "' in partition '" + place.partition +
                         "' is only half there; its shard is taken as nobody's, and the item written anew");
      row.value.clean = false;
    }
    row.value.owner = owner == nullptr ? std::string() : *owner;
    row.value.epoch = std::max<std::int64_t>(0, epoch.value_or(0));
    row.value.left = row.value.clean ? 0 : bound_in(item);
    page.rows.emplace(*shard, std::move(row));
  }
  return page;
}

dynamo::ItemWrite ordered_mark(const table::QueueTable& place, Half half) {
  return {.table = place.table, .item = Place{ownership_partition(place.queue, half), std::string(kOrderedKey)}.key()};
}

dynamo::ItemWrite ownership_write(const std::string& table, const std::string& partition, const OwnershipRow& before,
                                  const Ownership& after, bool drained) {
  dynamo::ItemWrite request;
  request.table = table;
  request.item = Place{partition, ownership_sort(after.part)}.key();
  request.item.emplace(std::string(attribute::kOwner), after.owner);
  request.item.emplace(std::string(attribute::kEpoch), AttributeValue::number(after.epoch));
  request.item.emplace(std::string(attribute::kClean), after.clean);
  if (!after.clean) {
    put_number(request.item, attribute::kInFlightBound, after.left);
  }
  if (drained) {
    request.item.emplace(std::string(attribute::kDrained), true);
  }
  if (SLUICE_GUARD(leased_epoch)) {
    demand(request, before.item, attribute::kOwner);
    demand(request, before.item, attribute::kEpoch);
  }
  return request;
}

dynamo::ItemWrite first_numbers(const std::string& table, const std::string& queue, const Shards& shards) {
  dynamo::ItemWrite request;
  request.table = table;
  request.item = Place{ownership_partition(queue, Half::standard), std::string(kShardsKey)}.key();
  put_number(request.item, attribute::kShards, shards.count);
  put_number(request.item, attribute::kMostEver, shards.most_ever);
  put_number(request.item, attribute::kItemVersion, 1);
  request.condition = "attribute_not_exists(#p)";
  request.names.emplace("#p", std::string(attribute::kPartition));
  return request;
}

dynamo::ItemWrite numbers_write(const table::QueueTable& place, const Item& before, const Shards& after) {
  dynamo::ItemWrite request = first_numbers(place.table, place.queue, after);
  if (before.empty()) {
    return request;
  }
  const auto version = dynamo::whole_number(before, attribute::kItemVersion).value_or(0);
  request.item.insert_or_assign(std::string(attribute::kItemVersion), AttributeValue::number(version + 1));
  request.condition.clear();
  request.names.clear();
  for (const std::string_view name : {attribute::kShards, attribute::kMostEver, attribute::kItemVersion}) {
    demand(request, before, name);
  }
  return request;
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

std::string no_shards_in(const Item& item) {
  return "the item '" + std::string(kShardsKey) + "' in partition '" + Place::of(item).partition +
         "' says no number of shards from " + std::to_string(kLeastShards) + " to " + std::to_string(kMostShards) +
         "; what was known before stays, mend the item";
}

namespace {

/// What one host says of a half, and how old that is.
struct Word {
  OwnerFigures figures;
  Duration age{};
};

std::optional<Word> word_of(const dynamo::Item& heartbeat, const std::string& half, WallTime now, const OwnWord* own) {
  const auto* all = dynamo::find<dynamo::Map>(heartbeat, attribute::kFigures);
  const auto* figures = all == nullptr ? nullptr : dynamo::find<dynamo::Map>(*all, half);
  const auto written_at = time_of(heartbeat, attribute::kUpdated);
  const bool* leaving = dynamo::find<bool>(heartbeat, attribute::kLeaving);
  const auto* moves = dynamo::find<dynamo::StringSet>(heartbeat, attribute::kMoves);
  if (figures == nullptr || !written_at || (leaving != nullptr && *leaving) ||
      (moves != nullptr && std::find(moves->values.begin(), moves->values.end(), half) != moves->values.end())) {
    return std::nullopt;
  }
  if (own != nullptr && Place::of(heartbeat).sort == own->host) {
    return Word{own->figures, Duration::zero()};
  }
  // One of a clock that is farther ahead than that would be young for ever, also once its host is dead.
  const Duration ago = now - *written_at;
  const Duration lease = std::chrono::milliseconds(dynamo::whole_number(heartbeat, attribute::kLease).value_or(0));
  if (ago > lease || ago < -lease) {
    return std::nullopt;
  }
  const Duration age = std::max(ago, Duration::zero());
  return Word{decode_figures(*figures), age};
}

std::vector<Word> words_of(std::span<const dynamo::Item> heartbeats, const QueueAddress& address, WallTime now,
                           const OwnWordOf& own) {
  const std::string half = half_name(address.queue, address.half);
  const auto mine = own ? own(address.half) : std::nullopt;
  std::vector<Word> words;
  for (const dynamo::Item& heartbeat : heartbeats) {
    auto word = word_of(heartbeat, half, now, mine ? &*mine : nullptr);
    if (word && word->figures.shards > 0) {
      words.push_back(*word);
    }
  }
  return words;
}

void add_age(QueueStats& sum, Duration age) { sum.age = std::max(sum.age.value_or(Duration::zero()), age); }

void add(Announced& sum, const Word& word) {
  const OwnerFigures& figures = word.figures;
  QueueStats& stats = sum.stats;
  stats.ready += figures.ready;
  stats.delayed += figures.delayed;
  stats.in_flight += figures.in_flight;
  if (figures.oldest_due) {
    stats.oldest_ready = std::min(stats.oldest_ready.value_or(*figures.oldest_due), *figures.oldest_due);
  }
  stats.at_least = stats.at_least || figures.unread > 0;
  sum.held += figures.shards;
  add_age(stats, word.age + figures.looked_ago);
}

void add_dead(Announced& sum, const Word& word) {
  const DeadFigures& dead = word.figures.dead;
  sum.stats.ready += dead.records;
  sum.stats.at_least = sum.stats.at_least || dead.more > 0;
  sum.held += dead.shards;
  add_age(sum.stats, word.age + dead.looked_ago);
}

}  // namespace

std::optional<Announced> announced_stats(std::span<const dynamo::Item> heartbeats, const QueueAddress& address,
                                         WallTime now, const OwnWordOf& own) {
  auto words = words_of(heartbeats, address, now, own);
  const bool by_standard = words.empty() && address.half == Half::dlq;
  if (by_standard) {
    words = words_of(heartbeats, {address.queue, Half::standard}, now, own);
  }
  Announced sum;
  for (const Word& word : words) {
    by_standard ? add_dead(sum, word) : add(sum, word);
    sum.in_use = std::max(sum.in_use, word.figures.in_use);
  }
  // Hosts of an older version say nothing of dead letters.
  const bool any = by_standard ? sum.in_use > 0 : !words.empty();
  return any ? std::optional(sum) : std::nullopt;
}

}  // namespace sluice::queue::leased
