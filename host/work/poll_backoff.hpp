#pragma once

#include "base/clock.hpp"
#include "base/random.hpp"

namespace sluice::work {

/// How long to wait before the next try: doubles from `first` to `last`, with up to a tenth added at random so that
/// hosts started together drift apart. Not thread-safe.
class PollBackoff {
 public:
  PollBackoff(Duration first, Duration last) : first_(first), last_(last), current_(first) {}

  Duration next(Random& random);
  /// There was work, or a reason to expect some.
  void reset() { current_ = first_; }

 private:
  Duration first_;
  Duration last_;
  Duration current_;
};

}  // namespace sluice::work
