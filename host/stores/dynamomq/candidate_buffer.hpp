#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
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

  /// False when it is there already or the buffer is full.
  bool add(Candidate candidate, SteadyTime now);
  void erase(const std::string& id);
  void clear();

  /// Takes out at most `count` in order, beginning at the `skip`-th.
  std::vector<Candidate> take(std::size_t count, std::size_t skip = 0);
  /// Takes out at most `count` for which `wanted` holds, in order.
  std::vector<Candidate> take_if(std::size_t count, const std::function<bool(const Candidate&)>& wanted);
  /// Takes out at most `count`, from the end, in order.
  std::vector<Candidate> take_last(std::size_t count);
  /// Takes out every one for which `unwanted` holds.
  std::size_t remove_if(const std::function<bool(const Candidate&)>& unwanted);
  /// Drops all when the last one added has been here since before `time`; returns the first sort key among them.
  std::optional<std::string> drop_stale(SteadyTime time);

  std::size_t size() const { return candidates_.size(); }
  bool empty() const { return candidates_.empty(); }

 private:
  using Place = std::pair<WallTime, std::string>;  // sent_at, id: times sort rightly, their spellings do not

  std::map<Place, Candidate> candidates_;
  std::unordered_map<std::string, WallTime> ids_;  // and their sent_at
  SteadyTime filled_at_{};
};

}  // namespace sluice::queue::dynamomq
