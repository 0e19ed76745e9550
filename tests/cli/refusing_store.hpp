#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/forwarding_store.hpp"

namespace sluice::test {

/// Another store, but for the changes of one id, which fail.
class RefusingStore : public ForwardingStore {
 public:
  RefusingStore(queue::Store& store, std::string refused) : ForwardingStore(store), refused_(std::move(refused)) {}

  std::vector<queue::ChangeResult> change(const std::string& queue, std::span<const queue::Change> changes,
                                          Deadline deadline) override {
    std::vector<queue::ChangeResult> results;
    for (const queue::Change& change : changes) {
      if (change.id == refused_) {
        results.push_back({queue::ChangeStatus::failed, 0, Error(ErrorCode::unavailable, "refused by the test")});
      } else {
        results.push_back(underlying().change(queue, std::span(&change, 1), deadline).front());
      }
    }
    return results;
  }

 private:
  const std::string refused_;
};

}  // namespace sluice::test
