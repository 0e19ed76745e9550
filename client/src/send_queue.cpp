#include "client/src/send_queue.hpp"

#include <algorithm>
#include <utility>

namespace sluice::client::detail {

bool SendQueue::has_room(std::size_t bytes) const {
  return held_messages_ == 0 ||
         (held_messages_ < limits_.messages && held_bytes_ < limits_.bytes && bytes <= limits_.bytes - held_bytes_);
}

std::uint64_t SendQueue::add(Outgoing outgoing, SteadyTime now) {
  ++held_messages_;
  held_bytes_ += bytes_of(outgoing.message);
  waiting_.push_back({std::move(outgoing), now});
  return next_++;
}

BatchOrder SendQueue::order(SteadyTime now) const {
  if (waiting_.empty()) {
    return {};
  }
  if (next_ - waiting_.size() < hurry_until_) {
    return {.take = std::min(waiting_.size(), limits_.lot)};
  }
  if (waiting_.size() >= kBatch) {
    return {.take = std::min(waiting_.size() - waiting_.size() % kBatch, limits_.lot)};
  }
  // Compared so that no sum can overflow, however long somebody wants to linger.
  const Duration lingered = now - waiting_.front().since;
  if (lingered >= limits_.linger) {
    return {.take = waiting_.size()};
  }
  const Duration left = limits_.linger - lingered;
  return {.wait_until = left < SteadyTime::max() - now ? now + left : SteadyTime::max()};
}

std::vector<Outgoing> SendQueue::take(std::size_t count) {
  std::vector<Outgoing> taken;
  taken.reserve(std::min(count, waiting_.size()));
  taken_bytes_ = 0;
  while (taken.size() < count && !waiting_.empty()) {
    taken_bytes_ += bytes_of(waiting_.front().outgoing.message);
    taken.push_back(std::move(waiting_.front().outgoing));
    waiting_.pop_front();
  }
  taken_messages_ = taken.size();
  return taken;
}

void SendQueue::free_taken() {
  held_messages_ -= taken_messages_;
  held_bytes_ -= taken_bytes_;
  taken_bytes_ = 0;
}

}  // namespace sluice::client::detail
