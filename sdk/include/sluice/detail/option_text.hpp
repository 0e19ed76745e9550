#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifndef __cpp_lib_to_chars
#include <locale>
#include <sstream>
#endif

/// How option values are spelt in text, as defaults are in an option's declaration: a subset of TOML. The functions are
/// constexpr so that a wrong default does not compile.
namespace sluice::detail {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// "42", "-7", "1_000"; nothing for other text or what does not fit.
constexpr std::optional<std::int64_t> parse_integer(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) {
    text.remove_prefix(1);
  }
  if (text.empty() || !is_digit(text.front()) || !is_digit(text.back())) {
    return std::nullopt;
  }
  // Counted downwards, because the smallest integer has no positive counterpart.
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  std::int64_t value = 0;
  char previous = '0';
  for (const char c : text) {
    if (c == '_' && previous != '_') {
      previous = c;
      continue;
    }
    const std::int64_t digit = c - '0';
    if (!is_digit(c) || value < (kLeast + digit) / 10) {
      return std::nullopt;
    }
    value = value * 10 - digit;
    previous = c;
  }
  if (!negative && value == kLeast) {
    return std::nullopt;
  }
  return negative ? value : -value;
}

/// The shape of a number: "5", "-0.25", "1e3".
constexpr bool is_number(std::string_view text) {
  if (text.starts_with('-')) {
    text.remove_prefix(1);
  }
  const auto digits = [&text] {
    std::size_t count = 0;
    while (count < text.size() && is_digit(text[count])) {
      ++count;
    }
    text.remove_prefix(count);
    return count > 0;
  };
  if (!digits()) {
    return false;
  }
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    if (!digits()) {
      return false;
    }
  }
  if (text.starts_with('e') || text.starts_with('E')) {
    text.remove_prefix(1);
    if (text.starts_with('-') || text.starts_with('+')) {
      text.remove_prefix(1);
    }
    if (!digits()) {
      return false;
    }
  }
  return text.empty();
}

inline std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  if (!is_number(text)) {
    return std::nullopt;
  }
#ifdef __cpp_lib_to_chars
  const bool fits = std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc();
#else
  // libc++ reads numbers with a fraction from streams only.
  std::istringstream stream{std::string(text)};
  stream.imbue(std::locale::classic());
  const bool fits = static_cast<bool>(stream >> value);
#endif
  return fits ? std::optional(value) : std::nullopt;
}

constexpr std::optional<bool> parse_boolean(std::string_view text) {
  if (text == "true" || text == "false") {
    return text == "true";
  }
  return std::nullopt;
}

/// Nanoseconds of "250us", "1500ms", "30s", "15m", "2h", "1d"; nothing for other text or what does not fit.
constexpr std::optional<std::int64_t> parse_duration_text(std::string_view text) {
  struct Unit {
    std::string_view name;
    std::int64_t nanoseconds;
  };
  constexpr std::int64_t kSecond = 1'000'000'000;
  constexpr Unit kUnits[] = {{"ns", 1},           {"us", 1'000},         {"ms", 1'000'000},     {"s", kSecond},
                             {"m", 60 * kSecond}, {"h", 3600 * kSecond}, {"d", 86400 * kSecond}};
  std::size_t digits = 0;
  while (digits < text.size() && is_digit(text[digits])) {
    ++digits;
  }
  const std::optional<std::int64_t> count = parse_integer(text.substr(0, digits));
  for (const Unit& unit : kUnits) {
    if (count && text.substr(digits) == unit.name) {
      const bool fits = *count <= std::numeric_limits<std::int64_t>::max() / unit.nanoseconds;
      return fits ? std::optional(*count * unit.nanoseconds) : std::nullopt;
    }
  }
  return std::nullopt;
}

/// Takes the place of a string where text is only checked.
struct Discard {
  constexpr void push_back(char) {}
};

/// Reads lists and tables of strings: ["a", 'b'] and {name = "value", "other name" = "value"}.
class TextReader {
 public:
  constexpr explicit TextReader(std::string_view text) : rest_(text) {}

  /// True when the text was read to its end. `Item` is std::string or Discard; `take(Item)` gets each item in turn.
  template <typename Item, typename Take>
  constexpr bool list(Take take) {
    return all('[', ']', [&] {
      Item item{};
      const bool good = string(item);
      take(std::move(item));
      return good;
    });
  }
  /// As list; `take` gets name and value alternately.
  template <typename Item, typename Take>
  constexpr bool map(Take take) {
    return all('{', '}', [&] {
      Item name{};
      Item value{};
      const bool good = key(name) && skip('=') && string(value);
      take(std::move(name));
      take(std::move(value));
      return good;
    });
  }

 private:
  constexpr void skip_space() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\t' || rest_.front() == '\n')) {
      rest_.remove_prefix(1);
    }
  }
  constexpr bool skip(char c) {
    skip_space();
    if (!rest_.starts_with(c)) {
      return false;
    }
    rest_.remove_prefix(1);
    return true;
  }
  template <typename ReadItem>
  constexpr bool all(char open, char close, ReadItem read_item) {
    bool good = skip(open);
    while (good && !skip(close)) {
      good = read_item();
      if (good && !skip(',')) {
        good = skip(close);
        break;
      }
    }
    skip_space();
    return good && rest_.empty();
  }
  template <typename Item>
  constexpr bool key(Item& item) {
    skip_space();
    if (rest_.starts_with('"') || rest_.starts_with('\'')) {
      return string(item);
    }
    const std::size_t size = std::min(rest_.find_first_of(" \t\n="), rest_.size());
    for (const char c : rest_.substr(0, size)) {
      item.push_back(c);
    }
    rest_.remove_prefix(size);
    return size > 0;
  }
  template <typename Item>
  constexpr bool string(Item& item) {
    skip_space();
    if (!rest_.starts_with('"') && !rest_.starts_with('\'')) {
      return false;
    }
    const char quote = rest_.front();
    rest_.remove_prefix(1);
    while (!rest_.empty()) {
      char c = rest_.front();
      rest_.remove_prefix(1);
      if (c == quote) {
        return true;
      }
      if (c == '\\' && quote == '"' && !escaped(c)) {
        return false;
      }
      item.push_back(c);
    }
    return false;
  }
  constexpr bool escaped(char& c) {
    constexpr std::string_view kNames = "\"\\nt";
    constexpr std::string_view kMeanings = "\"\\\n\t";
    const std::size_t index = rest_.empty() ? std::string_view::npos : kNames.find(rest_.front());
    if (index == std::string_view::npos) {
      return false;
    }
    c = kMeanings[index];
    rest_.remove_prefix(1);
    return true;
  }

  std::string_view rest_;
};

inline std::optional<std::vector<std::string>> parse_list(std::string_view text) {
  std::vector<std::string> items;
  const auto take = [&items](std::string item) { items.push_back(std::move(item)); };
  return TextReader(text).list<std::string>(take) ? std::optional(items) : std::nullopt;
}

/// Names and values alternate in the answer.
inline std::optional<std::vector<std::string>> parse_map(std::string_view text) {
  std::vector<std::string> items;
  const auto take = [&items](std::string item) { items.push_back(std::move(item)); };
  return TextReader(text).map<std::string>(take) ? std::optional(items) : std::nullopt;
}

}  // namespace sluice::detail
