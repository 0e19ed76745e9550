#include "config/syntax.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/text/utf8.hpp"
#include "base/text/visible.hpp"
#include "config/document.hpp"

namespace sluice::config {

namespace {

constexpr std::size_t kMaxShown = 64;
constexpr std::size_t kMaxPath = 4095;

bool is_name_character(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '-' || c == '.'; }

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 && std::all_of(text.begin(), text.end(), is_digit) &&
         std::stoul(std::string(text)) <= 65535;
}

bool is_dns_name(std::string_view text) {
  return !text.empty() && text.size() <= 253 && text.front() != '-' && text.front() != '.' &&
         std::all_of(text.begin(), text.end(), is_name_character);
}

bool is_host(std::string_view text) {
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    in6_addr address{};
    return inet_pton(AF_INET6, std::string(text.substr(1, text.size() - 2)).c_str(), &address) == 1;
  }
  const bool numeric = std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '.'; });
  if (numeric) {
    in_addr address{};
    return inet_pton(AF_INET, std::string(text).c_str(), &address) == 1;
  }
  return is_dns_name(text);
}

bool is_host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  return colon != std::string_view::npos && is_host(text.substr(0, colon)) && is_port(text.substr(colon + 1));
}

}  // namespace

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

std::string abridged(std::string_view text) {
  return text.size() <= kMaxShown ? visible(text) : visible(cut_utf8(text, kMaxShown)) + "...";
}

const char* name_complaint(const std::string& text) {
  const bool good = !text.empty() && text.size() <= 128 && (is_letter(text[0]) || is_digit(text[0])) &&
                    std::all_of(text.begin(), text.end(), is_name_character);
  return good ? nullptr : "1 to 128 letters, digits, '_', '-' or '.', beginning with a letter or digit";
}

const char* table_complaint(const std::string& text) {
  const bool good = text.size() >= 3 && text.size() <= 255 && std::all_of(text.begin(), text.end(), is_name_character);
  return good ? nullptr : "3 to 255 letters, digits, '_', '-' or '.'";
}

const char* host_name_complaint(const std::string& text) {
  const bool good = !text.empty() && text.size() <= 255 && !has_control(text) && text.find(' ') == std::string::npos;
  return good ? nullptr : "1 to 255 characters without spaces";
}

const char* listen_complaint(const std::string& text) {
  return text.empty() || is_host_and_port(text) ? nullptr
                                                : "\"host:port\", such as \"127.0.0.1:9464\" or \"[::1]:9464\"";
}

const char* endpoint_complaint(const std::string& text) {
  constexpr const char* kComplaint = "\"http://host:port\" or \"https://host\", without a path";
  if (text.empty()) {
    return nullptr;
  }
  const std::string_view view = text;
  const std::size_t scheme = view.rfind("http://", 0) == 0 ? 7 : view.rfind("https://", 0) == 0 ? 8 : 0;
  if (scheme == 0) {
    return kComplaint;
  }
  std::string_view authority = view.substr(scheme);
  if (!authority.empty() && authority.back() == '/') {
    authority.remove_suffix(1);
  }
  return is_host(authority) || is_host_and_port(authority) ? nullptr : kComplaint;
}

const char* region_complaint(const std::string& text) {
  const bool good = text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
                      return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-';
                    });
  return good ? nullptr : "an AWS region, such as \"eu-west-1\"";
}

const char* path_complaint(const std::string& text) {
  if (text == ":memory:") {
    return "a file: the queue outlives the process, so there is no ':memory:'";
  }
  const bool good = !text.empty() && text.size() <= kMaxPath && text.find('\0') == std::string::npos;
  return good ? nullptr : "a path of 1 to 4095 bytes";
}

const char* pattern_complaint(const std::string& text) {
  const std::size_t slash = text.rfind('/');
  if (slash != std::string::npos && text.find_first_of("*?") < slash) {
    return "a path with '*' and '?' only in the file's name, not in a folder's";
  }
  if (slash != std::string::npos && slash + 1 == text.size()) {
    return "files, such as \"jobs.d/*.toml\", not a folder";
  }
  return path_complaint(text);
}

namespace {

// toml++ limits the depth of tables and arrays, but not of dotted keys; the length of a line does.
constexpr std::size_t kMaxLine = 16 * 1024;

Place place_of(std::string_view text, std::size_t offset, const std::string& file) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const auto lines = std::count(before.begin(), before.end(), '\n');
  const auto characters = std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start), before.end(),
                                        [](char c) { return !continues_utf8(c); });
  return {file, static_cast<std::uint32_t>(lines + 1), static_cast<std::uint32_t>(characters + 1)};
}

