#include "host/operate/content_document.hpp"

#include <algorithm>
#include <optional>

#include "base/ranges.hpp"
#include "base/text/base64.hpp"
#include "base/text/joined.hpp"
#include "base/text/number.hpp"
#include "base/text/utf8.hpp"
#include "config/config.hpp"
#include "host/operate/describe.hpp"
#include "host/operate/json_value.hpp"

namespace sluice::operate {

namespace {

using Edits = std::vector<queue::ContentEdit>;
using EditPath = std::vector<queue::PathStep>;
using ValueKind = JsonValue::Kind;

const std::vector<std::string>& known_parts() {
  static const std::vector<std::string> kParts{"data", "content_type", "attributes", "group", "priority"};
  return kParts;
}

Error wrong(std::string message) { return {ErrorCode::invalid, std::move(message)}; }

Error unknown_part(const std::string& name) {
  const auto meant = config::nearest(name, known_parts());
  return wrong("\"" + name + "\" cannot be edited; " +
               (meant ? "did you mean " + *meant + "?" : "there are " + joined(known_parts())));
}

/// The content as a document; a body that is not text or JSON is left out.
JsonValue content_of(const queue::Message& message) {
  JsonValue content;
  content.kind = ValueKind::object;
  if (is_utf8(message.body)) {
    content.add("data", json_or_text(message));
  }
  content.add("content_type", JsonValue::of_string(message.content_type));
  JsonValue attributes;
  attributes.kind = ValueKind::object;
  for (const auto& [name, value] : message.attributes) {
    attributes.add(name, JsonValue::of_string(value));
  }
  content.add("attributes", std::move(attributes));
  if (!message.group.empty()) {
    content.add("group", JsonValue::of_string(message.group));
  }
  if (message.priority != queue::Priority::normal) {
    content.add("priority", JsonValue::of_string(std::string(to_string(message.priority))));
  }
  return content;
}

/// Adds what is to be edited at `path` to make one value of another; null: there is none.
void add_edits(Edits& edits, const EditPath& path, const JsonValue* before, const JsonValue* after) {
  const auto below = [&](const queue::PathStep& step, const JsonValue* was, const JsonValue* is) {
    EditPath deeper = path;
    deeper.push_back(step);
    add_edits(edits, deeper, was, is);
  };
  const bool both = before != nullptr && after != nullptr && before->kind == after->kind;
  if (both && before->kind == ValueKind::object) {
    for (const std::string& key : before->keys) {
      below(key, before->member(key), after->member(key));
    }
    for (const std::string& key : after->keys) {
      if (before->member(key) == nullptr) {
        below(key, nullptr, after->member(key));
      }
    }
  } else if (both && before->kind == ValueKind::array) {
    const std::size_t common = std::min(before->items.size(), after->items.size());
    for (std::size_t index = 0; index < after->items.size(); ++index) {
      below(index, index < common ? &before->items[index] : nullptr, &after->items[index]);
    }
    // From the end, so that no index moves before its turn.
    for (std::size_t index = before->items.size(); index > common; --index) {
      below(index - 1, &before->items[index - 1], nullptr);
    }
  } else if (!both || before->text != after->text || before->truth != after->truth) {
    // 1 and 1.0 differ: who changes the spelling means it.
    edits.push_back({.path = path, .json = after != nullptr ? std::optional(to_json(*after)) : std::nullopt});
  }
}

std::optional<Error> check(const JsonValue& document) {
  if (document.kind != ValueKind::object) {
    return wrong("the document must be an object with data, content_type, attributes and group");
  }
  for (const std::string& key : document.keys) {
    if (std::count(document.keys.begin(), document.keys.end(), key) > 1) {
      return wrong("\"" + key + "\" stands there twice");
    }
    if (key != "data_encoding" && !contains(known_parts(), key)) {
      return unknown_part(key);
    }
  }
  for (const char* const name : {"content_type", "group", "priority"}) {
    if (const JsonValue* part = document.member(name); part != nullptr && part->kind != ValueKind::string) {
      return wrong(std::string(name) + " must be text");
    }
  }
  if (const JsonValue* attributes = document.member("attributes")) {
    const auto is_text = [](const JsonValue& value) { return value.kind == ValueKind::string; };
    if (attributes->kind != ValueKind::object ||
        !std::all_of(attributes->items.begin(), attributes->items.end(), is_text)) {
      return wrong("attributes must be an object of texts");
    }
  }
  return std::nullopt;
}

/// Reads a path up to its end or to the "=" behind it.
class PathReader {
 public:
  explicit PathReader(std::string_view text) : text_(text) {}

