#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/around.h"
#include "sluice/detail/test_kit.hpp"
#include "sluice/message.hpp"

namespace sluice::detail {

/// An instance of a handler that goes around the one that is tested.
struct TestAround {
  const sluice_handler* handler;
  const sluice_around* table;
  void* object;
};

/// The outermost first. Destroys them.
class TestArounds {
 public:
  TestArounds() = default;
  ~TestArounds() {
    for (const TestAround& one : chain_) {
      one.handler->destroy(one.object);
    }
  }
  TestArounds(const TestArounds&) = delete;
  TestArounds& operator=(const TestArounds&) = delete;

  /// Makes one, further inwards than those before. Throws with the reason when the host would not start the job.
  void add(const sluice_handler& handler, const testing::OptionMap& options, const sluice_host& host) {
    const auto* const table =
        handler.extension == nullptr ? nullptr : static_cast<const sluice_around*>(handler.extension(SLUICE_AROUND_1));
    if (table == nullptr) {
      throw std::invalid_argument("\"" + std::string(handler.name) + "\" goes around no other handler");
    }
    const TestOptions bound(handler, options);
    std::string why = bound.errors().empty() ? std::string() : bound.errors().front();
    void* instance = nullptr;
    const auto fail = [](void* sink, sluice_string text) { *static_cast<std::string*>(sink) = view(text); };
    if (!why.empty() || handler.create(&host, bound.data(), bound.size(), &instance, fail, &why) != 0) {
      throw std::invalid_argument("\"" + std::string(handler.name) + "\" cannot be made: " + why);
    }
    chain_.push_back({&handler, table, instance});
  }
  const std::vector<TestAround>& chain() const { return chain_; }

 private:
  std::vector<TestAround> chain_;
};

}  // namespace sluice::detail
