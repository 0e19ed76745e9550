#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "tests/support/forwarding_operator.hpp"

namespace sluice::test {

/// Another operator, whose messages somebody else changes between the moment they are listed and the moment they are
/// changed: `meddle` is called before each call of `change` reaches it.
class MeddlingOperator final : public ForwardingOperator {
 public:
  MeddlingOperator(queue::Operator& beneath, std::function<void()> meddle)
      : ForwardingOperator(beneath), meddle_(std::move(meddle)) {}

  std::vector<queue::ChangeResult> change(std::span<const queue::Change> changes, Deadline deadline) override {
    meddle_();
    return beneath().change(changes, deadline);
  }

 private:
  const std::function<void()> meddle_;
};

}  // namespace sluice::test
