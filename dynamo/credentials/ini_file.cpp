#include "dynamo/credentials/ini_file.hpp"

#include <algorithm>
#include <optional>

#include "dynamo/credentials/text.hpp"

namespace sluice::dynamo {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_comment(char c) { return c == '#' || c == ';'; }

/// The text before a comment, which needs a blank in front of its sign.
std::string_view without_comment(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (is_comment(text[i]) && is_blank(text[i - 1])) {
      return text.substr(0, i);
    }
  }
  return text;
}

/// "profile   "my dev"" as "profile my dev".
std::string heading(std::string_view text) {
  std::string out;
  bool quoted = false;
  for (const char c : text) {
    if (c == '"' || c == '\'') {
      quoted = !quoted;
    } else if (is_blank(c) && !quoted) {
      if (!out.empty() && out.back() != ' ') {
        out += ' ';
      }
    } else {
      out += c;
    }
  }
  return std::string(trim(out));
}

/// Takes a file line by line. A value; used once.
class Reader {
 public:
  explicit Reader(const std::string& name) : name_(name) {}

  std::optional<Error> add(std::string_view line) {
    ++number_;
    const std::string_view content = trim(line);
    if (content.empty() || is_comment(content.front())) {
      return std::nullopt;
    }
    if (is_blank(line.front())) {
      return continue_property(content);
    }
    return content.front() == '[' ? open_section(content) : open_property(content);
  }
  IniFile take() { return std::move(file_); }

 private:
  std::optional<Error> open_section(std::string_view content) {
    const auto end = content.find(']');
    if (end == std::string_view::npos) {
      return failure("the section's heading has no ']'");
    }
    const std::string_view rest = trim(content.substr(end + 1));
    if (!rest.empty() && !is_comment(rest.front())) {
      return failure("there is text behind the section's heading");
    }
    const std::string title = heading(content.substr(1, end - 1));
    if (title.empty()) {
      return failure("the section's heading is empty");
    }
    section_ = &file_[title];
    property_.clear();
    return std::nullopt;
  }

  std::optional<Error> open_property(std::string_view content) {
    if (section_ == nullptr) {
      return failure("this line stands before the first [section]");
    }
    const auto equals = content.find('=');
    if (equals == std::string_view::npos || trim(content.substr(0, equals)).empty()) {
      return failure("this line is not of the form name = value");
    }
    property_ = lower_case(trim(content.substr(0, equals)));
    (*section_)[property_] = trim(without_comment(content.substr(equals + 1)));
    return std::nullopt;
  }

  std::optional<Error> continue_property(std::string_view content) {
    if (section_ == nullptr || property_.empty()) {
      return failure("this line is indented, but there is no property above it to belong to");
    }
    std::string& value = (*section_)[property_];
    const auto equals = content.find('=');
    if (!value.empty()) {
      value += '\n';
      value += trim(without_comment(content));
    } else if (equals == std::string_view::npos || trim(content.substr(0, equals)).empty()) {
      return failure("this line is not of the form name = value");
    } else {
      (*section_)[property_ + "." + lower_case(trim(content.substr(0, equals)))] =
          trim(without_comment(content.substr(equals + 1)));
    }
    return std::nullopt;
  }

  Error failure(const std::string& what) const {
    return {ErrorKind::no_credentials, name_ + ":" + std::to_string(number_) + ": " + what};
  }

  const std::string& name_;
  IniFile file_;
  IniSection* section_ = nullptr;
  std::string property_;
  int number_ = 0;
};

}  // namespace

Result<IniFile> parse_ini(std::string_view text, const std::string& name) {
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.remove_prefix(3);
  }
  Reader reader(name);
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    if (auto failure = reader.add(text.substr(0, end))) {
      return std::move(*failure);
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return reader.take();
}

}  // namespace sluice::dynamo
