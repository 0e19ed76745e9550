#pragma once

#include <vector>

#include "tests/support/forwarding_operator.hpp"

namespace sluice::test {

/// Another operator that tells of all but the last of several changes or records, as none should.
class ForgetfulOperator final : public ForwardingOperator {
 public:
  using ForwardingOperator::ForwardingOperator;

  std::vector<queue::ChangeResult> change(std::span<const queue::Change> changes, Deadline deadline) override {
    return all_but_last(beneath().change(changes, deadline));
  }
  std::vector<queue::PutResult> put(std::span<const queue::StoredMessage> records, queue::PutMode mode,
                                    Deadline deadline) override {
    return all_but_last(beneath().put(records, mode, deadline));
  }

 private:
  template <typename Results>
  static Results all_but_last(Results results) {
    if (results.size() > 1) {
      results.pop_back();
    }
    return results;
  }
};

}  // namespace sluice::test
