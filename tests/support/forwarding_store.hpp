#pragma once

#include <string>
#include <vector>

#include "host/queue/store.hpp"

namespace sluice::test {

/// Another store, for tests that change what a method or two of it do.
class ForwardingStore : public queue::Store {
 public:
  /// `store` outlives this one.
  explicit ForwardingStore(queue::Store& store) : store_(store) {}

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
    return store_.change(queue, changes, deadline);
  }
  Result<queue::StoredMessage> edit(const std::string& queue, const std::string& id, std::int64_t version,
                                    std::span<const queue::ContentEdit> edits, Deadline deadline) override {
    return store_.edit(queue, id, version, edits, deadline);
  }
  std::vector<queue::PutResult> put(const std::string& queue, std::span<const queue::StoredMessage> records,
                                    queue::PutMode mode, Deadline deadline) override {
    return store_.put(queue, records, mode, deadline);
  }

 protected:
  queue::Store& underlying() { return store_; }

 private:
  queue::Store& store_;
};

}  // namespace sluice::test
