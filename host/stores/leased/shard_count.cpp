#include "host/stores/leased/shard_count.hpp"

#include "base/text/utf8.hpp"
#include "host/stores/leased/leased_record.hpp"

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

Result<Shards> shards_of(const dynamo::Item& item, const dynamomq::QueueTable& place, std::uint32_t configured) {
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

Result<ShardCount::Reading> ShardCount::read(bool consistent, Deadline deadline) const {
  const Place where{ownership_partition(place_.queue, Half::standard), std::string(kShardsKey)};
  const auto found = client_.get_item({.table = place_.table, .key = where.key(), .consistent = consistent}, deadline);
  if (!found) {
    return dynamomq::store_error(place_, found.error());
  }
  const auto shards = shards_of(found->item, place_, configured_);
  return shards ? Result<Reading>(Reading{*shards, found->item.empty()}) : shards.error();
}

Shards ShardCount::note(const Reading& reading) {
  const MutexLock lock(mutex_);
  known_ = reading.shards;
  to_write_ = reading.absent && !tried_;
  return reading.shards;
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
  auto read_now = read(false, deadline);
  if (!read_now) {
    const bool wrong = read_now.error().code() == ErrorCode::invalid;
    return known && !wrong ? Result<Shards>(*known) : read_now.error();
  }
  return note(*read_now);
}

Result<Shards> ShardCount::settled(Deadline deadline) {
  auto known = get(deadline);
  {
    const MutexLock lock(mutex_);
    if (!known || !to_write_) {
      return known;
    }
    to_write_ = false;
    tried_ = true;
  }
  const auto written = client_.put_item(first_numbers(place_.table, place_.queue, *known), deadline);
  const bool others = !written && written.error().kind == dynamo::ErrorKind::conditional_check_failed;
  return others ? refresh(deadline) : known;
}

Result<Shards> ShardCount::refresh(Deadline deadline) {
  const SteadyTime now = clock_.steady_now();
  auto read_now = read(true, deadline);
  if (!read_now) {
    return read_now.error();
  }
  const Shards shards = note(*read_now);
  const MutexLock lock(mutex_);
  read_at_ = now;
  return shards;
}

}  // namespace sluice::queue::leased
