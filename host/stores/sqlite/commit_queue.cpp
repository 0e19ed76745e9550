#include "host/stores/sqlite/commit_queue.hpp"

#include <algorithm>
#include <utility>

namespace sluice::queue::sqlite {

namespace {

// Requests in one transaction. Each brings at most one batch, so this bounds what a commit writes.
constexpr std::size_t kGroupLimit = 16;
// Pages of 4 KiB in the log before they are written to their places: enough that a page of the head or tail, which
// changes with each batch, is written once for many of them.
constexpr std::int64_t kCheckpointPages = 4'000;
constexpr std::int64_t kLogLimit = 32'768;
constexpr Duration kRestartPatience = std::chrono::milliseconds(200);

SteadyTime machine_now() { return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()); }

Error too_late() {
  return {ErrorCode::timeout,
          "the deadline passed before the store could write; allow more time, or see what keeps it busy"};
}

}  // namespace

CommitQueue::CommitQueue(const Clock& clock, StoreFile& file, Connection& connection, bool durable, Hooks hooks)
    : clock_(clock),
      file_(file),
      durable_(durable),
      hooks_(std::move(hooks)),
      connection_(connection),
      begin_(std::make_unique<Statement>(connection, "BEGIN IMMEDIATE")),
      commit_(std::make_unique<Statement>(connection, "COMMIT")),
      flushing_(durable) {}

SteadyTime CommitQueue::machine_limit(Deadline deadline) const {
  // The deadline is on the injected clock, waits are on the machine's: what is left counts.
  const Duration left = deadline.left(clock_.steady_now());
  const SteadyTime now = machine_now();
  return left > SteadyTime::max() - now ? SteadyTime::max() : now + left;
}

Result<void> CommitQueue::run(Work work, bool flush, Deadline deadline) {
  if (deadline.passed(clock_.steady_now())) {
    return too_late();
  }
  const SteadyTime limit = machine_limit(deadline);
  Request request;
  request.work = std::move(work);
  request.flush = flush && durable_;
  request.deadline = deadline;

  MutexLock lock(mutex_);
  waiting_.push_back(&request);
  while (!request.done) {
    if (!led_ && !request.taken) {
      led_ = true;
      lock.unlock();
      lead(request);
      lock.lock();
      led_ = false;
      if (!waiting_.empty()) {
        waiting_.front()->changed.notify_one();
      }
      continue;
    }
    if (request.taken) {
      request.changed.wait_until(mutex_, SteadyTime::max(), [&request] { return request.done; });
      continue;
    }
    const auto ready = [&]() SLUICE_REQUIRES(mutex_) { return request.done || request.taken || !led_; };
    if (!request.changed.wait_until(mutex_, limit, ready)) {
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &request));
      return too_late();
    }
  }
  if (request.error) {
    return *request.error;
  }
  return {};
}

void CommitQueue::lead(Request& own) noexcept {
  bool flush = false;
  {
    const MutexLock lock(mutex_);
    flush = std::any_of(waiting_.begin(), waiting_.end(), [](const Request* request) { return request->flush; });
  }
  if (auto error = begin(machine_limit(own.deadline), flush)) {
    const MutexLock lock(mutex_);
    waiting_.erase(std::find(waiting_.begin(), waiting_.end(), &own));
    own.error = std::move(error);
    own.done = true;
    return;
  }
  const std::vector<Request*> group = take_group(own, flush);
  commit_group(group);
  answer(group);
  checkpoint();
}

std::vector<CommitQueue::Request*> CommitQueue::take_group(Request& own, bool flush) {
  const SteadyTime now = clock_.steady_now();
  std::vector<Request*> group{&own};
  const MutexLock lock(mutex_);
  own.taken = true;
  for (Request* request : waiting_) {
    // Who came while the lock was awaited and wants a flush that this transaction was not begun with goes next; who is
    // too late withdraws by itself.
    const bool fits = request != &own && (flush || !request->flush) && !request->deadline.passed(now);
    if (fits && group.size() < kGroupLimit) {
      request->taken = true;
      group.push_back(request);
    }
  }
  waiting_.erase(
      std::remove_if(waiting_.begin(), waiting_.end(), [](const Request* request) { return request->taken; }),
      waiting_.end());
  return group;
}

void CommitQueue::commit_group(const std::vector<Request*>& group) {
  hooks_.begin();
  for (Request* request : group) {
    request->work();
  }
  hooks_.finish();
  std::optional<Error> error = commit();
  if (!error) {
    return;
  }
  if (group.size() == 1) {
    group[0]->error = std::move(error);
    return;
  }
  for (Request* request : group) {
    commit_alone(*request);
  }
}

void CommitQueue::commit_alone(Request& request) {
  request.error = begin(machine_limit(request.deadline), request.flush);
  if (request.error) {
    return;
  }
  hooks_.begin();
  request.work();
  hooks_.finish();
  request.error = commit();
}

std::optional<Error> CommitQueue::begin(SteadyTime limit, bool flush) {
  if (auto there = file_.check(); !there) {
    return there.error();
  }
  connection_.wait_for_locks_until(limit);
  if (flush != flushing_) {
    // Without the flush a commit survives the end of the process but not of the machine. That is right for claims: a
    // forgotten claim is one that is made again. The log keeps its order, so the next flush covers them too.
    connection_.execute(flush ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
    flushing_ = flush;
  }
  begin_->run();
  if (connection_.failed()) {
    Error error = connection_.failure();
    roll_back();
    return error;
  }
  return std::nullopt;
}

std::optional<Error> CommitQueue::commit() {
  if (connection_.failed()) {
    Error error = connection_.failure();
    roll_back();
    return error;
  }
  commit_->run();
  if (!connection_.failed()) {
    return std::nullopt;
  }
  Error error = connection_.failure();
  roll_back();
  if (error.code() == ErrorCode::unavailable) {
    // The log may hold the whole transaction although its flush failed; a restart would then find it.
    return Error(ErrorCode::unknown_outcome, error.message());
  }
  return error;
}

void CommitQueue::roll_back() {
  connection_.clear();
  // Some failures have rolled back already.
  if (connection_.in_transaction()) {
    connection_.execute("ROLLBACK");
    connection_.clear();
  }
}

void CommitQueue::answer(const std::vector<Request*>& group) {
  const MutexLock lock(mutex_);
  for (Request* request : group) {
    request->done = true;
    // Under the lock: the request dies with its caller's frame as soon as the caller sees it done.
    request->changed.notify_one();
  }
}

void CommitQueue::checkpoint() {
  // After the answers, so that nobody waits for it but who comes next.
  if (connection_.log_pages() >= kLogLimit) {
    // Readers have kept the log from starting anew; wait for them a little, and hold up the next ones.
    connection_.wait_for_locks_until(machine_now() + kRestartPatience);
    connection_.checkpoint(Connection::Checkpoint::restart);
  } else if (connection_.log_pages() >= kCheckpointPages) {
    connection_.checkpoint(Connection::Checkpoint::passive);
  }
  // What is committed lies safe in the log. If there is something wrong with the file, the next commit tells.
  connection_.clear();
}

}  // namespace sluice::queue::sqlite
