#include "host/stores/sqlite/commit_queue.hpp"

#include <algorithm>
#include <utility>

#include "base/guard.hpp"

namespace sluice::queue::sqlite {

namespace {

// Pages of 4 KiB in the log before they are written to their places: enough that a page of the head or tail, which
// changes with each batch, is written once for many of them.
constexpr std::int64_t kPages = 4'000;
// A log of 256 MiB is not reached unless somebody reads from it all the time.
constexpr std::int64_t kReportedPages = 65'536;
constexpr Duration kReportInterval = std::chrono::minutes(1);

// Requests in one transaction. Each brings at most one batch, so this bounds what a commit writes.
constexpr std::size_t kGroupLimit = 64;
// Between two looks whether anybody still waits for the lock of another process.
constexpr Duration kLockPatience = std::chrono::milliseconds(10);
// A caller whose work is being written waits so long beyond his deadline, so as to learn how it ends.
constexpr Duration kGrace = std::chrono::milliseconds(50);

Error too_late() {
  return {ErrorCode::timeout,
          "the deadline passed before the store could write; allow more time, or see what keeps it busy"};
}

Error left_behind() {
  return {
      ErrorCode::unknown_outcome,
      "the deadline passed while the store was writing, so that it may take effect yet; look at the disk and its log"};
}

}  // namespace

Checkpointer::Checkpointer(std::unique_ptr<Connection> connection, Report report)
    : path_(connection->path()),
      report_(std::move(report)),
      connection_(std::move(connection)),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

bool Checkpointer::log_has(std::int64_t pages) {
  const MutexLock lock(mutex_);
  if (pages < seen_) {
    // It has begun anew.
    seen_ = 0;
    rest_is_small_ = false;
  }
  if (std::exchange(rest_is_small_, false)) {
    return true;
  }
  // Looking at a log that a reader keeps costs the more the longer it is, so that it is done once for so many pages.
  if (!wanted_ && pages >= seen_ + kPages) {
    seen_ = pages;
    wanted_ = true;
    changed_.notify_one();
  }
  return false;
}

void Checkpointer::serve(const std::stop_token& stop) {
  while (true) {
    {
      const MutexLock lock(mutex_);
      if (!changed_.wait(mutex_, stop, [this]() SLUICE_REQUIRES(mutex_) { return wanted_; })) {
        return;
      }
    }
    judge(write());
  }
}

Connection::Written Checkpointer::write() {
  const MutexLock lock(connection_mutex_);
  // If there is something wrong with the file, the next commit tells.
  const auto written = connection_->checkpoint();
  return written ? *written : Connection::Written();
}

void Checkpointer::judge(const Connection::Written& written) {
  const bool all = written.pages == written.log_pages && written.log_pages > 0;
  {
    const MutexLock lock(mutex_);
    wanted_ = false;
    rest_is_small_ = all;
  }
  const SteadyTime now = machine_now();
  if (!all && written.log_pages >= kReportedPages && now >= next_report_ && report_) {
    next_report_ = now + kReportInterval;
    report_("the log \"" + path_ + "-wal\" has grown to " + std::to_string(written.log_pages / 256) +
            " MiB, because another process keeps reading an old state of the store; end that one: fuser " + path_ +
            "-wal");
  }
}

void Checkpointer::write_and_empty() {
  const MutexLock lock(connection_mutex_);
  static_cast<void>(connection_->checkpoint());
  connection_->empty_log();
}

Result<void> Checkpointer::write_all() {
  const MutexLock lock(connection_mutex_);
  SLUICE_TRY(written, connection_->checkpoint());
  if (written->log_pages < 0 || written->pages < written->log_pages) {
    return Error(ErrorCode::unavailable,
                 "the log of store \"" + path_ +
                     "\" could not be flushed, and cannot be written to the file while another process reads an old "
                     "state of it; end that one: fuser " +
                     path_ + "-wal");
  }
  return {};
}

Flusher::Flusher(StoreFile& file, Checkpointer& checkpointer)
    : file_(file), checkpointer_(checkpointer), thread_([this](const std::stop_token& stop) { serve(stop); }) {}

void Flusher::flush(Done done) {
  {
    const MutexLock lock(mutex_);
    waiting_.push_back(std::move(done));
  }
  changed_.notify_one();
}

void Flusher::serve(const std::stop_token& stop) {
  while (true) {
    std::vector<Done> group;
    {
      const MutexLock lock(mutex_);
      changed_.wait(mutex_, stop, [this]() SLUICE_REQUIRES(mutex_) { return !waiting_.empty(); });
      if (waiting_.empty()) {
        return;
      }
      group.swap(waiting_);
    }
    const std::optional<Error> error = SLUICE_GUARD(sqlite_flush) ? flush_now() : std::nullopt;
    for (const Done& done : group) {
      done(error);
    }
  }
}

std::optional<Error> Flusher::flush_now() {
  auto flushed = file_.check();
  if (flushed) {
    flushed = failed_before_ && SLUICE_GUARD(sqlite_failed_flush) ? checkpointer_.write_all() : file_.flush_log();
    failed_before_ = !flushed;
  }
  return flushed ? std::nullopt : std::optional(Error(ErrorCode::unknown_outcome, flushed.error().message()));
}

CommitQueue::CommitQueue(const Clock& clock, const Tools& tools, Hooks hooks)
    : clock_(clock),
      tools_(tools),
      hooks_(std::move(hooks)),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

Result<void> CommitQueue::run(Task task, Deadline deadline) {
  if (deadline.passed(clock_.steady_now())) {
    return too_late();
  }
  // The deadline is on the injected clock, waits are on the machine's: what is left counts.
  const SteadyTime limit = machine_after(deadline.left(clock_.steady_now()));
  const auto request = std::make_shared<Request>();
  request->task = std::move(task);
  request->task.flush = request->task.flush && tools_.durable;
  request->deadline = deadline;

  MutexLock lock(mutex_);
  waiting_.push_back(request);
  if (waiting_.size() == 1) {
    // Whoever is woken under the lock would only wait for the lock.
    lock.unlock();
    work_there_.notify_one();
    lock.lock();
  }
  const auto done = [&request] { return request->done; };
  if (!request->changed.wait_until(mutex_, limit, done)) {
    if (!request->taken) {
      waiting_.erase(std::find(waiting_.begin(), waiting_.end(), request));
      return held_up_.value_or(too_late());
    }
    if (!request->changed.wait_until(mutex_, machine_after(kGrace), done)) {
      request->left = true;
      if (request->visible) {
        undo_later(*request);
      }
      const bool visible = request->visible;
      lock.unlock();
      if (visible && request->task.unconfirmed) {
        request->task.unconfirmed();
      }
      return left_behind();
    }
  }
  if (request->error) {
    return *request->error;
  }
  return {};
}

void CommitQueue::serve(const std::stop_token& stop) {
  while (true) {
    {
      const MutexLock lock(mutex_);
      work_there_.wait(mutex_, stop, [this]() SLUICE_REQUIRES(mutex_) { return !waiting_.empty(); });
    }
    // From here on nothing of the callers' may be touched: they may be gone by the time a hanging disk lets go.
    if (stop.stop_requested()) {
      if (!tools_.file.check()) {
        save_log();
      }
      return;
    }
    write_some(stop);
    checkpoint();
  }
}

void CommitQueue::write_some(const std::stop_token& stop) {
  if (auto there = tools_.file.check(); !there) {
    save_log();
    fail_waiting(there.error());
    return;
  }
  log_saved_ = false;
  Turn turn(tools_.lock_file);
  if (const auto error = begin(); !error) {
    Group group = stop.stop_requested() ? Group() : take_group();
    const Outcomes outcomes = group.empty() ? Outcomes() : write(group);
    roll_back();
    turn.give_back();
    put_back(group, outcomes.size());
    tell(group, outcomes);
  } else if (error->code() != ErrorCode::timeout) {
    fail_waiting(*error);
  } else {
    // Who still has time waits on.
    const MutexLock lock(mutex_);
    held_up_ = error;
  }
}

// This process may be killed, or leave without closing the store: then a log without a name is gone. Nobody else writes
// to the store before all who have that log have ended.
void CommitQueue::save_log() {
  if (!std::exchange(log_saved_, true) && SLUICE_GUARD(log_watched)) {
    tools_.checkpointer.write_and_empty();
  }
}

CommitQueue::Group CommitQueue::take_group() {
  const SteadyTime now = clock_.steady_now();
  Group group;
  Group late;
  {
    const MutexLock lock(mutex_);
    held_up_.reset();
    while (!waiting_.empty() && group.size() < kGroupLimit) {
      const auto& request = waiting_.front();
      request->taken = true;
      (request->deadline.passed(now) ? late : group).push_back(request);
      waiting_.pop_front();
    }
  }
  answer(late, too_late());
  return group;
}

bool CommitQueue::still_wanted(const Request& request) {
  const MutexLock lock(mutex_);
  return !request.left;
}

CommitQueue::Outcomes CommitQueue::write(const Group& group) {
  const SteadyTime enough = machine_after(kWanted);
  std::size_t written = 0;
  hooks_.begin();
  do {
    group[written++]->task.work();
  } while (written < group.size() && (machine_now() < enough || !SLUICE_GUARD(effects_let_others_in)));
  hooks_.finish();
  const std::optional<Error> error = commit();
  return error && written > 1 ? write_each(group) : Outcomes(written, error);
}

CommitQueue::Outcomes CommitQueue::write_each(const Group& group) {
  Outcomes outcomes;
  const SteadyTime enough = machine_after(kWanted);
  for (const auto& request : group) {
    if (!outcomes.empty() && machine_now() >= enough) {
      break;
    }
    std::optional<Error> error = still_wanted(*request) ? begin() : left_behind();
    outcomes.push_back(error ? std::move(error) : write({request}).front());
  }
  return outcomes;
}

void CommitQueue::put_back(Group& group, std::size_t written) {
  const MutexLock lock(mutex_);
  for (; group.size() > written; group.pop_back()) {
    const auto& request = group.back();
    request->taken = false;
    // Whoever has left was told that nobody knows what became of it: nothing.
    if (!request->left) {
      waiting_.push_front(request);
    }
  }
}

std::optional<Error> CommitQueue::begin() {
  tools_.connection.wait_for_locks_until(machine_after(kLockPatience));
  begin_.run();
  return failure();
}

std::optional<Error> CommitQueue::commit() {
  commit_.run();
  return failure();
}

std::optional<Error> CommitQueue::failure() {
  const Result<void> state = tools_.connection.state();
  if (state) {
    return std::nullopt;
  }
  roll_back();
  return state.error();
}

void CommitQueue::roll_back() {
  tools_.connection.clear();
  // Some failures have rolled back already.
  if (tools_.connection.in_transaction()) {
    tools_.connection.execute("ROLLBACK");
    tools_.connection.clear();
  }
}

void CommitQueue::tell(const Group& group, const Outcomes& outcomes) {
  Group flushed;
  Group done;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto& request = group[i];
    if (outcomes[i]) {
      answer({request}, outcomes[i]);
      continue;
    }
    if (request->task.committed) {
      request->task.committed();
    }
    bool left = false;
    {
      const MutexLock lock(mutex_);
      request->visible = true;
      left = request->left;
      if (left) {
        undo_later(*request);
      }
    }
    if (left && request->task.unconfirmed) {
      request->task.unconfirmed();
    }
    (request->task.flush ? flushed : done).push_back(request);
  }
  if (!flushed.empty()) {
    tools_.flusher.flush(
        [this, flushed = std::move(flushed)](const std::optional<Error>& error) { answer(flushed, error); });
  }
  answer(done, std::nullopt);
}

