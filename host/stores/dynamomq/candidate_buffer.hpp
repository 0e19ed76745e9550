#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "host/stores/dynamomq/record.hpp"

namespace sluice::queue::dynamomq {

/// Records that were seen ready and not yet claimed, oldest first. One Query fills it for many claims. Its content is a
/// guess that ages: a claim finds out whether the record still is as it was. A value; not thread-safe.
class CandidateBuffer {
 public:
  static constexpr std::size_t kCapacity = 2'000;
  static constexpr std::size_t kMostSuspects = 1'000;  ///< they may have to wait, and must not keep the others out

  /// False when it is there already or there is no room.
  bool add(Candidate candidate, SteadyTime now);
  void erase(const std::string& id);
  void clear();

  /// Takes out at most `count` for which `wanted` holds, in order, beginning at the `skip`-th of all.
  std::vector<Candidate> take_if(std::size_t count, const std::function<bool(const Candidate&)>& wanted,
                                 std::size_t skip = 0);
  /// Takes out at most `count` for which `wanted` holds, from the end; the last one comes first.
  std::vector<Candidate> take_last_if(std::size_t count, const std::function<bool(const Candidate&)>& wanted);
  /// The first in order; null when it is empty.
  const Candidate* front() const { return candidates_.empty() ? nullptr : &candidates_.begin()->second; }
  /// Takes out every one for which `unwanted` holds.
  std::size_t remove_if(const std::function<bool(const Candidate&)>& unwanted);
  /// Drops all when the last one added has been here since before `time`; returns their sort keys.
  std::vector<std::string> drop_stale(SteadyTime time);

  std::size_t size() const { return candidates_.size(); }
  bool empty() const { return candidates_.empty(); }
  std::size_t suspects() const { return suspects_; }

 private:
  using Place = std::pair<WallTime, std::string>;  // sent_at, id: times sort rightly, their spellings do not
  using Candidates = std::map<Place, Candidate>;

  Candidates::iterator remove(Candidates::iterator place);

  Candidates candidates_;
  std::unordered_map<std::string, WallTime> ids_;  // and their sent_at
  std::size_t suspects_ = 0;
  SteadyTime filled_at_{};
};

}  // namespace sluice::queue::dynamomq
