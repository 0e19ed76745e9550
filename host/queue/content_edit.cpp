#include "host/queue/content_edit.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "base/text/json_check.hpp"
#include "host/queue/json_edit.hpp"

namespace sluice::queue {

namespace {

Error refusal(const std::string& path, const std::string& why) { return {ErrorCode::invalid, path + ": " + why}; }

Result<std::string> string_of(const ContentEdit& edit, const std::string& path) {
  auto text = json_string(*edit.json);
  if (!text) {
    return refusal(path, "only a JSON string can stand there; write it in quotes");
  }
  return std::move(*text);
}

Result<void> replace_body(Message& message, const std::optional<std::string>& value) {
  if (!value) {
    return refusal("data", "a message cannot be without a body; set it to null or to an empty string");
  }
  if (const auto problem = json_problem(*value)) {
    return refusal("data", "the new value is not JSON: " + *problem);
  }
  const bool text = message.content_type != kJson && message.content_type != kOctetStream;
  if (auto characters = text ? json_string(*value) : std::nullopt) {
    message.body = std::move(*characters);
    return {};
  }
  message.body = json_trimmed(*value);
  message.content_type = kJson;
  return {};
}

Result<void> edit_body(Message& message, const ContentEdit& edit) {
  const auto path = std::span(edit.path).subspan(1);
  if (path.empty()) {
    return replace_body(message, edit.json);
  }
  if (message.content_type != kJson) {
    return refusal("data", "the body is " + message.content_type + ", not JSON, and has nothing inside; set it whole");
  }
  auto edited = edit_json(message.body, path, edit.json);
  if (!edited) {
    return refusal("data", edited.error().message());
  }
  message.body = std::move(*edited);
  return {};
}

Result<void> edit_attribute(Message& message, const ContentEdit& edit) {
  const auto* name = edit.path.size() == 2 ? std::get_if<std::string>(&edit.path[1]) : nullptr;
  if (name == nullptr || name->empty()) {
    return refusal("attributes", "name one attribute, as in attributes.tenant");
  }
  const std::string path = "attributes." + *name;
  if (!edit.json) {
    if (message.attributes.erase(*name) == 0) {
      return refusal(path, "there is no such attribute");
    }
    return {};
  }
  SLUICE_TRY(value, string_of(edit, path));
  message.attributes.insert_or_assign(*name, std::move(*value));
  return {};
}

Result<void> edit_content_type(Message& message, const ContentEdit& edit) {
  const std::string path = "content_type";
  if (edit.path.size() != 1) {
    return refusal(path, "it has nothing inside");
  }
  if (!edit.json) {
    return refusal(path, "it cannot be taken away; set it to text/plain");
  }
  SLUICE_TRY(type, string_of(edit, path));
  if (type->empty()) {
    return refusal(path, "it is empty; write text/plain");
  }
  if (const auto problem = *type == kJson ? json_problem(message.body) : std::nullopt) {
    return refusal(path, "the body is not JSON: " + *problem);
  }
  message.content_type = std::move(*type);
  return {};
}

Result<void> edit_group(Message& message, const ContentEdit& edit) {
  if (edit.path.size() != 1) {
    return refusal("group", "it has nothing inside");
  }
  if (!edit.json) {
    message.group.clear();
    return {};
  }
  SLUICE_TRY(group, string_of(edit, "group"));
  message.group = std::move(*group);
  return {};
}

Result<void> edit_priority(Message& message, const ContentEdit& edit) {
  if (edit.path.size() != 1) {
    return refusal("priority", "it has nothing inside");
  }
  if (!edit.json) {
    message.priority = Priority::normal;
    return {};
  }
  const auto name = string_of(edit, "priority");
  const auto priority = name ? priority_named(*name) : std::nullopt;
  if (!priority) {
    return refusal("priority", "it is one of \"critical\", \"high\", \"normal\" and \"low\"");
  }
  message.priority = *priority;
  return {};
}

Result<void> apply_edit(Message& message, const ContentEdit& edit) {
  const auto* field = edit.path.empty() ? nullptr : std::get_if<std::string>(&edit.path.front());
  const std::string name = field == nullptr ? "" : *field;
  if (name == "data") {
    return edit_body(message, edit);
  }
  if (name == "attributes") {
    return edit_attribute(message, edit);
  }
  if (name == "content_type") {
    return edit_content_type(message, edit);
  }
  if (name == "group") {
    return edit_group(message, edit);
  }
  if (name == "priority") {
    return edit_priority(message, edit);
  }
  return refusal(name.empty() ? "(no path)" : name,
                 "a path begins with data, attributes, content_type, group or priority; nothing else can be edited");
}

}  // namespace

Result<void> apply_edits(Message& message, std::span<const ContentEdit> edits) {
  for (const ContentEdit& edit : edits) {
    SLUICE_PASS_ON(apply_edit(message, edit));
  }
  return {};
}

}  // namespace sluice::queue
