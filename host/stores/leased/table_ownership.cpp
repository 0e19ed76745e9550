#include "host/stores/leased/table_ownership.hpp"

#include <algorithm>

#include "base/ranges.hpp"

namespace sluice::queue::leased {

owned::OwnershipRecords::Written TableOwnership::write_beat(const Heartbeat& beat, bool anew, Deadline deadline) {
  Heartbeat own = beat;
  own.written_at = time_.wall_now();
  const auto written = client_.write(beat_write(table_, own, anew), deadline);
  if (!written && written.error().kind == dynamo::ErrorKind::conditional_check_failed) {
    return Written::marked;
  }
  {
    const MutexLock lock(mutex_);
    beat_trouble_ = written ? std::nullopt : std::optional(written.error());
  }
  if (!written) {
    tell("no heartbeat can be written", written.error());
    return Written::no;
  }
  time_.warn_if_wrong();
  return Written::yes;
}

std::optional<std::vector<Heartbeat>> TableOwnership::read_beats(bool consistent, Deadline deadline) {
  const auto items = read(std::string(kHosts), consistent, deadline);
  if (!items) {
    return std::nullopt;
  }
  std::vector<Heartbeat> beats;
  for (const dynamo::Item& item : *items) {
    if (auto beat = decode_beat(item)) {
      beats.push_back(std::move(*beat));
    } else {
      remarks_.say("the heartbeat '" + Place::of(item).sort + "' in table '" + table_ +
                   "' is only half there, and counts for nothing; remove it if its host is gone");
    }
  }
  return beats;
}

void TableOwnership::remove_beat(const Heartbeat& beat, Deadline deadline) {
  const dynamo::ItemWrite removal{.kind = dynamo::ItemWrite::Kind::remove,
                                  .table = table_,
                                  .item = Place{std::string(kHosts), beat.host}.key(),
                                  .condition = "#c = :counter",
                                  .names = {{"#c", std::string(attribute::kCounter)}},
                                  .values = {{":counter", dynamo::AttributeValue::number(beat.counter)}}};
  static_cast<void>(client_.write(removal, deadline));
}

std::optional<owned::OwnershipLook> TableOwnership::look_at(const QueueAddress& half, Deadline deadline) {
  const auto items = read(ownership_partition(half.queue, half.half), true, deadline);
  if (!items) {
    return std::nullopt;
  }
  const OwnershipPage page = decode_ownership(*items);
  const auto numbers = numbers_of(half, page, deadline);
  if (!numbers) {
    return std::nullopt;
  }
  for (const std::string& odd : page.odd) {
    remarks_.say("table '" + table_ + "': " + odd);
  }
  const std::uint32_t configured = queue_of_(half.queue).shards.configured();
  const std::string count = std::to_string(numbers->count);
  if (std::exchange(counts_[half], numbers->count) != numbers->count && numbers->count != configured) {
    remarks_.say("queue '" + half.queue + "' has " + count + " shards, as the item '" + std::string(kShardsKey) +
                 "' in partition '" + ownership_partition(half.queue, Half::standard) + "' of table '" + table_ +
                 "' says, and not the " + std::to_string(configured) +
                 " of this host's configuration, which the host passes over; put shards = " + count +
                 " under [queues." + half.queue + "], or the number that you want into the item");
  }
  std::uint32_t all = std::max(numbers->most_ever, page.beyond());
  while (all > numbers->count && page.of(all - 1).drained) {
    --all;
  }
  owned::OwnershipLook look{.shards = {}, .count = numbers->count};
  for (std::uint32_t shard = 0; shard < all; ++shard) {
    look.shards.push_back(page.of(shard));
  }
  return look;
}

// Who looks first writes down how many there are, so that hosts and senders with other numbers follow it. One that may
// not goes on with its own number.
std::optional<Shards> TableOwnership::numbers_of(const QueueAddress& half, const OwnershipPage& page,
                                                 Deadline deadline) {
  ShardCount& shards = queue_of_(half.queue).shards;
  dynamo::Item item = page.shards.value_or(dynamo::Item());
  if (half.half == Half::dlq) {
    auto found = client_.get_item({.table = table_, .key = shards_place(half.queue).key()}, deadline);
    if (!found) {
      tell("the number of shards of queue '" + half.queue + "' cannot be read", found.error());
      return std::nullopt;
    }
    item = std::move(found->item);
  }
  const auto told = shards.learn(item);
  if (!told) {
    remarks_.say(told.error().message() + "; what was known before stays meanwhile");
    return shards.last();
  }
  Shards numbers = *told;
  if (item.empty()) {
    const table::QueueTable place{half.queue, table_, {}, {}};
    numbers.most_ever = std::max(numbers.most_ever, page.beyond());
    const auto written = write_numbers(client_, place, item, numbers, deadline);
    if (written) {
      static_cast<void>(shards.learn(numbers_write(place, item, numbers).item));
    } else if (written.error().kind == dynamo::ErrorKind::conditional_check_failed) {
      return std::nullopt;  // the next look reads it
    } else {
      tell("the number of shards of queue '" + half.queue + "' cannot be written down", written.error());
    }
  }
  return numbers;
}

std::vector<bool> TableOwnership::move(const QueueAddress& half, std::span<const owned::PartKeeper::Move> moves,
                                       Deadline deadline) {
  const std::string partition = ownership_partition(half.queue, half.half);
  const auto written = client_.write_each(
      mapped(moves, [&](const auto& move) { return ownership_write(table_, partition, move.before, move.after); }),
      deadline);
  std::vector<bool> made;
  for (std::size_t i = 0; i < moves.size(); ++i) {
    made.push_back(written[i].has_value());
    if (!written[i] && written[i].error().kind != dynamo::ErrorKind::conditional_check_failed) {
      tell("shard " + std::to_string(moves[i].after.part) + " of '" + owned::half_name(half) + "' cannot change hands",
           written[i].error());
    }
  }
  return made;
}

std::optional<std::vector<dynamo::Item>> TableOwnership::read(const std::string& partition, bool consistent,
                                                              Deadline deadline) {
  auto items = read_partition(client_, table_, partition, consistent, deadline);
  {
    const MutexLock lock(mutex_);
    look_trouble_ = items ? std::nullopt : std::optional(items.error());
  }
  if (!items) {
    tell("partition '" + partition + "' cannot be read", items.error());
    return std::nullopt;
  }
  return std::move(*items);
}

std::optional<dynamo::Error> TableOwnership::trouble() const {
  const MutexLock lock(mutex_);
  return beat_trouble_ ? beat_trouble_ : look_trouble_;
}

void TableOwnership::tell(const std::string& what, const dynamo::Error& error) {
  const std::string about = "table '" + table_ + "': " + what;
  remarks_.say(about, about + ": " + error.message);
}

}  // namespace sluice::queue::leased
