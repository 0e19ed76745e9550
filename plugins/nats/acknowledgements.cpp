#include "acknowledgements.hpp"

#include <utility>
#include <vector>

bool Acknowledgements::Waiter::wait_for(std::chrono::nanoseconds span) {
  std::unique_lock lock(mutex_);
  return answered_.wait_for(lock, span, [this] { return done_; });
}

void Acknowledgements::Waiter::set(Answer answer) {
  // Under the lock to the end: once it is free the waiter may be gone.
  const std::lock_guard lock(mutex_);
  answer_ = std::move(answer);
  done_ = true;
  answered_.notify_one();
}

void Acknowledgements::expect(const void* message, Waiter& waiter) {
  const std::lock_guard lock(mutex_);
  waiters_[message] = &waiter;
}

void Acknowledgements::forget(const void* message, Waiter& waiter) {
  {
    const std::lock_guard lock(mutex_);
    if (waiters_.erase(message) > 0) {
      return;
    }
  }
  std::unique_lock lock(waiter.mutex_);
  waiter.answered_.wait(lock, [&] { return waiter.done_; });
}

void Acknowledgements::answer(const void* message, Answer answer) {
  Waiter* waiter = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = waiters_.find(message);
    if (found == waiters_.end()) {
      return;
    }
    waiter = found->second;
    waiters_.erase(found);
  }
  waiter->set(std::move(answer));
}

void Acknowledgements::answer_all(const Answer& answer) {
  std::unordered_map<const void*, Waiter*> waiters;
  {
    const std::lock_guard lock(mutex_);
    waiters.swap(waiters_);
  }
  for (const auto& [message, waiter] : waiters) {
    waiter->set(answer);
  }
}

void Acknowledgements::answer_quoted(std::string_view text, const Answer& answer) {
  std::vector<Waiter*> found;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = waiters_.begin(); at != waiters_.end();) {
      const std::string quoted = '"' + std::string(at->second->subject_) + '"';
      if (text.find(quoted) == std::string_view::npos) {
        ++at;
        continue;
      }
      found.push_back(at->second);
      at = waiters_.erase(at);
    }
  }
  for (Waiter* waiter : found) {
    waiter->set(answer);
  }
}

std::size_t Acknowledgements::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiters_.size();
}
