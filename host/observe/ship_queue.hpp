#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/observe/collector.hpp"

namespace sluice::observe {

/// Decides when items go out to a collector, in which batches, and what is given up. What waits is bounded: an item for
/// which there is no room is dropped and counted, so that whoever has something to say never waits for whoever hears
/// it. A step class: it is told the time, calls nobody, and is not thread-safe.
class ShipQueue {
 public:
  struct Order {
    bool send = false;  ///< the batch; false: nothing before `wake`
    SteadyTime deadline{};
    SteadyTime wake = SteadyTime::max();
  };
  struct Figures {
    std::uint64_t sent = 0;
    std::uint64_t dropped = 0;  ///< for want of room, or because the collector would not have them
    std::uint64_t failed = 0;   ///< requests
    std::size_t waiting = 0;    ///< items, those under way among them
  };
  /// What an operator should read, and not more often than once a minute.
  struct Notice {
    std::uint64_t dropped = 0;  ///< since the last notice
    std::string why;
  };

  /// `random` outlives the queue.
  ShipQueue(const ShipLimits& limits, Random& random) : limits_(limits), random_(random) {}

  /// False: it was dropped.
  bool put(std::string item, SteadyTime now);
  /// What to do now. Each order to send is followed by `answered`; meanwhile there is no other.
  Order next(SteadyTime now);
  const std::vector<std::string>& batch() const { return batch_; }
  void answered(const Judgement& judgement, SteadyTime now);

  /// From now on nothing waits for company, nor for long after a failure. Requests end by `until`.
  void hurry(SteadyTime now, SteadyTime until);
  /// Nothing waits and nothing is under way.
  bool idle() const { return figures_.waiting == 0; }
  /// Drops what is left, and counts it.
  void give_up();

  const Figures& figures() const { return figures_; }
  /// Why the last request failed; empty: it did not.
  const std::string& trouble() const { return trouble_; }
  std::optional<Notice> notice(SteadyTime now);
  bool has_notice(SteadyTime now) const { return untold_ > 0 && now >= next_notice_; }

 private:
  struct Item {
    std::string text;
    SteadyTime since{};
  };

  void fill_batch(SteadyTime now);
  void end_batch();
  void drop(std::size_t count, const std::string& why);

  // Fixed after construction.
  const ShipLimits limits_;
  Random& random_;

  std::deque<Item> waiting_;
  std::size_t waiting_bytes_ = 0;  ///< the batch among them
  std::vector<std::string> batch_;
  bool under_way_ = false;
  SteadyTime batch_since_{};
  SteadyTime not_before_ = SteadyTime::min();
  std::uint32_t failures_ = 0;  ///< in a row
  std::optional<SteadyTime> hurried_until_;
  Figures figures_;
  std::string trouble_;
  std::uint64_t untold_ = 0;
  std::string untold_why_;
  SteadyTime next_notice_ = SteadyTime::min();
};

}  // namespace sluice::observe
