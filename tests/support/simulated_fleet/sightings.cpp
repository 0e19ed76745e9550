#include "tests/support/simulated_fleet/sightings.hpp"

#include <algorithm>

#include "host/stores/leased/leased_schema.hpp"
#include "tests/support/dynamodb_model/values.hpp"

namespace sluice::test::sim {
namespace {

// What DynamoDB bills for each item, and each entry of an index, beside its bytes.
constexpr double kBilledBesides = 100;

double stored_bytes(const dynamo::Item* item, std::size_t indexes) {
  return item == nullptr
             ? 0
             : (static_cast<double>(model::item_bytes(*item)) + kBilledBesides) * static_cast<double>(1 + indexes);
}

}  // namespace

Duration Report::latency(double share) const {
  if (latencies.empty()) {
    return {};
  }
  std::vector<Duration> sorted = latencies;
  std::sort(sorted.begin(), sorted.end());
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

Duration Report::longest_pause() const {
  std::size_t longest = 0;
  std::size_t pause = 0;
  for (const std::uint32_t begun : per_tick) {
    pause = begun == 0 ? pause + 1 : 0;
    longest = std::max(longest, pause);
  }
  return Sightings::kTick * static_cast<std::int64_t>(longest);
}

void Sightings::sent(const std::string& id, SteadyTime at) {
  ++seen_.sent;
  if (!handled_.contains(id)) {
    open_.insert(id);
    sent_at_.emplace(id, at);
  }
}

void Sightings::began(const std::string& id, SteadyTime at) {
  if (again_.erase(id) > 0) {
    return;
  }
  if (!handled_.insert(id).second) {
    ++seen_.twice;
    return;
  }
  open_.erase(id);
  ++seen_.handled;
  const auto tick = static_cast<std::size_t>(std::max<Duration>(Duration::zero(), at - measured_from_) / kTick);
  seen_.per_tick.resize(std::max(seen_.per_tick.size(), tick + 1));
  ++seen_.per_tick[tick];
  if (const auto found = sent_at_.find(id); found != sent_at_.end()) {
    if (found->second >= measured_from_) {
      seen_.latencies.push_back(std::max<Duration>(Duration::zero(), at - found->second));
    }
    sent_at_.erase(found);
  }
}

void Sightings::failed(const std::string& id) {
  ++seen_.failed;
  again_.insert(id);
}

void Sightings::changed(const dynamo::Item* before, const dynamo::Item* after, std::size_t indexes, SteadyTime at) {
  // A heartbeat has a number of that name.
  const bool owned = after != nullptr && dynamo::find<std::string>(*after, queue::leased::attribute::kOwner) != nullptr;
  seen_.hand_overs += owned ? 1 : 0;
  note_storage(at);
  stored_bytes_ += stored_bytes(after, indexes) - stored_bytes(before, indexes);
}

void Sightings::note_storage(SteadyTime now) {
  if (now > stored_since_) {
    seen_.byte_seconds += stored_bytes_ * std::chrono::duration<double>(now - stored_since_).count();
    stored_since_ = now;
  }
}

void Sightings::measure(SteadyTime now) {
  note_storage(now);
  seen_ = {};
  measured_from_ = now;
}

Report Sightings::report(SteadyTime now) {
  note_storage(now);
  Report report = seen_;
  report.seconds = std::chrono::duration<double>(now - measured_from_).count();
  report.unhandled = open_.size();
  return report;
}

}  // namespace sluice::test::sim
