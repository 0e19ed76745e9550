#include "host/stores/sqlite/quiet_file.hpp"

namespace sluice::queue::sqlite {

namespace {

// What a claim does beside claiming, such as sweeping, waits no longer than this.
constexpr Duration kBelieved = std::chrono::seconds(10);

}  // namespace

std::optional<Claimed> QuietFile::same_again(const ClaimRequest& request, const Moment& now) {
  const MutexLock lock(mutex_);
  if (!last_ || !now.version || request.max == 0) {
    return std::nullopt;
  }
  const Look& last = *last_;
  const bool same = last.suspects == request.suspects && last.counts == request.counts && last.rules == request.rules &&
                    last.moment.heard == now.heard && last.moment.version == now.version;
  // A wall clock that was set back may make messages due later than was said.
  const bool soon = now.steady - last.moment.steady < kBelieved && now.wall >= last.moment.wall;
  if (!same || !soon || (last.due && *last.due <= now.wall)) {
    return std::nullopt;
  }
  Claimed nothing;
  if (last.due) {
    nothing.next_due = *last.due - now.wall;
  }
  return nothing;
}

void QuietFile::looked(const ClaimRequest& request, const Moment& begun, const Claimed& claimed) {
  const bool passed_over = claimed.next_due && *claimed.next_due <= Duration::zero();
  const MutexLock lock(mutex_);
  last_.reset();
  if (begun.version && request.max > 0 && claimed.deliveries.empty() && !passed_over) {
    // Said a little too early where the claim had to wait, as it counts from when it began.
    last_ = Look{begun, request.suspects, request.counts, request.rules,
                 claimed.next_due ? std::optional(begun.wall + *claimed.next_due) : std::nullopt};
  }
}

void QuietFile::forget() {
  const MutexLock lock(mutex_);
  last_.reset();
}

}  // namespace sluice::queue::sqlite
