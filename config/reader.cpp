#include "config/reader.hpp"

#include <algorithm>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/trim.hpp>
#include <optional>
#include <utility>

#include "base/text/joined.hpp"
#include "base/text/number.hpp"
#include "base/text/visible.hpp"
#include "base/timestamp.hpp"
#include "config/files.hpp"
#include "config/syntax.hpp"

namespace sluice::config {

namespace {

std::string title_of(const std::string& path) { return path.empty() ? "the file" : "[" + visible(path) + "]"; }

std::string quoted(const std::string& text) { return "\"" + abridged(text) + "\""; }

std::string listed(const std::vector<std::string>& words) {
  std::string result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    result += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + quoted(words[i]);
  }
  return result;
}

/// A number as text, which alone can come out of an environment variable.
template <typename Number>
std::optional<Number> number_from_environment(const Value& value) {
  const auto* text = std::get_if<std::string>(&value.content);
  if (text == nullptr || !value.from_environment) {
    return std::nullopt;
  }
  return parse_number<Number>(*text);
}

std::optional<std::int64_t> integer_of(const Value& value) {
  const auto* integer = std::get_if<std::int64_t>(&value.content);
  return integer != nullptr ? *integer : number_from_environment<std::int64_t>(value);
}

constexpr std::size_t kMostLabel = 255;

/// "2026-11-01".
bool is_day(const std::string& text) { return parse_timestamp(text + "T00:00:00Z").has_value(); }

}  // namespace

std::optional<double> number_of(const Value& value) {
  if (const auto* number = std::get_if<double>(&value.content)) {
    return *number;
  }
  const auto* integer = std::get_if<std::int64_t>(&value.content);
  return integer != nullptr ? static_cast<double>(*integer) : number_from_environment<double>(value);
}

std::string Section::title() const { return title_of(known_->path); }

Place Section::place() const { return known_->place; }

std::string Section::naming(const std::string& key) const { return "'" + abridged(key) + "' in " + title() + " "; }

void Section::error(const Place& place, std::string text) { reader_->error(place, std::move(text)); }

void Section::error_here(const std::string& text) { error(place(), title() + text); }

void Section::error_at_value(const std::string& key, const std::string& text) {
  error(find(key)->value.place, naming(key) + text);
}

void Section::refuse(std::initializer_list<const char*> keys, const std::string& text) {
  for (const char* key : keys) {
    if (find(key) != nullptr) {
      error(find(key)->place, naming(key) + text);
    }
  }
}

void Section::check_name(const Member& member, const std::string& whose) {
  if (const char* expected = name_complaint(member.key)) {
    error(member.place, whose + " name must be " + expected + "; it is " + quoted(member.key));
  }
}

const Table& Section::members() const {
  static const Table kNone;
  return present() ? *known_->table : kNone;
}

const Member* Section::find(const std::string& key) {
  std::vector<std::string>& keys = known_->keys;
  if (!contains(keys, key)) {
    keys.push_back(key);
  }
  return find_where(members(), [&](const Member& member) { return member.key == key; });
}

const std::string* Section::text(const std::string& key) {
  const Member* member = find(key);
  return member == nullptr ? nullptr : std::get_if<std::string>(&member->value.content);
}

const Member* Section::require(const std::string& key, const std::string& mend) {
  const Member* member = find(key);
  if (member == nullptr) {
    error(place(), title() + " has no '" + key + "'; " + mend);
  }
  return member;
}

Place Section::require(const std::string& key, const std::string& mend, std::string& target, Complaint complaint) {
  const Member* member = require(key, mend);
  read(key, target, complaint);
  return member == nullptr ? Place() : member->value.place;
}

const Value* Section::find_sound(const std::string& key) {
  const Member* member = find(key);
  const bool sound = member != nullptr && !std::holds_alternative<BrokenValue>(member->value.content);
  return sound ? &member->value : nullptr;
}

void Section::wrong_type(const std::string& key, const Value& value, const std::string& expected) {
  error(value.place, naming(key) + "must be " + expected + ", not " + kind_of(value));
}

template <typename Content>
const Content* Section::find_content(const std::string& key, const std::string& expected) {
  const Value* value = find_sound(key);
  const auto* content = value == nullptr ? nullptr : std::get_if<Content>(&value->content);
  if (value != nullptr && content == nullptr) {
    wrong_type(key, *value, expected);
  }
  return content;
}

void Section::read(const std::string& key, std::string& target, Complaint complaint, bool shown) {
  const auto* text = find_content<std::string>(key, "a string");
  if (text == nullptr) {
    return;
  }
  if (const char* expected = complaint(*text)) {
    error_at_value(key, std::string("must be ") + expected + "; " +
                            (shown ? "it is " + quoted(*text) : "its value is not shown here"));
  } else {
    target = *text;
  }
}

