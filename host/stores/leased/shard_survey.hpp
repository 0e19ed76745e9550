#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/clock.hpp"
#include "host/stores/leased/key_sketch.hpp"
#include "host/stores/table/times.hpp"

namespace sluice::queue::leased {

/// Decides when a partition is sketched: what has come behind it once in a while, and the whole of it anew where that
/// is little, or was long ago. Until a sketch is finished the one before it is told. Step functions. Not thread-safe.
class ShardSurvey {
 public:
  static constexpr Duration kStep = std::chrono::seconds(1);   ///< between two reads of one sketch
  static constexpr Duration kAnew = std::chrono::minutes(10);  ///< a long partition is sketched so often
  static constexpr Duration kFailurePause = std::chrono::seconds(5);

  /// `pause`: between two looks; the first one is made at `first`.
  ShardSurvey(Duration pause, SteadyTime first) : pause_(pause), due_at_(first) {}

  /// Something will have changed by then.
  void expect(SteadyTime at);
  /// What is to be read now, all of which is answered at once. A sketch looks at `places` between its ends.
  std::vector<KeySketch::Order> next(std::size_t places, table::Moment now);
  void done(const std::vector<KeySketch::Answer>& answers, SteadyTime now);
  void failed(SteadyTime now) { due_at_ = now + kFailurePause; }

  /// Null: there is none yet.
  const KeySketch* sketch() const { return told_ ? &*told_ : nullptr; }
  /// How old what it says is.
  Duration age(SteadyTime now) const { return now - looked_at_; }

 private:
  Duration pause_;
  SteadyTime due_at_;
  SteadyTime looked_at_{};  ///< when what `told_` says was looked at
  SteadyTime began_at_{};   ///< when the sketch that is told was begun
  SteadyTime drawing_at_{};
  std::optional<KeySketch> told_;
  std::optional<KeySketch> drawing_;
};

}  // namespace sluice::queue::leased
