#pragma once

#include <string>
#include <vector>

#include "host/queue/operator.hpp"

namespace sluice::test {

/// Another operator, for tests that change what a method or two of it do.
class ForwardingOperator : public queue::Operator {
 public:
  /// `beneath` outlives this one.
  explicit ForwardingOperator(queue::Operator& beneath) : beneath_(beneath) {}

  Result<queue::StoredMessage> get(const std::string& id, Deadline deadline) override {
    return beneath_.get(id, deadline);
  }
  Result<queue::ListPage> list(const queue::ListRequest& request, Deadline deadline) override {
    return beneath_.list(request, deadline);
  }
  Result<queue::QueueStats> stats(const queue::StatsRequest& request, Deadline deadline) override {
    return beneath_.stats(request, deadline);
  }
  Result<queue::QueueOverview> overview(const queue::OverviewRequest& request, Deadline deadline) override {
    return beneath_.overview(request, deadline);
  }
  std::vector<queue::ChangeResult> change(std::span<const queue::Change> changes, Deadline deadline) override {
    return beneath_.change(changes, deadline);
  }
  Result<queue::StoredMessage> edit(const std::string& id, std::int64_t version,
                                    std::span<const queue::ContentEdit> edits, Deadline deadline) override {
    return beneath_.edit(id, version, edits, deadline);
  }
  std::vector<queue::PutResult> put(std::span<const queue::StoredMessage> records, queue::PutMode mode,
                                    Deadline deadline) override {
    return beneath_.put(records, mode, deadline);
  }

 protected:
  queue::Operator& beneath() { return beneath_; }

 private:
  queue::Operator& beneath_;
};

}  // namespace sluice::test
