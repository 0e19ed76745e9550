#pragma once

#include <span>

#include "host/plugin/handler_instance.hpp"
#include "sluice/around.h"

namespace sluice::plugin {

/// What makes a handler one that goes around others; null: it is none. Asks the plugin, which [control] may.
const sluice_around* around_of(const sluice_handler& handler);

/// A handler that goes around a job's, with its options. A value.
struct AroundSpec {
  const sluice_handler* handler = nullptr;
  OptionValues options;
};

/// Makes the instances for one worker, in this order. Of `known`, which was made before of the same specs (or is
/// empty), it takes those that all workers share. Errors as HandlerInstance::create.
Result<AroundChain> make_arounds(const HandlerSurroundings& surroundings, const std::string& job,
                                 std::span<const AroundSpec> specs, const AroundChain& known);

/// An instance with arounds of its own.
Result<std::unique_ptr<HandlerInstance>> make_within(HandlerSurroundings surroundings, const sluice_handler& handler,
                                                     const std::string& job, const OptionValues& options,
                                                     std::span<const AroundSpec> arounds);

/// The call that arounds go around, as far as they change what comes of it.
class AroundedCall {
 public:
  virtual ~AroundedCall() = default;

  /// What was reported through its context since this was asked last becomes the outcome, as the host understands it;
  /// false: nothing was. What was staged before an outcome that is not done is dropped.
  virtual bool take_report() = 0;
  /// The outcome is a fault, and what was staged is dropped.
  virtual void fail(std::string_view why, Breach breach) = 0;
  /// What it has come to so far.
  virtual const Outcome& outcome() const = 0;
};

/// One message's way through the arounds of its job: `enter`, then the handler, then `leave`. One thread at a time,
/// which need not be the same one. `message`, `context`, `call` and the chain outlive it.
class AroundPass : boost::noncopyable {
 public:
  AroundPass(const AroundChain& chain, const sluice_message& message, const sluice_context& context, AroundedCall& call)
      : chain_(chain), message_(message), context_(context), call_(call) {}

  /// Enters one after the other. False: one of them has answered, or failed, and the handler is not to be called.
  bool enter();
  /// What the handler is to be given.
  const sluice_message& message() const { return inner(layers_.size()); }
  /// Leaves those that were entered, the last one first: each sees what has come so far, and may replace it. Once, also
  /// where `enter` says no.
  void leave();

 private:
  struct Layer {
    void* cookie;
    sluice_message inner;  ///< what those further inwards see
  };

  /// What is seen within so many layers.
  const sluice_message& inner(std::size_t layers) const { return layers == 0 ? message_ : layers_[layers - 1].inner; }
  bool enter_one(const Around& around);

  const AroundChain& chain_;
  const sluice_message& message_;
  const sluice_context& context_;
  AroundedCall& call_;
  std::vector<Layer> layers_;
};

}  // namespace sluice::plugin
