#include "host/stores/leased/leased_queue.hpp"

#include <algorithm>

#include "base/text/utf8.hpp"
#include "dynamo/item_reading.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {
namespace {

std::string shown(const dynamo::Item& item, std::string_view name) {
  const auto found = item.find(name);
  if (found == item.end()) {
    return "nothing";
  }
  const auto* number = found->second.get<dynamo::Number>();
  return number == nullptr ? "what is no number" : number->text.substr(0, 40);
}

}  // namespace

Result<Shards> shards_of(const dynamo::Item& item, const table::QueueTable& place, std::uint32_t configured) {
  if (item.empty()) {
    return Shards{configured, configured};
  }
  if (const auto shards = shards_in(item)) {
    return *shards;
  }
  return Error(ErrorCode::invalid, "table '" + place.table + "': the item " +
                                       ownership_partition(place.queue, Half::standard) + "/" +
                                       std::string(kShardsKey) + " says that queue '" + place.queue + "' has " +
                                       shown(item, attribute::kShards) + " shards, and a queue has " +
                                       std::to_string(kLeastShards) + " to " + std::to_string(kMostShards) +
                                       "; put the number right in its attribute " + std::string(attribute::kShards) +
                                       ", or delete the item for the configured " + std::to_string(configured));
}

Result<ShardChange> change_shards(dynamo::Client& client, const table::QueueTable& place, std::uint32_t count,
                                  std::uint32_t configured, Deadline deadline) {
  dynamo::Item before;
  std::uint32_t most_ever = count;
  for (const Half half : {Half::standard, Half::dlq}) {
    SLUICE_TRY(items, table::checked(place, read_partition(client, place.table, ownership_partition(place.queue, half),
                                                           true, deadline)));
    OwnershipPage page = decode_ownership(*items);
    most_ever = std::max(most_ever, page.beyond());
    if (page.shards) {
      before = std::move(*page.shards);
    }
  }
  // Where nothing is written down yet, what was sent lies in the configured ones.
  ShardChange change{.before = shards_in(before), .after = {}};
  const std::int64_t said = dynamo::whole_number(before, attribute::kMostEver).value_or(count);
  const std::int64_t stood = before.empty() ? configured : change.before ? change.before->most_ever : said;
  change.after = {count, static_cast<std::uint32_t>(std::clamp<std::int64_t>(stood, most_ever, kMostShards))};
  if (change.before == change.after) {
    return change;
  }
  const auto written = write_numbers(client, place, before, change.after, deadline);
  if (!written && written.error().kind == dynamo::ErrorKind::conditional_check_failed) {
    return Error(ErrorCode::conflict, "table '" + place.table +
                                          "': somebody else changed the number of shards of queue '" + place.queue +
                                          "' at the same time; look at it and try again");
  }
  if (!written) {
    return table::store_error(place, written.error());
  }
  change.written = true;
  return change;
}

Result<Shards> ShardCount::read(bool consistent, Deadline deadline) {
  const dynamo::GetItemRequest request{
      .table = place_.table, .key = shards_place(place_.queue).key(), .consistent = consistent};
  SLUICE_TRY(found, table::checked(place_, client_.get_item(request, deadline)));
  return learn(found->item);
}

Result<Shards> ShardCount::learn(const dynamo::Item& item) {
  SLUICE_TRY(shards, shards_of(item, place_, configured_));
  const MutexLock lock(mutex_);
  known_ = *shards;
  to_write_ = item.empty();
  return *shards;
}

Shards ShardCount::last() {
  const MutexLock lock(mutex_);
  return known_.value_or(Shards{configured_, configured_});
}

Result<Shards> ShardCount::get(Deadline deadline) {
  const SteadyTime now = clock_.steady_now();
  std::optional<Shards> known;
  {
    const MutexLock lock(mutex_);
    known = known_;
    if (known && now < read_at_ + kKeep) {
      return *known;
    }
    read_at_ = now;  // one asks, the others go on with what is known
  }
  auto shards = read(false, deadline);
  return shards || !known || shards.error().code() == ErrorCode::invalid ? shards : Result<Shards>(*known);
}

Result<Shards> ShardCount::settled(Deadline deadline) {
  auto known = get(deadline);
  {
    const MutexLock lock(mutex_);
    if (!known || !to_write_) {
      return known;
    }
    to_write_ = false;
  }
  const auto written = write_numbers(client_, place_, {}, *known, deadline);
  const bool others = !written && written.error().kind == dynamo::ErrorKind::conditional_check_failed;
  return others ? read(true, deadline) : known;
}

}  // namespace sluice::queue::leased
