#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "sluice/around.h"
#include "sluice/detail/test_kit.hpp"
#include "sluice/message.hpp"

namespace sluice::detail {

/// Instances of handlers that go around the one that is tested, the outermost first.
class TestArounds {
 public:
  TestArounds() = default;
  ~TestArounds() {
    for (const One& one : ones_) {
      one.handler->destroy(one.instance);
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
    ones_.push_back({&handler, table, instance});
  }

  /// One message's way through them.
  class Pass {
   public:
    /// What stands within all that were entered sees this of the message.
    const sluice_message& inner(const sluice_message& message) const {
      return layers_.empty() ? message : layers_.back().inner;
    }

   private:
    friend class TestArounds;
    struct Layer {
      void* cookie;
      sluice_message inner;
    };
    std::vector<Layer> layers_;
  };

  /// As the host does it. False: one of them has answered, and the handler is not to be called.
  bool enter(Pass& pass, const sluice_message& message, const sluice_context& context) const {
    for (const One& one : ones_) {
      const sluice_message& seen = pass.inner(message);
      sluice_around_call call{sizeof(sluice_around_call), 0, nullptr, seen.body, seen.content_type, seen.attributes,
                              seen.attribute_count};
      if (one.table->enter(one.instance, &seen, &context, &call) != SLUICE_AROUND_GO_ON) {
        return false;
      }
      pass.layers_.push_back({call.cookie, seen});
      sluice_message& inner = pass.layers_.back().inner;
      inner.body = call.body;
      inner.content_type = call.content_type;
      inner.attributes = call.attributes;
      inner.attribute_count = call.attribute_count;
    }
    return true;
  }
  /// `outcome` answers what was reported last, and `settle` drops what was staged before one that is not done.
  template <typename Outcome, typename Settle>
  void leave(Pass& pass, const sluice_message& message, const sluice_context& context, Outcome outcome,
             Settle settle) const {
    while (!pass.layers_.empty()) {
      void* const cookie = pass.layers_.back().cookie;
      pass.layers_.pop_back();
      const One& one = ones_[pass.layers_.size()];
      const sluice_outcome so_far = outcome();
      one.table->leave(one.instance, cookie, &pass.inner(message), &context, &so_far);
      settle();
    }
  }

 private:
  struct One {
    const sluice_handler* handler;
    const sluice_around* table;
    void* instance;
  };

  std::vector<One> ones_;
};

}  // namespace sluice::detail