void Section::read(const std::string& key, std::uint32_t& target, std::uint32_t least, std::uint32_t most) {
  const Value* value = find_sound(key);
  if (value == nullptr) {
    return;
  }
  const std::string expected = "an integer from " + std::to_string(least) + " to " + std::to_string(most);
  const std::optional<std::int64_t> integer = integer_of(*value);
  const auto* text = std::get_if<std::string>(&value->content);
  if (integer && *integer >= least && *integer <= most) {
    target = static_cast<std::uint32_t>(*integer);
  } else if (integer) {
    error_at_value(key, std::string("must be ") + expected + "; it is " + std::to_string(*integer));
  } else if (text != nullptr && value->from_environment) {
    error_at_value(key, std::string("must be ") + expected + "; it is " + quoted(*text));
  } else {
    wrong_type(key, *value, expected);
  }
}

void Section::read(const std::string& key, Duration& target, DurationBounds bounds) {
  const auto* text = find_content<std::string>(key, "a duration in quotes, such as \"30s\"");
  if (text == nullptr) {
    return;
  }
  const std::optional<Duration> duration = parse_duration(*text);
  if (!duration) {
    error_at_value(key, "must be a duration, such as \"1500ms\", \"30s\" or \"15m\"; it is " + quoted(*text));
  } else if (*duration < bounds.least || *duration > bounds.most) {
    error_at_value(key, "must be from " + format_duration(bounds.least) + " to " + format_duration(bounds.most) +
                            "; it is " + quoted(*text));
  } else {
    target = *duration;
  }
}

void Section::read(const std::string& key, std::vector<std::string>& target, Complaint complaint) {
  const auto* array = find_content<Array>(key, "an array of strings");
  if (array == nullptr) {
    return;
  }
  std::vector<std::string> result;
  for (const Value& element : *array) {
    const auto* text = std::get_if<std::string>(&element.content);
    if (std::holds_alternative<BrokenValue>(element.content)) {
      continue;
    }
    if (text == nullptr) {
      error(element.place, naming(key) + "must hold strings only, not " + kind_of(element));
    } else if (const char* expected = complaint(*text)) {
      error(element.place, naming(key) + "must name " + expected + "; it has " + quoted(*text));
    } else {
      result.push_back(*text);
    }
  }
  target = std::move(result);
}

std::size_t Section::choose(const std::string& key, const std::vector<std::string>& words) {
  const auto* text = find_content<std::string>(key, "a string");
  if (text == nullptr) {
    return words.size();
  }
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found == words.end()) {
    const std::optional<std::string> meant = nearest(*text, words);
    error_at_value(key, "must be " + listed(words) + "; it is " + quoted(*text) +
                            (meant ? ": did you mean " + quoted(*meant) + "?" : ""));
  }
  return static_cast<std::size_t>(found - words.begin());
}

Section Section::section(const std::string& key, const std::string& below) {
  std::string parent = known_->path;
  boost::trim_if(parent, boost::is_any_of("[]"));  // of one that stands in a list
  const std::string path = parent.empty() ? key : parent + "." + key;
  const Member* member = find(key);
  if (member == nullptr) {
    return reader_->add(path, {reader_->file_}, nullptr);
  }
  const auto* table = std::get_if<Table>(&member->value.content);
  if (table == nullptr && find_sound(key) != nullptr) {
    wrong_type(key, member->value, "a table, written as [" + path + below + "]");
  }
  return reader_->add(path, member->place, table);
}

std::vector<Section> Section::sections(const std::string& key, std::size_t most) {
  // So that its title is in two brackets.
  const std::string path = "[" + known_->path + "." + key + "]";
  const std::string expected = "a list of tables, each written as [" + path + "]";
  std::vector<Section> all;
  const auto* list = find_content<Array>(key, expected);
  if (list == nullptr) {
    return all;
  }
  if (list->size() > most) {
    error_at_value(key,
                   "has " + std::to_string(list->size()) + " entries, and at most " + std::to_string(most) + " can be");
  }
  for (std::size_t i = 0; i < std::min(list->size(), most); ++i) {
    const Value& element = (*list)[i];
    if (const auto* table = std::get_if<Table>(&element.content)) {
      all.push_back(reader_->add(path, element.place, table));
    } else {
      wrong_type(key, element, expected);
    }
  }
  return all;
}

Reader::Reader(const Document& document, std::string file) : file_(std::move(file)), errors_(document.errors) {
  add("", {file_}, &document.root);
}

Section Reader::root() { return Section(*this, sections_.front()); }

Section Reader::add(std::string path, Place place, const Table* table) {
  return Section(*this, sections_.emplace_back(KnownTable{std::move(path), std::move(place), table, {}}));
}

void Reader::error(const Place& place, std::string message) { errors_.push_back({place, std::move(message)}); }

