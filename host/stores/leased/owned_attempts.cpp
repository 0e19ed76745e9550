// What an OwnedHalf writes before it hands something out: next to nothing.

#include <utility>

#include "host/stores/leased/leased_writes.hpp"
#include "host/stores/leased/owned_half.hpp"
#include "host/stores/leased/ownership_items.hpp"

namespace sluice::queue::leased {

// A suspect's start is counted in its record before it runs: it may be the last thing that this host does. And some
// unique keys are free again once their message has been claimed.
void OwnedHalf::write_claims(std::vector<Delivery>& deliveries, Deadline deadline) {
  std::vector<RecordWrite> writes;
  std::vector<std::string> nonces;
  std::vector<Place> places;
  std::vector<std::size_t> which;
  const WallTime now = parts_.clock.wall_now();
  {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < deliveries.size(); ++i) {
      const auto out = outs_.find(deliveries[i].receipt.locator);
      if (out == outs_.end() || !out->second.writes_claim) {
        continue;
      }
      const Held& held = out->second.held;
      // Its owner's lease covers it, so that it has none of its own.
      core::StateChange change;
      change.receives = deliveries[i].message.attempt;
      change.received_at.emplace(now);
      change.hidden_until.emplace();
      if (deliveries[i].suspect) {
        change.suspect = true;
      }
      nonces.push_back(parts_.nonces.next());
      writes.push_back(
          update_message(place_.table, {held.place, held.version}, nonces.back(), now, attributes_of(change, false)));
      places.push_back(held.place);
      which.push_back(i);
    }
  }
  if (writes.empty()) {
    return;
  }
  const auto outcomes = parts_.runner.run(std::move(writes), table::Repetition::until_known, deadline);
  std::vector<bool> written;
  for (std::size_t k = 0; k < which.size(); ++k) {
    bool done = outcomes[k].fate == table::StatementFate::done;
    if (!done && outcomes[k].fate != table::StatementFate::failed) {
      const auto item = parts_.client.get_item({.table = place_.table, .key = places[k].key()}, deadline);
      done = item && Candidate::of(item->item).nonce == nonces[k];
    }
    written.push_back(done);
  }
  const bool may_start = coordinator_.may_start();
  std::set<std::size_t> dropped;
  const MutexLock lock(mutex_);
  for (std::size_t k = 0; k < which.size(); ++k) {
    if (!claim_written(deliveries[which[k]], written[k] && may_start)) {
      dropped.insert(which[k]);
    }
  }
  for (auto place = dropped.rbegin(); place != dropped.rend(); ++place) {
    deliveries.erase(deliveries.begin() + static_cast<std::ptrdiff_t>(*place));
  }
}

bool OwnedHalf::claim_written(Delivery& delivery, bool written) {
  const auto found = outs_.find(delivery.receipt.locator);
  if (found == outs_.end()) {
    return false;
  }
  Out& out = found->second;
  if (!written || out.lost) {
    const Out dropped = std::move(out);
    outs_.erase(found);
    if (!dropped.lost) {
      const Return unknown{.kind = Return::Kind::unknown, .version = dropped.held.version};
      book_.returned(dropped.spot, unknown, parts_.clock.wall_now(), machine_.steady_now());
    }
    return false;
  }
  out.held.version += 1;
  out.held.receive_count = delivery.message.attempt;
  out.held.counted = true;
  out.held.marked = out.held.marked || delivery.suspect;
  delivery.receipt.version = out.held.version;
  return true;
}

void OwnedHalf::mark_ordered(Deadline deadline) {
  {
    const MutexLock lock(mutex_);
    if (ordered_) {
      return;
    }
  }
  if (parts_.client.put_item(ordered_mark(place_, address().half), deadline)) {
    const MutexLock lock(mutex_);
    ordered_ = true;
  }
}

}  // namespace sluice::queue::leased
