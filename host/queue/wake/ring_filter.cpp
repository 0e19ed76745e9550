#include "host/queue/wake/ring_filter.hpp"

#include <algorithm>
#include <array>

#include "host/queue/wake/datagram.hpp"

namespace sluice::queue::wake {
namespace {

constexpr std::array<std::string_view, kRingResults> kNames{"rung",     "limited", "unknown_queue", "malformed",
                                                            "unsigned", "forged",  "stale",         "replayed"};

}  // namespace

std::string_view to_string(RingResult result) { return kNames.at(static_cast<std::size_t>(result)); }

void RingFilter::know(std::map<std::string, WallClock> queues) {
  std::erase_if(lines_, [&queues](const auto& line) { return !queues.contains(line.first); });
  for (auto& [queue, clock] : queues) {
    const auto [line, added] = lines_.try_emplace(queue);
    line->second.clock = std::move(clock);
    if (added) {
      line->second.looks = rate();
    }
  }
}

RingFilter::Judgement RingFilter::judge(std::string_view bytes, SteadyTime now) {
  const auto datagram = Datagram::read(bytes);
  if (!datagram) {
    return {RingResult::malformed, {}};
  }
  const auto found = lines_.find(datagram->ring().queue);
  if (found == lines_.end()) {
    return {RingResult::unknown_queue, {}};
  }
  auto& [queue, line] = *found;
  if (const RingResult refused = refusal(*datagram, line); refused != RingResult::rung) {
    return {refused, {}};
  }
  fill(line, now);
  if (line.looks < 1) {
    line.owed = true;
    return {RingResult::limited, queue};
  }
  line.looks -= 1;
  return {RingResult::rung, queue};
}

// `rung` where there is none.
RingResult RingFilter::refusal(const Datagram& datagram, const Line& line) {
  if (secret_.empty()) {
    return RingResult::rung;
  }
  if (!datagram.is_signed()) {
    return RingResult::without_signature;
  }
  if (!datagram.signed_with(secret_)) {
    return RingResult::forged;
  }
  const WallTime now = line.clock();
  if (datagram.ring().at < now - kTolerance || datagram.ring().at > now + kTolerance) {
    return RingResult::stale;
  }
  if (!nonces_.insert(datagram.ring().nonce).second) {
    return RingResult::replayed;
  }
  nonces_by_age_.push_back(datagram.ring().nonce);
  if (nonces_by_age_.size() > kRemembered) {
    nonces_.erase(nonces_by_age_.front());
    nonces_by_age_.pop_front();
  }
  return RingResult::rung;
}

void RingFilter::fill(Line& line, SteadyTime now) const {
  const double seconds = std::chrono::duration<double>(std::max(now, line.at) - line.at).count();
  line.looks = std::min(rate(), line.looks + seconds * rate());
  line.at = std::max(now, line.at);
}

std::vector<std::string> RingFilter::take_due(SteadyTime now) {
  std::vector<std::string> due;
  for (auto& [queue, line] : lines_) {
    if (!line.owed) {
      continue;
    }
    fill(line, now);
    if (line.looks >= 1) {
      line.looks -= 1;
      line.owed = false;
      due.push_back(queue);
    }
  }
  return due;
}

SteadyTime RingFilter::next_due() const {
  SteadyTime next = SteadyTime::max();
  for (const auto& [queue, line] : lines_) {
    if (line.owed) {
      const std::chrono::duration<double> wait(std::max(0.0, 1 - line.looks) / rate());
      // A little later, so that what is rounded down does not wake in vain.
      next = std::min(next, line.at + std::chrono::duration_cast<Duration>(wait) + std::chrono::microseconds(1));
    }
  }
  return next;
}

}  // namespace sluice::queue::wake
