#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/store_file.hpp"
#include "host/stores/sqlite/store_thread.hpp"

namespace sluice::queue::sqlite {

/// Reads by a `Reader`, one after the other on a thread and a connection of their own: so that no caller waits beyond
/// its deadline, and no writer for a read. A `Reader` is made on the connection and used on that thread only.
/// Thread-safe.
template <typename Reader>
class ReadThread {
 public:
  /// On its thread, on one state of the file. It owns what it touches, for its caller may have left.
  using Work = std::function<void(Reader&)>;
  /// Gives the connection, on its thread, when it is first needed, unless there is one; called again where it
  /// has failed.
  using Open = std::function<Result<std::unique_ptr<Connection>>()>;

  ReadThread(const Clock& clock, const StoreFile& file, Open open, std::unique_ptr<Connection> opened = nullptr)
      : clock_(clock),
        file_(file),
        open_(std::move(open)),
        connection_(std::move(opened)),
        reader_(connection_ ? std::make_unique<Reader>(*connection_) : nullptr),
        thread_([this](const std::stop_token& stop) { serve(stop); }) {}

  Result<void> run(Work work, Deadline deadline) {
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

  void request_stop() { thread_.request_stop(); }
  bool ended_by(SteadyTime limit) { return thread_.ended_by(limit); }

 private:
  struct Request {
    Work work;
    Deadline deadline = Deadline::never();
    // Guarded by mutex_ of the reads.
    bool done = false;
    std::optional<Error> error;
    Condition changed;
  };

  static Error too_late() {
    return {ErrorCode::timeout, "the deadline passed before the store had read; allow more time"};
  }

  void serve(const std::stop_token& stop) {
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

  std::optional<Error> read(const Request& request) {
    const auto passed = [this, &request] { return request.deadline.passed(clock_.steady_now()); };
    if (passed()) {
      return too_late();
    }
    SLUICE_PASS_ON(file_.check());
    SLUICE_PASS_ON(open());
    connection_->wait_for_locks_until(machine_after(request.deadline.left(clock_.steady_now())));
    connection_->interrupt_when(passed);
    connection_->execute("BEGIN");
    request.work(*reader_);
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

  Result<void> open() {
    if (!connection_) {
      SLUICE_TRY(opened, open_());
      auto reader = std::make_unique<Reader>(**opened);
      if ((*opened)->failed()) {
        return (*opened)->failure();
      }
      connection_ = std::move(*opened);
      reader_ = std::move(reader);
    }
    return {};
  }

  // Fixed after construction.
  const Clock& clock_;
  const StoreFile& file_;

  // Touched only by its thread.
  const Open open_;
  std::unique_ptr<Connection> connection_;
  std::unique_ptr<Reader> reader_;

  Mutex mutex_;
  Condition work_there_;
  std::deque<std::shared_ptr<Request>> waiting_ SLUICE_GUARDED_BY(mutex_);

  StoreThread thread_;
};

}  // namespace sluice::queue::sqlite
