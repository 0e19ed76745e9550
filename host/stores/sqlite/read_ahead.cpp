#include "host/stores/sqlite/read_ahead.hpp"

#include <algorithm>
#include <utility>

#include "host/stores/sqlite/ready_rows.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

std::vector<HeadRead> ReadAhead::heads(const QueueAddress& address, const ClaimRequest& request, WallTime now) {
  std::vector<HeadRead> heads;
  const auto queue = names_.find(address.queue);
  const std::int64_t half = queue ? half_of(*queue, address.half) : 0;
  if (!queue || Lanes::kept_in(names_.kept(), half) != Kept::group) {
    return heads;
  }
  const std::size_t most = std::min(request.max, kClaimLimit);
  const std::size_t most_bytes = std::min(request.bytes, kClaimBytes);
  std::size_t bytes = 0;
  heads.reserve(std::min<std::size_t>(most, 1'000));
  oldest_.bind(half, stored(now));
  while (heads.size() < most && bytes < most_bytes && oldest_.row()) {
    // One that cannot be read is left to the claim.
    if (auto delivery = read_delivery(oldest_, Row::with_priority)) {
      bytes += delivery->message.body.size();
      heads.push_back({.place = {oldest_.integer(10), oldest_.integer(0)},
                       .version = oldest_.optional_integer(7),
                       .delivery = std::move(*delivery)});
    }
  }
  oldest_.reset();
  return heads;
}

bool ReadAheadPolicy::wanted(const ClaimRequest& request) {
  if (request.rules.order != Order::group) {
    return false;
  }
  const MutexLock lock(mutex_);
  if (request.max < from_ || found_ < from_) {
    return false;
  }
  if (pass_ > 0) {
    --pass_;
    return false;
  }
  return true;
}

void ReadAheadPolicy::claimed(std::size_t found, const HeadsRead* read) {
  const MutexLock lock(mutex_);
  found_ = found;
  if (read == nullptr) {
    return;
  }
  if (read->used >= found / 2) {
    passes_ = 0;
  } else {
    passes_ = std::clamp<std::size_t>(passes_ * 2, 1, kMostPassed);
    pass_ = passes_;
  }
}

}  // namespace sluice::queue::sqlite
