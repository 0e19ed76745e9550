#include "host/fleet/sweeper.hpp"

#include "host/fleet/fleet.hpp"

namespace sluice::fleet {

std::vector<queue::Notice> Sweeper::due(const std::vector<queue::Notice>& hosts, WallTime board_now, SteadyTime now) {
  std::vector<queue::Notice> old;
  std::map<std::string, Sight> seen;
  for (const queue::Notice& notice : hosts) {
    if (notice.key == own_) {
      continue;
    }
    const auto before = seen_.find(notice.key);
    const bool same = before != seen_.end() && before->second.version == notice.version;
    const Sight sight = same ? before->second : Sight{notice.version, now};
    const auto record = read_record(notice.text);
    // A host with much to tell on many billed boards writes seldom.
    const Duration every = record ? record->every : Duration::zero();
    const bool aged = board_now - notice.posted_at > kKeepSilent;
    const bool stood_still = now - sight.since > kKeepSilent;
    if ((aged || stood_still) &&
        pulse_of(stood_still ? now - sight.since : board_now - notice.posted_at, every) == Pulse::silent) {
      old.push_back(notice);
    } else {
      seen.emplace(notice.key, sight);
    }
  }
  seen_ = std::move(seen);
  return old;
}

}  // namespace sluice::fleet
