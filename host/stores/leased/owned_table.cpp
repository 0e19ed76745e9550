#include "host/stores/leased/owned_table.hpp"

#include <algorithm>
#include <utility>

namespace sluice::queue::leased {

OwnedTable::OwnedTable(Settings settings, table::StoreParts parts, const Clock& machine, Random& random)
    : settings_(std::move(settings)),
      parts_(parts),
      machine_(machine),
      random_(random),
      keeper_(settings_.keeping, parts.client, machine, parts.clock),
      rounds_(keeper_, machine) {}

OwnedTable::~OwnedTable() {
  std::jthread thread;
  {
    const MutexLock lock(mutex_);
    thread = std::move(thread_);
  }
}

OwnedHalf& OwnedTable::half(const OwnedHalf::Settings& settings, const table::QueueTable& place,
                            const OwnerWriter& writer) {
  const MutexLock lock(mutex_);
  auto& half = halves_[settings.address];
  if (!half) {
    half = std::make_unique<OwnedHalf>(settings, parts_, place, keeper_, writer, machine_, random_);
  }
  return *half;
}

std::uint32_t OwnedTable::start(OwnedHalf& half, SourceEvents events) {
  const std::uint32_t source = half.enter(std::move(events));
  {
    const MutexLock lock(mutex_);
    ++working_[&half];
  }
  // What cannot be done now is done later, by whoever tends.
  keeper_.join(half, Deadline::after(machine_, KeeperRounds::kCall));
  if (settings_.own_thread) {
    const MutexLock lock(mutex_);
    if (!thread_.joinable()) {
      thread_ =
          std::jthread([this](const std::stop_token& stop) { rounds_.run(stop, [this] { count_dead_letters(); }); });
    }
  }
  return source;
}

void OwnedTable::stop(OwnedHalf& half, std::uint32_t source) {
  half.exit(source);
  {
    const MutexLock lock(mutex_);
    const auto found = working_.find(&half);
    if (found == working_.end() || --found->second > 0) {
      return;
    }
    working_.erase(found);
  }
  // What is still out keeps its shard until it is settled, or until this host's lease has ended.
  const bool left = rounds_.leave(half, [&half](SteadyTime now) { return half.figures(now).in_flight > 0; });
  if (left) {
    keeper_.forget(half);
  }
  // Where something is left to be handed over, the thread goes on with it.
  std::jthread thread;
  {
    const MutexLock lock(mutex_);
    if (left && working_.empty()) {
      thread = std::move(thread_);
    }
  }
}

std::optional<OwnWord> OwnedTable::word_of(const QueueAddress& address) {
  const OwnedHalf* half = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto found = halves_.find(address);
    if (found == halves_.end() || !working_.contains(found->second.get())) {
      return std::nullopt;
    }
    half = found->second.get();
  }
  return OwnWord{.host = keeper_.host(), .figures = half->figures(machine_.steady_now())};
}

void OwnedTable::tend(Deadline deadline) {
  bool here = !settings_.own_thread;
  if (!here) {
    const MutexLock lock(mutex_);
    here = !thread_.joinable();
  }
  if (here) {
    keeper_.tend(false, deadline.earlier(Deadline::after(machine_, KeeperRounds::kCall)));
    count_dead_letters();
  }
}

void OwnedTable::count_dead_letters() {
  std::vector<OwnedHalf*> halves;
  {
    const MutexLock lock(mutex_);
    for (const auto& [half, sources] : working_) {
      halves.push_back(half);
    }
  }
  const Deadline deadline = Deadline::after(machine_, settings_.keeping.lease / 10);
  for (OwnedHalf* half : halves) {
    half->count_dead_letters(deadline);
  }
}

std::optional<SteadyTime> OwnedTable::due_at() const {
  return settings_.own_thread ? std::nullopt : std::optional(keeper_.due_at());
}

}  // namespace sluice::queue::leased