  Result<EditPath> read() {
    EditPath path;
    const std::string first = name();
    if (!contains(known_parts(), first)) {
      return unknown_part(first);
    }
    path.emplace_back(first);
    while (!rest().empty() && rest().front() != '=') {
      auto step = rest().front() == '[' ? bracketed() : named();
      if (!step) {
        return wrong(std::string("in \"") + std::string(text_.substr(0, at_)) + "...\": expected .name, [0] or " +
                     R"(["name"] at column )" + std::to_string(at_ + 1));
      }
      path.push_back(std::move(*step));
    }
    if (first == "attributes" ? path.size() != 2 : first != "data" && path.size() != 1) {
      return wrong(first == "attributes" ? "attributes is edited one by one: attributes.NAME"
                                         : "nothing lies below " + first);
    }
    return path;
  }

  std::string_view rest() const { return text_.substr(at_); }

 private:
  std::string name() {
    const std::size_t length = std::min(rest().find_first_of(".[="), rest().size());
    std::string found(rest().substr(0, length));
    at_ += length;
    return found;
  }

  std::optional<queue::PathStep> named() {
    if (rest().front() != '.') {
      return std::nullopt;
    }
    ++at_;
    std::string found = name();
    return found.empty() ? std::nullopt : std::optional<queue::PathStep>(std::move(found));
  }

  std::optional<queue::PathStep> bracketed() {
    const std::string_view inner = rest().substr(1);
    JsonReader reader(inner, 1, JsonReader::BadText::refuse);
    std::optional<queue::PathStep> step;
    std::string name;
    std::string_view digits;
    if (reader.peek() == ValueKind::string && reader.read_string(name)) {
      step = std::move(name);
    } else if (reader.peek() == ValueKind::number && reader.read_number(digits)) {
      step = parse_number<std::size_t>(digits);
    }
    if (!step || !inner.substr(reader.offset()).starts_with(']')) {
      return std::nullopt;
    }
    at_ += reader.offset() + 2;
    return step;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

std::string content_document(const queue::StoredMessage& stored) {
  JsonValue content = content_of(stored.message);
  if (content.member("data") == nullptr) {
    content.add("data", JsonValue::of_string(base64(stored.message.body)));
    content.add("data_encoding", JsonValue::of_string("base64"));
  }
  return to_json(content, JsonWriter::Layout::indented) + "\n";
}

Result<Edits> content_edits(const queue::StoredMessage& stored, std::string_view document) {
  SLUICE_TRY(after, parse_json(document));
  if (auto error = check(*after)) {
    return std::move(*error);
  }
  const JsonValue before = content_of(stored.message);
  const JsonValue* data = after->member("data");
  const bool binary = before.member("data") == nullptr;
  if (binary && (data == nullptr || data->kind != ValueKind::string || data->text != base64(stored.message.body))) {
    return wrong("a body of bytes cannot be edited; send a new message instead");
  }
  if (!binary && data == nullptr) {
    return wrong("data is missing; write null for none");
  }
  if (after->member("content_type") == nullptr) {
    return wrong("content_type is missing");
  }
  JsonValue none;
  none.kind = ValueKind::object;
  Edits edits;
  // The content type comes first: it says how a new body is meant.
  for (const std::string part : {"content_type", "data", "group", "priority", "attributes"}) {
    const JsonValue* was = before.member(part);
    const JsonValue* is = after->member(part) == nullptr && part == "attributes" ? &none : after->member(part);
    if (!(binary && part == "data") && (was != nullptr || is != nullptr)) {
      add_edits(edits, {part}, was, is);
    }
  }
  return edits;
}

Result<EditPath> parse_edit_path(std::string_view text) {
  PathReader reader(text);
  auto path = reader.read();
  if (path && !reader.rest().empty()) {
    return wrong("\"" + std::string(text) + "\" is no path: there is a = in it");
  }
  return path;
}

Result<queue::ContentEdit> parse_assignment(std::string_view text) {
  PathReader reader(text);
  SLUICE_TRY(path, reader.read());
  if (reader.rest().empty()) {
    return wrong("\"" + std::string(text) + "\" has no value; write PATH=VALUE");
  }
  const std::string_view written = reader.rest().substr(1);
  const bool in_data = std::get<std::string>(path->front()) == "data";
  const auto json = parse_json(written);
  const bool as_is = json && (in_data || json->kind == ValueKind::string);
  return queue::ContentEdit{.path = std::move(*path),
                            .json = as_is ? to_json(*json) : to_json(JsonValue::of_string(std::string(written)))};
}

}  // namespace sluice::operate
