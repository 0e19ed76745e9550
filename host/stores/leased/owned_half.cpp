#include "host/stores/leased/owned_half.hpp"

#include <algorithm>
#include <utility>

namespace sluice::queue::leased {
namespace {

constexpr Duration kBusy = std::chrono::seconds(5);
constexpr int kLocatorShift = 32;

}  // namespace

OwnedHalf::OwnedHalf(Settings settings, table::StoreParts parts, table::QueueTable place, OwnershipCoordinator& keeper,
                     OwnerWriter writer, const Clock& machine, Random& random)
    : settings_(std::move(settings)),
      parts_(parts),
      place_(std::move(place)),
      coordinator_(keeper),
      writer_(std::move(writer)),
      machine_(machine),
      locator_base_(static_cast<std::int64_t>((random.next() >> 33U) | 1U) << kLocatorShift),
      name_(half_name(settings_.address.queue, settings_.address.half)),
      remarks_(settings_.warn),
      keeper_(keeper.host(), name_),
      dead_letters_(settings_.address.queue, place_.table) {}

std::uint32_t OwnedHalf::enter(SourceEvents events) {
  const MutexLock lock(mutex_);
  sources_.emplace(++entered_, std::make_shared<EventGate>(std::move(events)));
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
    gate = std::move(found->second);
    sources_.erase(found);
    asked_.erase(source);
    last = sources_.empty();
  }
  gate->close();
  return last;
}

void OwnedHalf::rung() {
  const MutexLock lock(mutex_);
  for (auto& [number, shard] : shards_) {
    shard.reader.rung(machine_.steady_now());
    shard.holds_read = shard.holds_read && shard.holds.empty();
  }
}

void OwnedHalf::tell(const News& news) {
  std::map<std::uint32_t, std::shared_ptr<EventGate>> sources;
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

void OwnedHalf::gain(std::uint32_t shard, InFlightBound left, bool written_before, SteadyTime now, News& news) {
  shards_.insert_or_assign(shard, Shard{.reader = ShardReader(now, written_before), .number = ++taken_});
  book_.take_shard(shard, left, parts_.clock.wall_now());
  dead_letters_.gained(shard, now);
  news.ready = true;
}

void OwnedHalf::lose(std::uint32_t shard, News& news) {
  const auto spots = book_.lose_shard(shard);
  shards_.erase(shard);
  dead_letters_.lost(shard);
  if (spots.empty()) {
    return;
  }
  const std::set<Spot> gone(spots.begin(), spots.end());
  for (auto& [locator, out] : outs_) {
    if (!out.lost && gone.contains(out.spot)) {
      out.lost = true;
      lost_.push_back(locator);
      news.lost[out.source].push_back({.id = out.id, .version = out.held.version, .locator = locator});
    }
  }
  constexpr std::size_t kMostLost = 10'000;
  while (lost_.size() > kMostLost) {
    outs_.erase(lost_.front());
    lost_.pop_front();
  }
}

// Brings what is read and handed out into line with what the keeper has.
void OwnedHalf::follow_keeper(std::span<const Ownership> read, SteadyTime now, News& news) {
  for (const std::uint32_t shard : keeper_.take_lost()) {
    lose(shard, news);
  }
  for (const std::uint32_t shard : keeper_.shards()) {
    const auto found = shards_.find(shard);
    const bool closing = keeper_.keeping(shard) == ShardKeeper::Keeping::closing;
    if (found == shards_.end()) {
      gain(shard, OwnershipCoordinator::left_in(read, shard), true, now, news);
    } else if (found->second.closing && !closing) {
      // It stays after all: what was dropped is read anew.
      found->second = Shard{.reader = ShardReader(now, true), .number = ++taken_};
      book_.reopen_shard(shard);
      continue;
    }
    if (closing) {
      shards_.at(shard).closing = true;
      book_.close_shard(shard);
    }
  }
}

std::vector<ShardKeeper::Move> OwnedHalf::look(std::span<const Ownership> read, std::uint32_t /*count*/,
                                               Membership& members, SteadyTime now) {
  News news;
  std::vector<ShardKeeper::Move> moves;
  {
    const MutexLock lock(mutex_);
    count_ = static_cast<std::uint32_t>(read.size());
    moves = keeper_.look(read, members, now);
    follow_keeper(read, now, news);
  }
  tell(news);
  return moves;
}

void OwnedHalf::moved(const ShardKeeper::Move& move, InFlightBound left, SteadyTime now) {
  News news;
  {
    const MutexLock lock(mutex_);
    const std::uint32_t shard = move.after.shard;
    const bool had = keeper_.keeping(shard) != ShardKeeper::Keeping::none;
    keeper_.moved(move);
    const bool has = keeper_.keeping(shard) != ShardKeeper::Keeping::none;
    if (has && !had) {
      if (left > 0) {
        const std::string by = move.before.owner.empty() ? "its last owner" : "'" + move.before.owner + "'";
        remarks_.say("shard " + std::to_string(shard) + " of '" + name_ + "' was not handed over by " + by +
                         ": what lies among its first " + std::to_string(left) +
                         " messages may have been at work and runs alone",
                     now);
      }
      gain(shard, left, move.before.epoch > 0 || !move.after.clean, now, news);
    } else if (had && !has) {
      lose(shard, news);
    }
  }
  tell(news);
}

std::vector<ShardKeeper::Move> OwnedHalf::hand_overs() {
  const MutexLock lock(mutex_);
  std::vector<ShardKeeper::Move> moves;
  for (const auto& [number, shard] : shards_) {
    if (shard.closing && book_.out_of(number) == 0) {
      moves.push_back(keeper_.hand_over(number));
      if (book_.inherits(number)) {
        moves.back().after.clean = false;
        moves.back().after.left = book_.left_in(number);
      }
    }
  }
  return moves;
}

std::optional<ShardKeeper::Move> OwnedHalf::retirement(std::uint32_t shard, SteadyTime /*now*/) {
  const MutexLock lock(mutex_);
  const auto found = shards_.find(shard);
  if (found == shards_.end() || found->second.closing || book_.holds_any(shard)) {
    return std::nullopt;
  }
  if (!found->second.reader.found_empty()) {
    return std::nullopt;
  }
  return keeper_.give_up(shard);
}

void OwnedHalf::lease_lost(SteadyTime now) {
  News news;
  {
    const MutexLock lock(mutex_);
    keeper_.lease_lost();
    follow_keeper({}, now, news);
  }
  tell(news);
}

bool OwnedHalf::expects() const {
  const MutexLock lock(mutex_);
  return keeper_.expects();
}

bool OwnedHalf::busy(SteadyTime now) const {
  const MutexLock lock(mutex_);
  return handed_out_at_ && now < *handed_out_at_ + kBusy;
}

bool OwnedHalf::owns_any() const {
  const MutexLock lock(mutex_);
  return !shards_.empty();
}

InFlightBound OwnedHalf::in_flight_bound() {
  const MutexLock lock(mutex_);
  return book_.in_flight_bound();
}

}  // namespace sluice::queue::leased