std::string Reader::unknown(const KnownTable& section, const std::string& key) const {
  const std::string what = "unknown key '" + abridged(key) + "' in " + title_of(section.path);
  for (const KnownTable& other : sections_) {
    if (contains(other.keys, key)) {
      return what + "; it belongs in " + (other.path.empty() ? "the file's top level" : title_of(other.path));
    }
  }
  if (const std::optional<std::string> meant = nearest(key, section.keys)) {
    return what + "; did you mean '" + *meant + "'?";
  }
  return what + (section.keys.empty() ? "" : "; known are " + joined(section.keys));
}

std::vector<ConfigError> Reader::finish() {
  for (const KnownTable& section : sections_) {
    if (section.table == nullptr) {
      continue;
    }
    for (const Member& member : *section.table) {
      if (!contains(section.keys, member.key)) {
        error(member.place, unknown(section, member.key));
      }
    }
  }
  std::stable_sort(errors_.begin(), errors_.end(), [](const ConfigError& a, const ConfigError& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  return std::move(errors_);
}

void Section::read(const std::string& key, bool& target) {
  const Value* value = find_sound(key);
  if (value == nullptr) {
    return;
  }
  const auto* text = std::get_if<std::string>(&value->content);
  if (const auto* flag = std::get_if<bool>(&value->content)) {
    target = *flag;
  } else if (text != nullptr && value->from_environment && (*text == "true" || *text == "false")) {
    target = *text == "true";
  } else {
    error_at_value(key, "must be true or false");
  }
}

void Section::read(const std::string& key, double& target, const NumberRule& rule, const std::string& example) {
  const Value* value = find_sound(key);
  const std::optional<double> number = value == nullptr ? std::nullopt : number_of(*value);
  if (number && rule.is_met(*number)) {
    target = *number;
  } else if (value != nullptr) {
    error_at_value(key, std::string("must be a number ") + rule.said + ", such as " + example);
  }
}

void Section::read_day(const std::string& key, std::string& target) {
  const Value* value = find_sound(key);
  if (value == nullptr) {
    return;
  }
  const auto* foreign = std::get_if<ForeignValue>(&value->content);
  const auto* text = std::get_if<std::string>(&value->content);
  const std::string day = foreign != nullptr ? foreign->text : text != nullptr ? *text : std::string();
  if (!is_day(day)) {
    error_at_value(key, "must be a day, such as 2026-11-01");
    return;
  }
  target = day;
}

void Section::read(const std::string& key, std::map<std::string, std::string>& target, bool plain) {
  const auto* table = find_content<Table>(key, "a table of strings");
  if (table == nullptr) {
    return;
  }
  for (const Member& entry : *table) {
    const std::string name = "'" + abridged(entry.key) + "'";
    const auto* text = std::get_if<std::string>(&entry.value.content);
    if (std::holds_alternative<BrokenValue>(entry.value.content)) {
      continue;
    }
    if (text == nullptr) {
      error(entry.value.place, naming(key) + "must hold strings only; " + name + " is " + kind_of(entry.value));
    } else if (plain && (entry.key.empty() || has_control(entry.key) || has_control(*text))) {
      error(entry.value.place,
            naming(key) + "must hold names and values without control characters; " + name + " does not");
    } else {
      target.insert_or_assign(entry.key, *text);
    }
  }
}

void Section::read_path(const std::string& key, std::string& target) {
  read(key, target, path_complaint);
  target = resolve_path(target, reader_->file_);
}

void Section::read_url(const std::string& key, std::string& target, Complaint complaint) {
  const std::string* address = text(key);
  read(key, target, complaint, address == nullptr || address->find('@') == std::string::npos);
}

const char* any_complaint(const std::string& /*text*/) { return nullptr; }

const char* token_complaint(const std::string& text) {
  const bool visible =
      std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && static_cast<unsigned char>(c) < 0x7f; });
  return !text.empty() && visible ? nullptr : "a token of visible ASCII characters";
}

const char* label_complaint(const std::string& text) {
  return text.size() <= kMostLabel && !has_control(text) ? nullptr
                                                         : "at most 255 bytes of text without control characters";
}

bool is_http_url(std::string_view text, bool path) {
  const auto after = [&](std::string_view scheme) { return text.starts_with(scheme) ? scheme.size() : 0; };
  const std::size_t begin = std::max(after("http://"), after("https://"));
  if (begin == 0) {
    return false;
  }
  const std::string_view rest = text.substr(begin);
  const std::string_view authority = rest.substr(0, rest.find('/'));
  const std::string_view tail = rest.substr(authority.size());
  const bool clean = std::all_of(rest.begin(), rest.end(), [](char c) {
    return c > 0x20 && static_cast<unsigned char>(c) < 0x7f && c != '@' && c != '?' && c != '#' && c != '\\';
  });
  return clean && !authority.empty() && authority.front() != ':' && (path || tail.empty());
}

}  // namespace sluice::config
