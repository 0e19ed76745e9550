#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sluice/abi.h"
#include "sluice/around.h"

/// A message's way through what goes around its handler, for the host and for the test kit.
namespace sluice::detail {

/// What a handler did that the ABI forbids, whatever the message was: a defect of its plugin.
enum class Breach : std::uint8_t { none, no_outcome, illegal_outcome, exception };

/// `enter`, then the handler, then `leave`. One thread at a time, which need not be the same one. `message`, `context`,
/// `call` and the chain outlive it.
///
/// `Chain` lists those that go around, the outermost first, each with its `table` and its `object`. `Call` is what they
/// go around, as far as they change what comes of it:
///
///     void fail(why, breach)  the outcome is a fault, and what was staged is dropped
///     bool guarded(body)      runs it; false: it threw, and the outcome is a fault
///     bool take_report()      what was reported through the context since this was asked last becomes the outcome;
///                             false: nothing was. What was staged before an outcome that is not done is dropped
///     Outcome outcome()       what it has come to so far
///     raw_of(outcome)         the same as a sluice_outcome that borrows
template <typename Chain, typename Call>
class AroundPass {
 public:
  AroundPass(const Chain& chain, const sluice_message& message, const sluice_context& context, Call& call)
      : chain_(chain), message_(message), context_(context), call_(call) {}
  AroundPass(const AroundPass&) = delete;
  AroundPass& operator=(const AroundPass&) = delete;

  /// Enters one after the other. False: one of them has answered, or failed, and the handler is not to be called.
  bool enter() {
    // What one of them sees stays where it is until it is left.
    layers_.reserve(chain_.size());
    return std::all_of(chain_.begin(), chain_.end(), [this](const Around& around) { return enter_one(around); });
  }
  /// What the handler is to be given.
  const sluice_message& message() const { return inner(layers_.size()); }
  /// Leaves those that were entered, the last one first: each sees what has come so far, and may replace it. Once, also
  /// where `enter` says no.
  void leave() {
    for (; !layers_.empty(); layers_.pop_back()) {
      const Around& around = chain_[layers_.size() - 1];
      const sluice_message& seen = inner(layers_.size() - 1);
      // What is reported takes its place while it is still looked at.
      const auto so_far = call_.outcome();
      const sluice_outcome raw = Call::raw_of(so_far);
      if (call_.guarded([&] { around.table->leave(around.object, layers_.back().cookie, &seen, &context_, &raw); })) {
        call_.take_report();
      }
    }
  }

 private:
  using Around = typename Chain::value_type;
  struct Layer {
    void* cookie;
    sluice_message inner;  ///< what those further inwards see
  };

  /// What is seen within so many layers.
  const sluice_message& inner(std::size_t layers) const { return layers == 0 ? message_ : layers_[layers - 1].inner; }
  bool enter_one(const Around& around) {
    const sluice_message& seen = message();
    sluice_around_call call{sizeof(sluice_around_call), 0, nullptr, seen.body, seen.content_type, seen.attributes,
                            seen.attribute_count};
    sluice_around_answer answer = SLUICE_AROUND_ANSWERED;
    if (!call_.guarded([&] { answer = around.table->enter(around.object, &seen, &context_, &call); })) {
      return false;
    }
    // What it reported where the call goes on all the same is no answer.
    const bool reported = call_.take_report();
    if (answer != SLUICE_AROUND_GO_ON) {
      if (!reported) {
        call_.fail("what goes around the handler ended the call without an outcome: a defect of the plugin",
                   Breach::no_outcome);
      }
      return false;
    }
    layers_.push_back({call.cookie, seen});
    if (!is_sound(call)) {
      call_.fail("what goes around the handler left a size without bytes: a defect of the plugin",
                 Breach::illegal_outcome);
      return false;
    }
    sluice_message& within = layers_.back().inner;
    within.body = call.body;
    within.content_type = call.content_type;
    within.attributes = call.attributes;
    within.attribute_count = call.attribute_count;
    return true;
  }
  static bool is_sound(const sluice_around_call& call) {
    return (call.body.data != nullptr || call.body.size == 0) &&
           (call.content_type.data != nullptr || call.content_type.size == 0) &&
           (call.attributes != nullptr || call.attribute_count == 0);
  }

  const Chain& chain_;
  const sluice_message& message_;
  const sluice_context& context_;
  Call& call_;
  std::vector<Layer> layers_;
};

}  // namespace sluice::detail
