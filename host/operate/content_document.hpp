#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::operate {

/// A message's content as an operator edits it: a JSON document with data, content_type, attributes, group and
/// priority. Text is a JSON string; bytes that are no text are Base64, and may not be edited.
std::string content_document(const queue::StoredMessage& message);

/// What makes the message's content that of the edited document, naming no more than what differs; empty when nothing
/// does. ErrorCode::invalid for a document that is no JSON (with line and column) or has other keys or types.
Result<std::vector<queue::ContentEdit>> content_edits(const queue::StoredMessage& message, std::string_view document);

/// "data.items[0].sku", "attributes.tenant", `data["odd key"]`, "content_type", "group".
Result<std::vector<queue::PathStep>> parse_edit_path(std::string_view text);

/// "PATH=VALUE". Below data the value is JSON, or else text; everywhere else it is text, with or without JSON's quotes.
Result<queue::ContentEdit> parse_assignment(std::string_view text);

}  // namespace sluice::operate
