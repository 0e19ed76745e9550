#include "config/plain_reads.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>

#include "config/syntax.hpp"

namespace sluice::config {

namespace {

constexpr std::size_t kMostLabel = 255;
constexpr double kMostAmount = 1e9;

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::optional<double> number_of(const Value& value) {
  if (const auto* number = std::get_if<double>(&value.content)) {
    return *number;
  }
  if (const auto* integer = std::get_if<std::int64_t>(&value.content)) {
    return static_cast<double>(*integer);
  }
  const auto* text = std::get_if<std::string>(&value.content);
  if (text == nullptr || !value.from_environment) {
    return std::nullopt;
  }
  double number = 0;
  const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), number);
  return code == std::errc() && end == text->data() + text->size() ? std::optional(number) : std::nullopt;
}

/// "2026-11-01".
bool is_day(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-dd";
  if (text.size() != kForm.size()) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (kForm[i] == '-' ? text[i] != '-' : text[i] < '0' || text[i] > '9') {
      return false;
    }
  }
  const auto number = [text](std::size_t at, std::size_t count) {
    int value = 0;
    std::from_chars(text.data() + at, text.data() + at + count, value);
    return value;
  };
  return std::chrono::year_month_day(std::chrono::year(number(0, 4)),
                                     std::chrono::month(static_cast<unsigned>(number(5, 2))),
                                     std::chrono::day(static_cast<unsigned>(number(8, 2))))
      .ok();
}

}  // namespace

void read_flag(Section& section, Reader& reader, const std::string& key, bool& target) {
  const Member* member = section.find(key);
  if (member == nullptr || std::holds_alternative<BrokenValue>(member->value.content)) {
    return;
  }
  const auto* text = std::get_if<std::string>(&member->value.content);
  if (const auto* flag = std::get_if<bool>(&member->value.content)) {
    target = *flag;
  } else if (text != nullptr && member->value.from_environment && (*text == "true" || *text == "false")) {
    target = *text == "true";
  } else {
    reader.error(member->value.place, section.naming(key) + "must be true or false");
  }
}

void read_share(Section& section, Reader& reader, const std::string& key, double& target) {
  const Member* member = section.find(key);
  if (member == nullptr || std::holds_alternative<BrokenValue>(member->value.content)) {
    return;
  }
  const std::optional<double> number = number_of(member->value);
  if (!number || !(*number >= 0 && *number <= 1)) {
    reader.error(member->value.place, section.naming(key) + "must be a number from 0 to 1, such as 0.25");
    return;
  }
  target = *number;
}

void read_amount(Section& section, Reader& reader, const std::string& key, double& target, bool positive,
                 const char* example) {
  const Member* member = section.find(key);
  if (member == nullptr || std::holds_alternative<BrokenValue>(member->value.content)) {
    return;
  }
  const std::optional<double> number = number_of(member->value);
  const bool enough = number && (positive ? *number > 0 : *number >= 0);
  if (!enough || *number > kMostAmount) {
    reader.error(member->value.place, section.naming(key) + "must be a number " + (positive ? "above 0" : "from 0 on") +
                                          ", such as " + example);
    return;
  }
  target = *number;
}

void read_day(Section& section, Reader& reader, const std::string& key, std::string& target) {
  const Member* member = section.find(key);
  if (member == nullptr || std::holds_alternative<BrokenValue>(member->value.content)) {
    return;
  }
  const auto* foreign = std::get_if<ForeignValue>(&member->value.content);
  const auto* text = std::get_if<std::string>(&member->value.content);
  const std::string day = foreign != nullptr ? foreign->text : text != nullptr ? *text : std::string();
  if (!is_day(day)) {
    reader.error(member->value.place, section.naming(key) + "must be a day, such as 2026-11-01");
    return;
  }
  target = day;
}

void read_texts(Section& section, Reader& reader, const std::string& key, std::map<std::string, std::string>& target) {
  const Member* member = section.find(key);
  if (member == nullptr || std::holds_alternative<BrokenValue>(member->value.content)) {
    return;
  }
  const auto* table = std::get_if<Table>(&member->value.content);
  if (table == nullptr) {
    reader.error(member->value.place,
                 section.naming(key) + "must be a table of strings, not " + kind_of(member->value));
    return;
  }
  for (const Member& entry : *table) {
    const std::string name = "'" + abridged(entry.key) + "'";
    const auto* text = std::get_if<std::string>(&entry.value.content);
    if (std::holds_alternative<BrokenValue>(entry.value.content)) {
      continue;
    }
    if (text == nullptr) {
      reader.error(entry.value.place,
                   section.naming(key) + "must hold strings only; " + name + " is " + kind_of(entry.value));
    } else if (entry.key.empty() || has_control(entry.key) || has_control(*text)) {
      reader.error(entry.value.place, section.naming(key) + "must hold names and values without control characters; " +
                                          name + " does not");
    } else {
      target.insert_or_assign(entry.key, *text);
    }
  }
}

void read_secret(Section& section, Reader& reader, const std::string& key, std::string& target, Complaint complaint) {
  const Member* member = section.find(key);
  if (member == nullptr || std::holds_alternative<BrokenValue>(member->value.content)) {
    return;
  }
  const auto* text = std::get_if<std::string>(&member->value.content);
  if (text == nullptr) {
    reader.error(member->value.place, section.naming(key) + "must be a string, not " + kind_of(member->value));
  } else if (const char* expected = complaint(*text)) {
    reader.error(member->value.place, section.naming(key) + "must be " + expected + "; its value is not shown here");
  } else {
    target = *text;
  }
}

void read_url(Section& section, Reader& reader, const std::string& key, std::string& target, Complaint complaint) {
  const Member* member = section.find(key);
  const auto* text = member == nullptr ? nullptr : std::get_if<std::string>(&member->value.content);
  if (text != nullptr && text->find('@') != std::string::npos) {
    read_secret(section, reader, key, target, complaint);
  } else {
    section.read(key, target, complaint);
  }
}

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
