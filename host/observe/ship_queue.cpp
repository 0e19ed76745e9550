#include "host/observe/ship_queue.hpp"

#include <algorithm>
#include <utility>

namespace sluice::observe {

namespace {

constexpr Duration kFirstWait = std::chrono::seconds(1);
constexpr Duration kLongestWait = std::chrono::seconds(60);
constexpr Duration kHurriedWait = std::chrono::milliseconds(100);
/// A batch that could not be handed over for so long never will be, and those behind it are newer.
constexpr Duration kGiveUpAfter = std::chrono::minutes(5);
constexpr Duration kNoticeEvery = std::chrono::minutes(1);
constexpr std::uint32_t kMostDoublings = 6;
constexpr const char* kNoRoom = "it does not keep up";

}  // namespace

bool ShipQueue::put(std::string item, SteadyTime now) {
  if (figures_.waiting >= limits_.items || waiting_bytes_ + item.size() > limits_.bytes) {
    drop(1, trouble_.empty() ? kNoRoom : trouble_);
    return false;
  }
  waiting_bytes_ += item.size();
  ++figures_.waiting;
  waiting_.push_back({std::move(item), now});
  return true;
}

ShipQueue::Order ShipQueue::next(SteadyTime now) {
  Order order;
  if (under_way_ || idle()) {
    return order;
  }
  if (now < not_before_) {
    order.wake = not_before_;
    return order;
  }
  if (batch_.empty()) {
    const bool full = waiting_.size() >= limits_.batch_items || waiting_bytes_ >= limits_.batch_bytes;
    const SteadyTime due = waiting_.front().since + limits_.linger;
    if (!full && !hurried_until_ && now < due) {
      order.wake = due;
      return order;
    }
    fill_batch(now);
  }
  under_way_ = true;
  order.send = true;
  order.deadline = now + limits_.patience;
  if (hurried_until_) {
    order.deadline = std::min(order.deadline, *hurried_until_);
  }
  return order;
}

void ShipQueue::fill_batch(SteadyTime now) {
  std::size_t bytes = 0;
  while (!waiting_.empty() && batch_.size() < limits_.batch_items &&
         (batch_.empty() || bytes + waiting_.front().text.size() <= limits_.batch_bytes)) {
    bytes += waiting_.front().text.size();
    batch_.push_back(std::move(waiting_.front().text));
    waiting_.pop_front();
  }
  batch_since_ = now;
}

void ShipQueue::end_batch() {
  for (const std::string& item : batch_) {
    waiting_bytes_ -= item.size();
  }
  figures_.waiting -= batch_.size();
  batch_.clear();
}

void ShipQueue::answered(const Judgement& judgement, SteadyTime now) {
  under_way_ = false;
  const std::size_t count = batch_.size();
  if (judgement.kind == Judgement::Kind::taken) {
    const std::size_t rejected = std::min(judgement.rejected, count);
    figures_.sent += count - rejected;
    end_batch();
    failures_ = 0;
    not_before_ = SteadyTime::min();
    trouble_ = judgement.why;
    if (rejected > 0) {
      drop(rejected, judgement.why);
    }
    return;
  }
  ++figures_.failed;
  trouble_ = judgement.why;
  if (judgement.kind == Judgement::Kind::refused || now - batch_since_ >= kGiveUpAfter) {
    end_batch();
    drop(count, judgement.why);
  }
  // Half of the wait is left to chance, so that hosts which failed together do not come back together.
  const Duration full = std::min(kFirstWait * (1U << std::min(failures_++, kMostDoublings)), kLongestWait);
  const Duration wait = full / 2 + std::chrono::duration_cast<Duration>(full / 2 * random_.unit());
  not_before_ = now + std::max(wait, judgement.wait.value_or(Duration::zero()));
  if (hurried_until_) {
    not_before_ = now + kHurriedWait;
  }
}

void ShipQueue::hurry(SteadyTime now, SteadyTime until) {
  hurried_until_ = until;
  not_before_ = std::min(not_before_, now);
}

void ShipQueue::give_up() {
  const std::size_t left = figures_.waiting;
  waiting_.clear();
  batch_.clear();
  under_way_ = false;
  waiting_bytes_ = 0;
  figures_.waiting = 0;
  if (left > 0) {
    drop(left, trouble_.empty() ? "the host has ended" : trouble_);
  }
}

void ShipQueue::drop(std::size_t count, const std::string& why) {
  figures_.dropped += count;
  untold_ += count;
  untold_why_ = why;
}

std::optional<ShipQueue::Notice> ShipQueue::notice(SteadyTime now) {
  if (!has_notice(now)) {
    return std::nullopt;
  }
  next_notice_ = now + kNoticeEvery;
  return Notice{std::exchange(untold_, 0), untold_why_};
}

}  // namespace sluice::observe
