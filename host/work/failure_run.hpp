#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/error.hpp"

namespace sluice::work {

/// Failures of one kind of call in a row, logged at the first, then once a minute, so that a store that is down for the
/// night does not fill the disk. Not thread-safe.
class FailureRun {
 public:
  /// One more; true when it should be logged.
  bool failed(const Error& error, SteadyTime now) {
    trouble_ = error;
    denial_ = error.code() == ErrorCode::denied ? std::optional(error) : std::nullopt;
    since_ = count_ == 0 ? now : since_;
    if (count_++ > 0 && now - logged_at_ < kLogEvery) {
      return false;
    }
    logged_at_ = now;
    return true;
  }
  /// A call went well; true when that ended a run, which should be logged.
  bool succeeded() {
    denial_.reset();
    trouble_.reset();
    return std::exchange(count_, 0) > 0;
  }

  static constexpr Duration kPatience = std::chrono::seconds(10);

  bool going_on() const { return count_ > 0; }
  /// Why the last call has failed.
  const std::optional<Error>& trouble() const { return trouble_; }
  /// More than one try has failed, and none has succeeded for kPatience: who waits for work here should know.
  bool lasts(SteadyTime now) const { return count_ > 1 && now - since_ >= kPatience; }
  /// Why the last calls have failed, where the role may not make them: no waiting mends that.
  std::optional<Error> denial() const { return count_ >= kSureAfter ? denial_ : std::nullopt; }

 private:
  static constexpr std::uint64_t kSureAfter = 3;  // a token may be renewed just then
  static constexpr Duration kLogEvery = std::chrono::minutes(1);

  std::uint64_t count_ = 0;
  SteadyTime since_{};
  SteadyTime logged_at_{};
  std::optional<Error> denial_;
  std::optional<Error> trouble_;
};

}  // namespace sluice::work
