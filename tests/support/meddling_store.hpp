#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/forwarding_store.hpp"

namespace sluice::test {

/// Another store, whose messages somebody else changes between the moment they are listed and the moment they are
/// changed: `meddle` is called before each call of `change` reaches it.
class MeddlingStore : public ForwardingStore {
 public:
  MeddlingStore(queue::Store& store, std::function<void(queue::Store& store)> meddle)
      : ForwardingStore(store), meddle_(std::move(meddle)) {}

  std::vector<queue::ChangeResult> change(const std::string& queue, std::span<const queue::Change> changes,
                                          Deadline deadline) override {
    meddle_(underlying());
    return underlying().change(queue, changes, deadline);
  }

 private:
  const std::function<void(queue::Store& store)> meddle_;
};

}  // namespace sluice::test
