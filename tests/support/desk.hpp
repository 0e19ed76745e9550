#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "host/queue/queues.hpp"

namespace sluice::test {

/// Every side of every queue in one place, for tests that go from one to the other: opens what a call needs and keeps it
/// open. Thread-safe, as the sides themselves are.
class Desk {
 public:
  explicit Desk(queue::Queues& queues) : queues_(queues) {}

  queue::Queues& queues() { return queues_; }
  queue::Source& source(const queue::QueueAddress& address);
  queue::Sender& sender(const std::string& queue);
  queue::Operator& oper(const std::string& queue);

  Result<std::vector<queue::Delivery>> claim(const queue::QueueAddress& address, std::size_t max, Duration visibility,
                                             Deadline deadline);
  std::vector<queue::SettleResult> settle(const queue::QueueAddress& address,
                                          std::span<const queue::Completion> completions, Deadline deadline);
  std::vector<queue::ExtendResult> extend(const queue::QueueAddress& address, std::span<const queue::Receipt> receipts,
                                          Duration visibility, Deadline deadline);
  std::vector<queue::SendResult> send(const std::string& queue, std::span<const queue::NewMessage> messages,
                                      Deadline deadline);
  Result<queue::StoredMessage> get(const std::string& queue, const std::string& id, Deadline deadline);
  Result<queue::ListPage> list(const std::string& queue, const queue::ListRequest& request, Deadline deadline);
  Result<queue::QueueStats> stats(const queue::QueueAddress& address, Deadline deadline);
  Result<queue::QueueOverview> overview(const std::string& queue, const queue::OverviewRequest& request,
                                        Deadline deadline);
  std::vector<queue::ChangeResult> change(const std::string& queue, std::span<const queue::Change> changes,
                                          Deadline deadline);
  Result<queue::StoredMessage> edit(const std::string& queue, const std::string& id, std::int64_t version,
                                    std::span<const queue::ContentEdit> edits, Deadline deadline);
  std::vector<queue::PutResult> put(const std::string& queue, std::span<const queue::StoredMessage> records,
                                    queue::PutMode mode, Deadline deadline);

  // One change of one message.

  Result<void> remove(const std::string& queue, const std::string& id, Deadline deadline);
  Result<void> dead_letter(const std::string& queue, const std::string& id, const queue::Failure& failure,
                           Deadline deadline);
  Result<void> redrive(const std::string& queue, const std::string& id, Deadline deadline);

 private:
  Result<void> change_one(const std::string& queue, queue::Change change, Deadline deadline);

  queue::Queues& queues_;
  Mutex mutex_;
  std::map<queue::QueueAddress, std::unique_ptr<queue::Source>> sources_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<queue::Sender>> senders_ SLUICE_GUARDED_BY(mutex_);
  std::map<std::string, std::unique_ptr<queue::Operator>> operators_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::test
