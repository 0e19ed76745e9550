#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/reconnect.hpp"
#include "host/stores/outbox/shared_scheduler.hpp"

namespace sluice::queue::outbox {

/// Reads what the line asks for, ahead of who claims; otherwise waits for news of the database. Connects again when its
/// session has ended.
class RowReader {
 public:
  /// Called on the reader's thread with rows that cannot be handed out.
  using PutAside = std::function<void(const std::vector<Row>& rows)>;
  /// Called on the reader's thread when more groups begin to wait than are remembered.
  using Crowded = std::function<void()>;
  /// Called on the reader's thread with the id of the table that the rows to come are of.
  using Named = std::function<void(const SourceId& source)>;

  /// The references outlive it. `named` may be empty: the table is not asked for its id.
  RowReader(SharedScheduler& line, Database& database, const Clock& clock, Random& random, PutAside put_aside,
            Crowded crowded, Named named);
  ~RowReader();

  /// Makes the thread. Called at most once.
  void start();
  /// Returns when the thread has ended.
  void stop();

 private:
  void run(const std::stop_token& stop);
  bool connect();
  void wait(const ReadOrder& order);
  bool read(const ReadOrder& order);
  void failed(const Error& error);
  void pause(const std::stop_token& stop);

  // Fixed after construction.
  SharedScheduler& scheduler_;
  Database& database_;
  const Clock& clock_;
  Random& random_;
  const PutAside put_aside_;
  const Crowded tell_crowded_;
  const Named tell_named_;

  // Touched only by the reader's thread.
  std::unique_ptr<ReadSession> session_;
  RetryPause retry_;
  bool crowded_ = false;

  Mutex mutex_;
  Condition stopped_;
  std::jthread thread_;
};

}  // namespace sluice::queue::outbox
