#include "host/queue/json_edit.hpp"

#include <vector>

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
  Place place{.container = container, .members = {}, .found = 0};
  if (const auto* key = std::get_if<std::string>(&step)) {
    if (!container.starts_with('{')) {
      return nowhere(step, "there is no object");
    }
    place.members = members_of(container);
    place.found = place.members.size();
    for (std::size_t i = 0; i < place.members.size(); ++i) {
      if (place.members[i].name == *key) {
        place.found = i;
      }
    }
    return place;
  }
  if (!container.starts_with('[')) {
    return nowhere(step, "there is no array");
  }
  place.members = members_of(container);
  place.found = std::get<std::size_t>(step);
  if (place.found > place.members.size()) {
    return nowhere(step, "the array has " + std::to_string(place.members.size()) + " elements");
  }
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

}  // namespace sluice::queue
