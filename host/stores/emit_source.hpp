#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/source.hpp"
#include "host/stores/dedup_sender.hpp"

namespace sluice::queue {

/// What holds for the messages that handlers send in the transaction of a completion. A value.
struct EmitRules {
  /// Why none can be sent to that queue in a transaction of this source; nothing: it can.
  std::function<std::optional<Error>(const std::string& to)> refused;
  /// Why nobody would work on it there, which no other try mends: the handler's message is rejected. Nothing: somebody
  /// would.
  std::function<std::optional<Error>(const std::string& to, Deadline deadline)> unknown;
  std::function<DedupRules(const std::string& to)> dedup;  ///< as for its other senders
};

/// A source whose completions are held to these rules: one that sends where it cannot is refused, and nothing of it is
/// committed; what messages leave open of their deduplication is filled in.
std::unique_ptr<Source> emitting(std::unique_ptr<Source> source, EmitRules rules);

/// Gives whoever asks a sender of that queue.
using OpenSender = std::function<Result<std::unique_ptr<Sender>>(const std::string& to)>;

/// A source that shares no transaction with the queues its completions send to: their messages are sent first, in the
/// order that the source wants (`send_order`), and a completion is settled once all of its own are there. What was sent
/// is sent again where the settlement fails or its host ends in between. A queue that nobody knows, or whose table is
/// not there, is waited for; `warn` is told of it once in ten minutes. `clock` outlives it.
std::unique_ptr<Source> sending_first(std::unique_ptr<Source> source, OpenSender open_sender, const Clock& clock,
                                      std::function<void(const std::string& warning)> warn);

}  // namespace sluice::queue
