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

}  // namespace sluice::plugin
