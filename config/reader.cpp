#include "config/reader.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "config/syntax.hpp"

namespace sluice::config {

namespace {

std::string title_of(const std::string& path) { return path.empty() ? "the file" : "[" + one_line(path) + "]"; }

std::string quoted(const std::string& text) { return "\"" + abridged(text) + "\""; }

std::string listed(const std::vector<std::string>& words) {
  std::string result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    result += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + quoted(words[i]);
  }
  return result;
}

/// An integer as TOML has it, or as text that came out of an environment variable, which cannot be anything but text.
std::optional<std::int64_t> integer_of(const Value& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.content)) {
    return *integer;
  }
  const auto* text = std::get_if<std::string>(&value.content);
  if (text == nullptr || !value.from_environment) {
    return std::nullopt;
  }
  std::int64_t result = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), result);
  return code == std::errc() && end == text->data() + text->size() ? std::optional(result) : std::nullopt;
}

}  // namespace

std::string Section::title() const { return title_of(reader_->sections_[index_].path); }

Place Section::place() const { return reader_->sections_[index_].place; }

std::string Section::naming(const std::string& key) const { return "'" + key + "' in " + title() + " "; }

const Member* Section::find(const std::string& key) {
  std::vector<std::string>& keys = reader_->sections_[index_].keys;
  if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
    keys.push_back(key);
  }
  if (table_ == nullptr) {
    return nullptr;
  }
  const auto found =
      std::find_if(table_->begin(), table_->end(), [&](const Member& member) { return member.key == key; });
  return found == table_->end() ? nullptr : &*found;
}

const Member* Section::require(const std::string& key, const std::string& mend) {
  const Member* member = find(key);
  if (member == nullptr) {
    reader_->error(place(), title() + " has no '" + key + "'; " + mend);
  }
  return member;
}

void Section::wrong_type(const Member& member, const std::string& expected) {
  if (std::holds_alternative<BrokenValue>(member.value.content)) {
    return;
  }
  reader_->error(member.value.place, naming(member.key) + "must be " + expected + ", not " + kind_of(member.value));
}

const std::string* Section::string(const std::string& key, const Member** member) {
  *member = find(key);
  if (*member == nullptr) {
    return nullptr;
  }
  const auto* text = std::get_if<std::string>(&(*member)->value.content);
  if (text == nullptr) {
    wrong_type(**member, "a string");
  }
  return text;
}

void Section::read(const std::string& key, std::string& target, Complaint complaint) {
  const Member* member = nullptr;
  const std::string* text = string(key, &member);
  if (text == nullptr) {
    return;
  }
  if (const char* expected = complaint(*text)) {
    reader_->error(member->value.place, naming(key) + "must be " + expected + "; it is " + quoted(*text));
    return;
  }
  target = *text;
}

void Section::read(const std::string& key, std::uint32_t& target, std::uint32_t least, std::uint32_t most) {
  const Member* member = find(key);
  if (member == nullptr) {
    return;
  }
  const std::string expected = "an integer from " + std::to_string(least) + " to " + std::to_string(most);
  const std::optional<std::int64_t> integer = integer_of(member->value);
  if (!integer) {
    const auto* text = std::get_if<std::string>(&member->value.content);
    if (text != nullptr && member->value.from_environment) {
      reader_->error(member->value.place, naming(key) + "must be " + expected + "; it is " + quoted(*text));
    } else {
      wrong_type(*member, expected);
    }
  } else if (*integer < least || *integer > most) {
    reader_->error(member->value.place, naming(key) + "must be " + expected + "; it is " + std::to_string(*integer));
  } else {
    target = static_cast<std::uint32_t>(*integer);
  }
}

void Section::read(const std::string& key, Duration& target, DurationBounds bounds) {
  const Member* member = find(key);
  if (member == nullptr) {
    return;
  }
  const auto* text = std::get_if<std::string>(&member->value.content);
  if (text == nullptr) {
    wrong_type(*member, "a duration in quotes, such as \"30s\"");
    return;
  }
  const std::optional<Duration> duration = parse_duration(*text);
  if (!duration) {
    reader_->error(member->value.place,
                   naming(key) + "must be a duration, such as \"1500ms\", \"30s\" or \"15m\"; it is " + quoted(*text));
  } else if (*duration < bounds.least || *duration > bounds.most) {
    reader_->error(member->value.place, naming(key) + "must be from " + format_duration(bounds.least) + " to " +
                                            format_duration(bounds.most) + "; it is " + quoted(*text));
  } else {
    target = *duration;
  }
}