void CommitQueue::answer(const Group& group, const std::optional<Error>& error) {
  for (const auto& request : group) {
    if (error && request->visible && request->task.unconfirmed) {
      request->task.unconfirmed();
    }
  }
  {
    const MutexLock lock(mutex_);
    for (const auto& request : group) {
      if (error && request->visible && !request->left) {
        undo_later(*request);
      }
      request->error = error;
      request->done = true;
    }
  }
  for (const auto& request : group) {
    request->changed.notify_one();
  }
}

void CommitQueue::undo_later(Request& request) {
  if (request.task.undo) {
    const auto undo = std::make_shared<Request>();
    undo->task = {.work = std::move(request.task.undo), .flush = false};
    waiting_.push_back(undo);
    work_there_.notify_one();
  }
}

void CommitQueue::fail_waiting(const Error& error) {
  Group group;
  {
    const MutexLock lock(mutex_);
    group.assign(waiting_.begin(), waiting_.end());
    waiting_.clear();
    for (const auto& request : group) {
      request->taken = true;
    }
  }
  answer(group, error);
}

void CommitQueue::checkpoint() {
  if (tools_.checkpointer.log_has(tools_.connection.log_pages()) && SLUICE_GUARD(checkpoint_restart)) {
    const Turn turn(tools_.lock_file);
    // If there is something wrong with the file, the next commit tells.
    static_cast<void>(tools_.connection.checkpoint());
  }
}

}  // namespace sluice::queue::sqlite
