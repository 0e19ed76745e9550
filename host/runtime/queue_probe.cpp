#include "host/runtime/queue_probe.hpp"

#include <algorithm>
#include <utility>

namespace sluice::runtime {
namespace {

bool forbids_start(ErrorCode code) {
  return code == ErrorCode::queue_missing || code == ErrorCode::denied || code == ErrorCode::corrupt ||
         code == ErrorCode::invalid;
}

}  // namespace

void QueueProbe::start(std::vector<std::string> queues, std::function<void()> ended) {
  std::sort(queues.begin(), queues.end());
  queues.erase(std::unique(queues.begin(), queues.end()), queues.end());
  thread_ = std::jthread([this, queues = std::move(queues), ended = std::move(ended)](const std::stop_token& stop) {
    auto verdict = look(queues, stop);
    {
      const MutexLock lock(mutex_);
      verdict_ = std::move(verdict);
    }
    ended();
  });
}

QueueProbe::Verdict QueueProbe::look(const std::vector<std::string>& queues, const std::stop_token& stop) {
  const Deadline deadline = Deadline::after(clock_, kTimeout);
  for (const std::string& queue : queues) {
    const auto opened = open(queue, stop);
    if (!opened) {
      return {Refusal{queue, opened.error()}};
    }
    const auto page = (*opened)->list({.limit = 1, .content = false}, deadline);
    if (page) {
      continue;
    }
    if (forbids_start(page.error().code())) {
      return {Refusal{queue, page.error()}};
    }
    log_.warn("queue does not answer yet", {{"queue", queue}, {"error", page.error().message()}});
  }
  return {};
}

Result<std::unique_ptr<queue::Operator>> QueueProbe::open(const std::string& queue, const std::stop_token& stop) {
  std::string told;
  while (true) {
    auto opened = queues_.open_operator(queue);
    if (opened || forbids_start(opened.error().code())) {
      return opened;
    }
    if (opened.error().message() != told) {
      told = opened.error().message();
      log_.warn("the store of a queue cannot be opened yet; trying again", {{"queue", queue}, {"error", told}});
    }
    const MutexLock lock(mutex_);
    changed_.wait_until(mutex_, stop, clock_.steady_now() + kOpenAgain, [] { return false; });
    if (stop.stop_requested()) {
      return opened;
    }
  }
}

std::optional<QueueProbe::Verdict> QueueProbe::verdict() const {
  const MutexLock lock(mutex_);
  return verdict_;
}

}  // namespace sluice::runtime
