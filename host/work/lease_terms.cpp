#include "host/work/lease_terms.hpp"

#include <algorithm>
#include <utility>

namespace sluice::work {
namespace {

constexpr Duration kMaxMargin = std::chrono::seconds(1);
constexpr Duration kMaxCall = std::chrono::seconds(10);

}  // namespace

LeaseTerms::LeaseTerms(std::vector<QueueLease> queues)
    : queues_(std::move(queues)),
      visibility_(std::min_element(queues_.begin(), queues_.end(), [](const auto& one, const auto& other) {
                    return one.visibility < other.visibility;
                  })->visibility) {}

SteadyTime LeaseTerms::usable_until(const Lease& lease) const {
  return lease.ends_at - std::min(visibility_ / 10, kMaxMargin);
}

Duration LeaseTerms::call_timeout() const { return std::min(visibility_ / 4, kMaxCall); }

Lease LeaseTerms::granted(queue::Receipt&& receipt, SteadyTime ends_at) const {
  const bool endless = ends_at == SteadyTime::max();
  const Duration granted_for = of(receipt.part).visibility;
  return {std::move(receipt), ends_at, endless ? ends_at : ends_at - visibility_ / 2,
          endless ? SteadyTime{} : ends_at - granted_for};
}

void LeaseTerms::limit(Lease& lease, SteadyTime now) const {
  if (lease.ends_at == SteadyTime::max()) {
    lease.begun_at = now;
    lease.extend_at = now + of(lease.receipt.part).longest;
  }
}

SteadyTime LeaseTerms::retry_at(SteadyTime now, Random& random) const {
  const Duration wait = visibility_ / 20;
  return now + wait + Duration(static_cast<Duration::rep>(static_cast<double>(wait.count()) * random.unit()));
}

}  // namespace sluice::work