void Section::read(const std::string& key, std::vector<std::string>& target, Complaint complaint) {
  const Member* member = find(key);
  if (member == nullptr) {
    return;
  }
  const auto* array = std::get_if<Array>(&member->value.content);
  if (array == nullptr) {
    wrong_type(*member, "an array of strings");
    return;
  }
  std::vector<std::string> result;
  for (const Value& element : *array) {
    const auto* text = std::get_if<std::string>(&element.content);
    if (std::holds_alternative<BrokenValue>(element.content)) {
      continue;
    }
    if (text == nullptr) {
      reader_->error(element.place, naming(key) + "must hold strings only, not " + kind_of(element));
    } else if (const char* expected = complaint(*text)) {
      reader_->error(element.place, naming(key) + "must name " + expected + "; it has " + quoted(*text));
    } else {
      result.push_back(*text);
    }
  }
  target = std::move(result);
}

std::size_t Section::choose(const std::string& key, const std::vector<std::string>& words) {
  const Member* member = nullptr;
  const std::string* text = string(key, &member);
  if (text == nullptr) {
    return words.size();
  }
  const auto found = std::find(words.begin(), words.end(), *text);
  if (found == words.end()) {
    const std::optional<std::string> meant = nearest(*text, words);
    reader_->error(member->value.place, naming(key) + "must be " + listed(words) + "; it is " + quoted(*text) +
                                            (meant ? ": did you mean " + quoted(*meant) + "?" : ""));
  }
  return static_cast<std::size_t>(found - words.begin());
}

Section Section::section(const std::string& key) {
  const std::string& parent = reader_->sections_[index_].path;
  const std::string path = parent.empty() ? key : parent + "." + key;
  const Member* member = find(key);
  if (member == nullptr) {
    return reader_->add(path, {reader_->file_}, nullptr);
  }
  const auto* table = std::get_if<Table>(&member->value.content);
  if (table == nullptr) {
    wrong_type(*member, "a table, written as [" + path + "]");
  }
  return reader_->add(path, member->place, table);
}

Reader::Reader(const Document& document, std::string file) : file_(std::move(file)), errors_(document.errors) {
  add("", {file_}, &document.root);
}

Section Reader::root() { return Section(*this, 0, sections_.front().table); }

Section Reader::add(std::string path, Place place, const Table* table) {
  sections_.push_back({std::move(path), std::move(place), table, {}});
  return Section(*this, sections_.size() - 1, table);
}

void Reader::error(const Place& place, std::string message) { errors_.push_back({place, std::move(message)}); }

std::string Reader::unknown(const Known& section, const std::string& key) const {
  const std::string what = "unknown key '" + abridged(key) + "' in " + title_of(section.path);
  for (const Known& other : sections_) {
    if (std::find(other.keys.begin(), other.keys.end(), key) != other.keys.end()) {
      return what + "; it belongs in " + (other.path.empty() ? "the file's top level" : title_of(other.path));
    }
  }
  if (const std::optional<std::string> meant = nearest(key, section.keys)) {
    return what + "; did you mean '" + *meant + "'?";
  }
  std::string known;
  for (const std::string& name : section.keys) {
    known += (known.empty() ? "" : ", ") + name;
  }
  return what + (known.empty() ? "" : "; known are " + known);
}

std::vector<ConfigError> Reader::finish() {
  for (const Known& section : sections_) {
    if (section.table == nullptr) {
      continue;
    }
    for (const Member& member : *section.table) {
      if (std::find(section.keys.begin(), section.keys.end(), member.key) == section.keys.end()) {
        error(member.place, unknown(section, member.key));
      }
    }
  }
  std::stable_sort(errors_.begin(), errors_.end(), [](const ConfigError& a, const ConfigError& b) {
    return std::pair(a.place.line, a.place.column) < std::pair(b.place.line, b.place.column);
  });
  return std::move(errors_);
}

}  // namespace sluice::config
