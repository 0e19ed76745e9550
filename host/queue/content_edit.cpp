#include "host/queue/content_edit.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/ranges.hpp"
#include "base/text/json_check.hpp"
#include "base/text/json_reader.hpp"
#include "base/text/json_string.hpp"

namespace sluice::queue {

namespace {

/// A member of an object or an element of an array, as it is written.
struct Member {
  std::string name;          ///< empty in an array
  std::string_view written;  ///< the name with its quotes; empty in an array
  std::string_view value;

  const char* begin() const { return written.empty() ? value.data() : written.data(); }
  const char* end() const { return value.data() + value.size(); }
};

/// The members of an object or array, whose text is known to be JSON.
std::vector<Member> members_of(std::string_view container) {
  JsonReader reader(container, kJsonDepth, JsonReader::BadText::refuse);
  std::vector<Member> found;
  if (reader.peek() == JsonReader::Kind::object) {
    std::string_view name;
    reader.begin_object();
    while (reader.next_member(name)) {
      Member& member = found.emplace_back(Member{std::string(name), reader.name_as_written(), {}});
      reader.read_raw(member.value);
    }
  } else {
    reader.begin_array();
    while (reader.next_element()) {
      reader.read_raw(found.emplace_back().value);
    }
  }
  return found;
}

std::string shown(const PathStep& step) {
  if (const auto* key = std::get_if<std::string>(&step)) {
    return "\"" + *key + "\"";
  }
  return "[" + std::to_string(std::get<std::size_t>(step)) + "]";
}

Error nowhere(const PathStep& step, const std::string& why) {
  return {ErrorCode::invalid, "the path leads nowhere at " + shown(step) + ": " + why};
}

/// The object or array that a step goes into.
struct Place {
  std::string_view container;
  std::vector<Member> members;
  std::size_t found = 0;  ///< which member the step names; their number when there is none
};

Result<Place> enter(std::string_view container, const PathStep& step) {
  const auto* key = std::get_if<std::string>(&step);
  if (!container.starts_with(key != nullptr ? '{' : '[')) {
    return nowhere(step, key != nullptr ? "there is no object" : "there is no array");
  }
  Place place{.container = container, .members = members_of(container)};
  const std::size_t count = place.members.size();
  if (key == nullptr) {
    place.found = std::get<std::size_t>(step);
    return place.found <= count ? Result<Place>(std::move(place))
                                : nowhere(step, "the array has " + std::to_string(count) + " elements");
  }
  const auto last = std::find_if(place.members.rbegin(), place.members.rend(),
                                 [key](const Member& member) { return member.name == *key; });
  place.found = last == place.members.rend() ? count : static_cast<std::size_t>(place.members.rend() - last) - 1;
  return place;
}

/// `document` with what lies between two places in it replaced.
std::string splice(std::string_view document, const char* begin, const char* end, std::string_view with) {
  std::string out;
  out.reserve(document.size() + with.size());
  out.append(document.data(), begin);
  out += with;
  out.append(end, document.data() + document.size());
  return out;
}

/// Takes a member away with the comma before it, or the first one with the comma after it.
std::string without_member(std::string_view document, const Place& place) {
  const std::vector<Member>& members = place.members;
  if (place.found > 0) {
    return splice(document, members[place.found - 1].end(), members[place.found].end(), {});
  }
  return splice(document, members[0].begin(), members.size() > 1 ? members[1].begin() : members[0].end(), {});
}

std::string edit_member(std::string_view document, const Place& place, const PathStep& step,
                        const std::optional<std::string>& value) {
  if (!value) {
    return without_member(document, place);
  }
  if (place.found < place.members.size()) {
    const std::string_view before = place.members[place.found].value;
    return splice(document, before.data(), before.data() + before.size(), json_trimmed(*value));
  }
  std::string added = place.members.empty() ? "" : ",";
  if (const auto* key = std::get_if<std::string>(&step)) {
    append_json_string(added, *key);
    added += ':';
  }
  added += json_trimmed(*value);
  const char* at = place.members.empty() ? place.container.data() + 1 : place.members.back().end();
  return splice(document, at, at, added);
}

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
  if (!edit.json) {
    message.group.clear();
    return {};
  }
  SLUICE_TRY(group, string_of(edit, "group"));
  message.group = std::move(*group);
  return {};
}

Result<void> edit_priority(Message& message, const ContentEdit& edit) {
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

/// What can be edited, by how its path begins.
struct Part {
  std::string_view name;
  Result<void> (*edit)(Message& message, const ContentEdit& edit);
  bool has_parts = false;
};
constexpr std::array<Part, 5> kParts{{{"data", edit_body, true},
                                      {"attributes", edit_attribute, true},
                                      {"content_type", edit_content_type},
                                      {"group", edit_group},
                                      {"priority", edit_priority}}};

Result<void> apply_edit(Message& message, const ContentEdit& edit) {
  const auto* field = edit.path.empty() ? nullptr : std::get_if<std::string>(&edit.path.front());
  const std::string name = field == nullptr ? "" : *field;
  const Part* const part = find_where(kParts, [&name](const Part& one) { return one.name == name; });
  if (part == nullptr) {
    return refusal(name.empty() ? "(no path)" : name,
                   "a path begins with data, attributes, content_type, group or priority; nothing else can be edited");
  }
  return part->has_parts || edit.path.size() == 1 ? part->edit(message, edit) : refusal(name, "it has nothing inside");
}

}  // namespace

Result<std::string> edit_json(std::string_view document, std::span<const PathStep> path,
                              const std::optional<std::string>& value) {
  if (const auto problem = value ? json_problem(*value) : std::nullopt) {
    return Error(ErrorCode::invalid, "the new value is not JSON: " + *problem);
  }
  if (path.empty()) {
    return value ? Result<std::string>(std::string(json_trimmed(*value)))
                 : Result<std::string>(Error(ErrorCode::invalid, "a whole document cannot be taken away; set it"));
  }
  if (const auto problem = json_problem(document)) {
    return Error(ErrorCode::invalid, "the document is not JSON: " + *problem);
  }
  std::string_view at = json_trimmed(document);
  for (std::size_t i = 0;; ++i) {
    SLUICE_TRY(place, enter(at, path[i]));
    const bool there = place->found < place->members.size();
    const bool last = i + 1 == path.size();
    if (!there && (!last || !value)) {
      return nowhere(path[i], "there is nothing");
    }
    if (!last) {
      at = place->members[place->found].value;
      continue;
    }
    std::string edited = edit_member(document, *place, path[i], value);
    if (const auto problem = json_problem(edited)) {
      return Error(ErrorCode::invalid, "the edited document would be no JSON: " + *problem);
    }
    return edited;
  }
}

Result<void> apply_edits(Message& message, std::span<const ContentEdit> edits) {
  for (const ContentEdit& edit : edits) {
    SLUICE_PASS_ON(apply_edit(message, edit));
  }
  return {};
}

}  // namespace sluice::queue
