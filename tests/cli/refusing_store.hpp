#pragma once

#include <string>
#include <utility>
#include <vector>

#include "host/queue/store.hpp"

namespace sluice::test {

/// Another store, but for the changes of one id, which fail.
class RefusingStore : public queue::Store {
 public:
  RefusingStore(queue::Store& store, std::string refused) : store_(store), refused_(std::move(refused)) {}

  Result<std::vector<queue::Claim>> claim(const queue::QueueAddress& address, std::size_t max, Duration visibility,
                                          Deadline deadline) override {
    return store_.claim(address, max, visibility, deadline);
  }
  std::vector<queue::SettleResult> settle(const queue::QueueAddress& address,
                                          std::span<const queue::Settlement> settlements, Deadline deadline) override {
    return store_.settle(address, settlements, deadline);
  }
  std::vector<queue::ExtendResult> extend(const queue::QueueAddress& address, std::span<const queue::Receipt> receipts,
                                          Duration visibility, Deadline deadline) override {
    return store_.extend(address, receipts, visibility, deadline);
  }
  std::vector<queue::SendResult> send(const std::string& queue, std::span<const queue::NewMessage> messages,
                                      Deadline deadline) override {
    return store_.send(queue, messages, deadline);
  }
  Result<queue::StoredMessage> get(const std::string& queue, const std::string& id, Deadline deadline) override {
    return store_.get(queue, id, deadline);
  }
  Result<queue::ListPage> list(const queue::ListRequest& request, Deadline deadline) override {
    return store_.list(request, deadline);
  }
  Result<queue::QueueStats> stats(const queue::QueueAddress& address, Deadline deadline) override {
    return store_.stats(address, deadline);
  }
  Result<queue::QueueOverview> overview(const queue::OverviewRequest& request, Deadline deadline) override {
    return store_.overview(request, deadline);
  }
  std::vector<queue::ChangeResult> change(const std::string& queue, std::span<const queue::Change> changes,
                                          Deadline deadline) override {
    std::vector<queue::ChangeResult> results;
    for (const queue::Change& change : changes) {
      if (change.id == refused_) {
        results.push_back({queue::ChangeStatus::failed, 0, Error(ErrorCode::unavailable, "refused by the test")});
      } else {
        results.push_back(store_.change(queue, std::span(&change, 1), deadline).front());
      }
    }
    return results;
  }
  Result<queue::StoredMessage> edit(const std::string& queue, const std::string& id, std::int64_t version,
                                    std::span<const queue::ContentEdit> edits, Deadline deadline) override {
    return store_.edit(queue, id, version, edits, deadline);
  }
  std::vector<queue::PutResult> put(const std::string& queue, std::span<const queue::StoredMessage> records,
                                    queue::PutMode mode, Deadline deadline) override {
    return store_.put(queue, records, mode, deadline);
  }

 private:
  queue::Store& store_;
  const std::string refused_;
};

}  // namespace sluice::test
