#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/forwarding_operator.hpp"

namespace sluice::test {

/// Another operator, but for the changes of one id, which fail.
class RefusingOperator : public ForwardingOperator {
 public:
  RefusingOperator(queue::Operator& beneath, std::string refused)
      : ForwardingOperator(beneath), refused_(std::move(refused)) {}

  std::vector<queue::ChangeResult> change(std::span<const queue::Change> changes, Deadline deadline) override {
    std::vector<queue::ChangeResult> results;
    for (const queue::Change& change : changes) {
      if (change.id == refused_) {
        results.push_back({queue::ChangeStatus::failed, 0, Error(ErrorCode::unavailable, "refused by the test")});
      } else {
        results.push_back(beneath().change(std::span(&change, 1), deadline).front());
      }
    }
    return results;
  }

 private:
  const std::string refused_;
};

}  // namespace sluice::test
