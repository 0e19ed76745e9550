#pragma once

#include <span>

#include "base/error.hpp"
#include "host/queue/change.hpp"
#include "host/queue/message.hpp"

namespace sluice::queue {

/// Applies edits, one after the other, to the content of a message that is kept as text: for stores whose bodies are
/// bytes. After an error `message` is not to be used. ErrorCode::invalid, naming the path, for one that leads nowhere
/// or a value that cannot stand there. See ContentEdit for what a path may name.
Result<void> apply_edits(Message& message, std::span<const ContentEdit> edits);

}  // namespace sluice::queue
