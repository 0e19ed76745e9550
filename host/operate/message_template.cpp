#include "host/operate/message_template.hpp"

#include <optional>
#include <utility>

#include "base/text/json_check.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/utf8.hpp"

namespace sluice::operate {

namespace {

/// What a JSON body has at that place, as text; nothing where it has no text, number or truth value there.
std::optional<std::string> value_at(const std::string& body, const std::string& pointer) {
  auto found = json_problem(body) ? std::nullopt : json_at(body, pointer);
  return found && !found->text.empty() ? std::optional(std::move(found->text)) : std::nullopt;
}

}  // namespace

queue::NewMessage MessageTemplate::make(std::string body, std::string_view by_body) const {
  queue::NewMessage message = shared;
  message.body = std::move(body);
  message.content_type = content_type.empty() ? by_body : content_type;
  return message;
}

Result<queue::NewMessage> MessageTemplate::from_json(std::string_view json) const {
  const std::string_view text = json_trimmed(json);
  if (const auto problem = json_problem(text)) {
    return Error(ErrorCode::invalid, *problem);
  }
  if (text.front() == '"') {
    return keyed(make(*json_string(text), queue::kTextPlain));
  }
  return keyed(make(std::string(text), queue::kJson));
}

Result<queue::NewMessage> MessageTemplate::keyed(queue::NewMessage message) const {
  if (dedup_from.empty() && unique_from.empty()) {
    return message;
  }
  for (const auto& [pointer, key] : {std::pair(&dedup_from, &message.dedup_id), {&unique_from, &message.unique_key}}) {
    if (pointer->empty()) {
      continue;
    }
    auto found = value_at(message.body, *pointer);
    if (!found || found->empty()) {
      return Error(ErrorCode::invalid,
                   "the body has no text or number at " + *pointer + ", where its key is taken from");
    }
    *key = std::move(*found);
  }
  return message;
}

Result<queue::NewMessage> MessageTemplate::from_text(std::string text) const {
  return keyed(make(std::move(text), queue::kTextPlain));
}

Result<queue::NewMessage> MessageTemplate::from_file(const std::string& name, std::string bytes) const {
  constexpr std::string_view kSuffix = ".json";
  const bool named_json = name.size() > kSuffix.size() && name.ends_with(kSuffix);
  if (named_json && !json_problem(json_trimmed(bytes))) {
    return keyed(make(std::string(json_trimmed(bytes)), queue::kJson));
  }
  const auto type = is_utf8(bytes) ? queue::kTextPlain : queue::kOctetStream;
  return keyed(make(std::move(bytes), type));
}

}  // namespace sluice::operate
