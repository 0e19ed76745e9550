#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "host/queue/message.hpp"
#include "host/queue/operator.hpp"

namespace sluice::queue {

/// Applies edits, one after the other, to the content of a message that is kept as text: for stores whose bodies are
/// bytes. After an error `message` is not to be used. ErrorCode::invalid, naming the path, for one that leads nowhere
/// or a value that cannot stand there. See ContentEdit for what a path may name.
Result<void> apply_edits(Message& message, std::span<const ContentEdit> edits);

/// `document` with the value at `path` set to the JSON text `value`, or taken away when there is none. Every object and
/// array on the way must exist; the last step may be a new key, or the length of its array, which appends. An empty
/// path stands for the whole document. Of a key that stands in an object more than once the last one counts.
/// ErrorCode::invalid, naming the step, for a path that leads nowhere, a document or a value that is no JSON.
Result<std::string> edit_json(std::string_view document, std::span<const PathStep> path,
                              const std::optional<std::string>& value);

}  // namespace sluice::queue
