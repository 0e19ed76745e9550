#include "host/queue/json_edit.hpp"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstdint>
#include <vector>

namespace sluice::queue {

namespace {

namespace json = boost::json;

/// A piece of the text, by its places.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

/// A member of an object or an element of an array.
struct Member {
  Span whole;  ///< with its key
  Span value;
};

/// Goes over a text that is known to be JSON.
class Walker {
 public:
  explicit Walker(std::string_view text) : text_(text) {}

  std::size_t skip_space(std::size_t at) const {
    while (at < text_.size() && is_json_space(text_[at])) {
      ++at;
    }
    return at;
  }

  /// Behind the value that begins at `at`.
  std::size_t skip_value(std::size_t at) const {
    std::size_t depth = 0;
    do {
      at = skip_space(at);
      const char byte = text_[at];
      if (byte == '"') {
        at = skip_string(at);
      } else if (byte == '{' || byte == '[') {
        ++depth;
        ++at;
      } else if (byte == '}' || byte == ']') {
        --depth;
        ++at;
      } else if (byte == ',' || byte == ':') {
        ++at;
      } else {
        at = std::min(text_.find_first_of(",:]} \t\r\n", at), text_.size());
      }
    } while (depth > 0);
    return at;
  }

  /// The members of the object or array that begins at `at`.
  std::vector<Member> members(std::size_t at) const {
    const bool keyed = text_[at] == '{';
    std::vector<Member> found;
    at = skip_space(at + 1);
    while (text_[at] != '}' && text_[at] != ']') {
      Member& member = found.emplace_back();
      member.whole.begin = at;
      if (keyed) {
        at = skip_space(skip_string(at)) + 1;
      }
      member.value.begin = skip_space(at);
      at = skip_value(at);
      member.value.end = member.whole.end = at;
      at = skip_space(at);
      if (text_[at] == ',') {
        at = skip_space(at + 1);
      }
    }
    return found;
  }

  std::string key(const Member& member) const {
    const std::size_t begin = member.whole.begin;
    return json_string(text_.substr(begin, skip_string(begin) - begin)).value_or("");
  }

  char at(std::size_t place) const { return text_[place]; }

 private:
  std::size_t skip_string(std::size_t at) const {
    ++at;
    while (text_[at] != '"') {
      at += text_[at] == '\\' ? 2U : 1U;
    }
    return at + 1;
  }

  std::string_view text_;
};

std::string shown(const PathStep& step) {
  if (const auto* key = std::get_if<std::string>(&step)) {
    return "\"" + *key + "\"";
  }
  return "[" + std::to_string(std::get<std::size_t>(step)) + "]";
}

Error nowhere(const PathStep& step, const std::string& why) {
  return {ErrorCode::invalid, "the path leads nowhere at " + shown(step) + ": " + why};
}

std::string quoted(const std::string& key) { return json::serialize(json::string(key)); }

/// The object or array that a step goes into.
struct Place {
  std::size_t begin = 0;
  std::vector<Member> members;
  std::size_t found = 0;  ///< which member the step names; their number when there is none
};

Result<Place> enter(const Walker& walker, std::size_t begin, const PathStep& step) {
  Place place{.begin = begin, .members = {}, .found = 0};
  if (const auto* key = std::get_if<std::string>(&step)) {
    if (walker.at(begin) != '{') {
      return nowhere(step, "there is no object");
    }
    place.members = walker.members(begin);
    place.found = place.members.size();
    for (std::size_t i = 0; i < place.members.size(); ++i) {
      if (walker.key(place.members[i]) == *key) {
        place.found = i;
      }
    }
    return place;
  }
  if (walker.at(begin) != '[') {
    return nowhere(step, "there is no array");
  }
  place.members = walker.members(begin);
  place.found = std::get<std::size_t>(step);
  if (place.found > place.members.size()) {
    return nowhere(step, "the array has " + std::to_string(place.members.size()) + " elements");
  }
  return place;
}

std::string splice(std::string_view text, Span span, std::string_view with) {
  std::string out;
  out.reserve(text.size() + with.size());
  out += text.substr(0, span.begin);
  out += with;
  out += text.substr(span.end);
  return out;
}

/// What goes with a member when it is taken away: the comma before it, or the one after the first.
Span with_comma(const Place& place) {
  const std::vector<Member>& members = place.members;
  if (place.found > 0) {
    return {members[place.found - 1].whole.end, members[place.found].whole.end};
  }
  if (members.size() > 1) {
    return {members[0].whole.begin, members[1].whole.begin};
  }
  return members[0].whole;
}

std::string edit_member(std::string_view text, const Place& place, const PathStep& step,
                        const std::optional<std::string>& value) {
  if (!value) {
    return splice(text, with_comma(place), {});
  }
  if (place.found < place.members.size()) {
    return splice(text, place.members[place.found].value, json_trimmed(*value));
  }
  std::string added = place.members.empty() ? "" : ",";
  if (const auto* key = std::get_if<std::string>(&step)) {
    added += quoted(*key) + ":";
  }
  added += json_trimmed(*value);
  const std::size_t at = place.members.empty() ? place.begin + 1 : place.members.back().whole.end;
  return splice(text, {at, at}, added);
}

}  // namespace

std::optional<std::string> json_string(std::string_view text) {
  text = json_trimmed(text);
  if (text.empty() || text.front() != '"') {
    return std::nullopt;
  }
  json::error_code failed;
  const json::value parsed = json::parse(json::string_view(text.data(), text.size()), failed);
  if (failed || !parsed.is_string()) {
    return std::nullopt;
  }
  return std::string(parsed.get_string());
}

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
  const Walker walker(document);
  std::size_t at = walker.skip_space(0);
  for (std::size_t i = 0;; ++i) {
    const auto place = enter(walker, at, path[i]);
    if (!place) {
      return place.error();
    }
    const bool there = place->found < place->members.size();
    const bool last = i + 1 == path.size();
    if (!there && (!last || !value)) {
      return nowhere(path[i], "there is nothing");
    }
    if (!last) {
      at = place->members[place->found].value.begin;
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
