#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "host/queue/wake/announcement.hpp"
#include "host/work/dispatcher.hpp"
#include "tests/support/simulated_fleet/process.hpp"

namespace sluice::test::sim {

/// A host's job on one queue: a poller, workers and a settler, each of which does one thing at a time. When and how
/// much is claimed the product's Claimer and ClaimSizer decide, so that messages wait in memory as they do there.
class Job {
 public:
  Job(Process& process, const std::string& queue);

  void start();
  void rung() { place_->ring_here(queue::Half::standard); }
  /// Claims no more.
  void leave() { leaving_ = true; }
  /// Nothing is claimed, waits, is at work or has to be settled.
  bool idle() const;
  void stop() { source_->stop(); }

 private:
  void call_poller(SteadyTime time);
  void poll();
  void claim(const work::Claimer::Order& order);
  void arrived(std::vector<queue::Delivery> deliveries);
  void lost(std::span<const queue::Receipt> receipts);
  void hand_out();
  void ended(const queue::Delivery& delivery);
  void call_settler(SteadyTime time);
  void settle();
  work::Claimer::Room room() const;

  Process& process_;
  const Scene& scene_;
  const std::unique_ptr<queue::Source> source_;
  const std::unique_ptr<queue::wake::WakePlace> place_;
  work::Claimer claimer_;
  work::ClaimSizer sizer_;

  bool leaving_ = false;
  bool claiming_ = false;
  bool settling_ = false;
  std::optional<SteadyTime> poll_at_;
  std::optional<SteadyTime> settle_at_;
  std::deque<queue::Delivery> waiting_;  ///< for a worker
  std::size_t busy_ = 0;                 ///< workers
  std::size_t suspects_ = 0;             ///< at work
  std::vector<queue::Completion> ended_;
};

}  // namespace sluice::test::sim
