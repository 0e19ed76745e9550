#include "host/stores/sqlite/read_queue.hpp"

#include <utility>

namespace sluice::queue::sqlite {

namespace {

Error too_late() { return {ErrorCode::timeout, "the deadline passed before the store had read; allow more time"}; }

}  // namespace

ReadQueue::ReadQueue(const Clock& clock, const StoreFile& file, std::unique_ptr<Connection> connection)
    : clock_(clock),
      file_(file),
      connection_(std::move(connection)),
      reader_(*connection_),
      lane_([this](const std::stop_token& stop) { serve(stop); }) {}

Result<void> ReadQueue::run(Work work, Deadline deadline) {
  if (deadline.passed(clock_.steady_now())) {
    return too_late();
  }
  const SteadyTime limit = machine_after(deadline.left(clock_.steady_now()));
  const auto request = std::make_shared<Request>();
  request->work = std::move(work);
  request->deadline = deadline;
  const MutexLock lock(mutex_);
  waiting_.push_back(request);
  work_there_.notify_one();
  if (!request->changed.wait_until(mutex_, limit, [&request] { return request->done; })) {
    std::erase(waiting_, request);
    return too_late();
  }
  if (request->error) {
    return *request->error;
  }
  return {};
}

void ReadQueue::serve(const std::stop_token& stop) {
  while (true) {
    std::shared_ptr<Request> request;
    {
      const MutexLock lock(mutex_);
      if (!work_there_.wait(mutex_, stop, [this]() SLUICE_REQUIRES(mutex_) { return !waiting_.empty(); })) {
        return;
      }
      request = waiting_.front();
      waiting_.pop_front();
    }
    auto error = read(*request);
    const MutexLock lock(mutex_);
    request->error = std::move(error);
    request->done = true;
    request->changed.notify_one();
  }
}

std::optional<Error> ReadQueue::read(const Request& request) {
  const auto passed = [this, &request] { return request.deadline.passed(clock_.steady_now()); };
  if (passed()) {
    return too_late();
  }
  if (auto there = file_.check(); !there) {
    return there.error();
  }
  connection_->wait_for_locks_until(machine_after(request.deadline.left(clock_.steady_now())));
  connection_->interrupt_when(passed);
  connection_->execute("BEGIN");
  request.work(reader_);
  std::optional<Error> error;
  if (connection_->failed()) {
    error = connection_->failure();
  }
  connection_->clear();
  connection_->interrupt_when({});
  if (connection_->in_transaction()) {
    connection_->execute("COMMIT");
    connection_->clear();
  }
  return error;
}

}  // namespace sluice::queue::sqlite
