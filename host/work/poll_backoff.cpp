#include "host/work/poll_backoff.hpp"

#include <algorithm>

namespace sluice::work {

Duration PollBackoff::next(Random& random) {
  const Duration wait = current_;
  current_ = std::min(last_, current_ * 2);
  return wait + Duration(static_cast<Duration::rep>(static_cast<double>(wait.count()) * 0.1 * random.unit()));
}

}  // namespace sluice::work
