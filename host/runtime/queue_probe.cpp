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
  const Deadline deadline = Deadline::after(clock_, kTimeout);
  thread_ = std::jthread([this, queues = std::move(queues), ended = std::move(ended), deadline] {
    auto looked = look(queues, deadline);
    {
      const MutexLock lock(mutex_);
      result_ = std::move(looked);
    }
    ended();
  });
}

Result<void> QueueProbe::look(const std::vector<std::string>& queues, Deadline deadline) {
  for (const std::string& queue : queues) {
    queue::ListRequest request;
    request.address.queue = queue;
    request.limit = 1;
    const auto page = store_.list(request, deadline);
    if (page) {
      continue;
    }
    if (forbids_start(page.error().code())) {
      return page.error();
    }
    log_.warn("queue does not answer yet", {{"queue", queue}, {"error", page.error().message()}});
  }
  return {};
}

std::optional<Result<void>> QueueProbe::result() const {
  const MutexLock lock(mutex_);
  return result_;
}

}  // namespace sluice::runtime