std::optional<ConfigError> check_lines(const std::string& text, const std::string& file) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (end - begin > kMaxLine) {
      return ConfigError{place_of(text, begin, file), "the line is longer than " + std::to_string(kMaxLine) + " bytes"};
    }
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace

std::optional<ConfigError> check_text(const std::string& text, const std::string& file) {
  if (text.rfind("\xff\xfe", 0) == 0 || text.rfind("\xfe\xff", 0) == 0) {
    return ConfigError{{file}, "the file is UTF-16; save it as UTF-8"};
  }
  if (const std::size_t zero = text.find('\0'); zero != std::string::npos) {
    return ConfigError{place_of(text, zero, file), "a zero byte: this is not a text file"};
  }
  if (const std::size_t bad = utf8_run(text); bad < text.size()) {
    return ConfigError{place_of(text, bad, file), "bytes that are not UTF-8; save the file as UTF-8"};
  }
  return check_lines(text, file);
}

std::size_t closing_brace(std::string_view text, std::size_t begin) {
  int open = 1;
  for (std::size_t i = begin; i < text.size(); ++i) {
    if (text.substr(i, 2) == "${") {
      ++open;
    } else if (text[i] == '}' && --open == 0) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::size_t variable_name_length(std::string_view text) {
  const auto* const end =
      std::find_if_not(text.begin(), text.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
  return text.empty() || is_digit(text.front()) ? 0 : static_cast<std::size_t>(end - text.begin());
}

std::optional<Reference> parse_reference(std::string_view inside) {
  Reference found{.name = std::string(inside.substr(0, variable_name_length(inside)))};
  inside.remove_prefix(found.name.size());
  if (inside.empty()) {
    return found.name.empty() ? std::nullopt : std::optional(found);
  }
  found.colon = inside.starts_with(':');
  inside.remove_prefix(found.colon ? 1 : 0);
  if (found.name.empty() || inside.find_first_of("-+?") != 0) {
    return std::nullopt;
  }
  found.sign = inside.front();
  found.word = std::string(inside.substr(1));
  return found;
}

namespace {

constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxExpanded = 1024 * 1024;

class Expander {
 public:
  explicit Expander(const Environment& environment) : environment_(environment) {}

  std::string expand(std::string_view text, int depth) {
    std::string result;
    std::size_t i = 0;
    while (i < text.size() && error_.empty()) {
      if (text.substr(i, 3) == "$${") {
        result += "${";
        i += 3;
      } else if (text.substr(i, 2) == "${") {
        const std::size_t end = closing_brace(text, i + 2);
        if (end == std::string_view::npos) {
          fail("'${' without its '}'; write '$${' for a literal '${'");
          break;
        }
        result += reference(text.substr(i + 2, end - i - 2), depth);
        i = end + 1;
      } else {
        result += text[i++];
      }
      if (result.size() > kMaxExpanded) {
        fail("the string is longer than " + std::to_string(kMaxExpanded) + " bytes once expanded");
      }
    }
    return result;
  }

  const std::string& error() const { return error_; }
  bool found_reference() const { return found_reference_; }

 private:
  /// What stands between the braces: NAME, NAME:-default or NAME:?message.
  std::string reference(std::string_view inside, int depth) {
    found_reference_ = true;
    const auto found = parse_reference(inside);
    const bool ours = found && found->sign != '+' && found->colon == (found->sign != 0);
    if (!ours) {
      return fail("'${" + abridged(inside) + "}' is not ${VAR}, ${VAR:-default} or ${VAR:?message}");
    }
    const std::string& name = found->name;
    const std::optional<std::string> value = environment_(name);
    if (value && (found->sign == 0 || !value->empty())) {
      return checked(name, *value);
    }
    if (found->sign == '-') {
      return depth < kMaxDepth ? expand(found->word, depth + 1) : fail("defaults of variables are nested too deeply");
    }
    const std::string why = "environment variable '" + name + (value ? "' is empty" : "' is not set");
    if (found->sign == '?') {
      return fail(why + (found->word.empty() ? "" : ": " + visible(found->word)));
    }
    return fail(why + "; set it, or give a default as ${" + name + ":-...}");
  }

  std::string checked(const std::string& name, const std::string& value) {
    if (!is_utf8(value)) {
      return fail("the value of environment variable '" + name + "' is not UTF-8");
    }
    return value;
  }

  std::string fail(std::string why) {
    if (error_.empty()) {
      error_ = std::move(why);
    }
    return {};
  }

  const Environment& environment_;
  std::string error_;
  bool found_reference_ = false;
};

}  // namespace

Expansion expand(const std::string& text, const Environment& environment) {
  Expander expander(environment);
  std::string expanded = expander.expand(text, 0);
  return {std::move(expanded), expander.error(), expander.found_reference()};
}

namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(kBlank);
  return begin == std::string_view::npos ? std::string_view()
                                         : text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

/// The lines of a file, the first of them at 1.
using Lines = std::vector<std::string_view>;

Lines lines_of(std::string_view text) {
  Lines lines(1);
  for (std::size_t begin = 0; begin <= text.size(); begin += lines.back().size() + 1) {
    lines.push_back(text.substr(begin, text.find('\n', begin) - begin));
  }
  return lines;
}

/// "key = value" of a line, where it is one with a plain key.
struct Pair {
  std::string_view key;
  std::string_view value;  ///< without a comment behind it
  std::size_t value_column = 0;
};

std::optional<Pair> pair_of(std::string_view line) {
  const auto equals = line.find('=');
  if (equals == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view key = trimmed(line.substr(0, equals));
  const bool plain = !key.empty() && std::all_of(key.begin(), key.end(), is_name_character);
  const auto begin = line.find_first_not_of(kBlank, equals + 1);
  if (!plain || begin == std::string_view::npos) {
    return std::nullopt;
  }
  const auto comment = std::min(line.find('#', begin), line.size());
  return Pair{key, trimmed(line.substr(begin, comment - begin)), begin + 1};
}

/// What can only be a text: it begins like a word, a path or a number, and is none of TOML's values.
bool is_bare_text(std::string_view value) {
  constexpr std::string_view kOfNumbersAndTimes = "0123456789_.+-:eETZ";
  const bool begins = !value.empty() && (is_letter(value[0]) || is_digit(value[0]) || value[0] == '/' ||
                                         value[0] == '.' || value[0] == '~' || value[0] == '$' || value[0] == '*');
  return begins && value.find_first_of("\"'=[]{}") == std::string_view::npos && value != "true" && value != "false" &&
         value.find_first_not_of(kOfNumbersAndTimes) != std::string_view::npos;
}

std::optional<ConfigError> unquoted(std::string_view line, const Place& at) {
  const auto pair = pair_of(line);
  if (!pair || at.column < pair->value_column || !is_bare_text(pair->value)) {
    return std::nullopt;
  }
  return ConfigError{{at.file, at.line, static_cast<std::uint32_t>(pair->value_column)},
                     "a text stands in quotes: " + std::string(pair->key) + " = \"" + abridged(pair->value) + "\""};
}

bool is_header(std::string_view line) { return trimmed(line).substr(0, 1) == "["; }

/// The line above `at` that has the key in the same table; 0 when it is not to be seen.
std::size_t first_line_of_key(const Lines& lines, std::size_t at, std::string_view key) {
  std::size_t first = 0;
  for (std::size_t number = at - 1; number > 0 && !is_header(lines[number]); --number) {
    const auto pair = pair_of(lines[number]);
    first = pair && pair->key == key ? number : first;
  }
  return first;
}

std::size_t first_line_of_table(const Lines& lines, std::size_t at, std::string_view header) {
  for (std::size_t number = 1; number < at; ++number) {
    if (trimmed(lines[number]) == header) {
      return number;
    }
  }
  return 0;
}

std::optional<ConfigError> given_twice(const Lines& lines, const Place& at) {
  const std::string_view line = lines[at.line];
  const std::string_view header = trimmed(line);
  const std::size_t column = std::min(line.find_first_not_of(kBlank), line.size()) + 1;
  const auto say = [&](const std::string& what, std::size_t first) -> std::optional<ConfigError> {
    if (first == 0) {
      return std::nullopt;
    }
    return ConfigError{{at.file, at.line, static_cast<std::uint32_t>(column)},
                       what + " is given twice, first in line " + std::to_string(first)};
  };
  if (is_header(line)) {
    return say(visible(header), first_line_of_table(lines, at.line, header));
  }
  const auto pair = pair_of(line);
  return pair ? say("'" + std::string(pair->key) + "'", first_line_of_key(lines, at.line, pair->key)) : std::nullopt;
}

}  // namespace

std::optional<ConfigError> syntax_hint(std::string_view text, const Place& at, std::string_view complaint) {
  const Lines lines = lines_of(text);
  if (at.line >= lines.size()) {
    return std::nullopt;
  }
  if (complaint.find("cannot redefine") != std::string_view::npos) {
    return given_twice(lines, at);
  }
  return unquoted(lines[at.line], at);
}

}  // namespace sluice::config
