#include "config/expansion.hpp"

#include <optional>
#include <string_view>

#include "config/syntax.hpp"

namespace sluice::config {

namespace {

constexpr int kMaxDepth = 8;
constexpr std::size_t kMaxExpanded = 1024 * 1024;

/// The closing brace that belongs to the `${` before `begin`, or npos.
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

std::size_t name_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() &&
         (is_letter(text[length]) || text[length] == '_' || (length > 0 && is_digit(text[length])))) {
    ++length;
  }
  return length;
}

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
    const std::string name(inside.substr(0, name_length(inside)));
    const std::string_view rest = inside.substr(name.size());
    const std::string_view form = rest.substr(0, 2);
    if (name.empty() || !(rest.empty() || form == ":-" || form == ":?")) {
      return fail("'${" + abridged(inside) + "}' is not ${VAR}, ${VAR:-default} or ${VAR:?message}");
    }
    const std::optional<std::string> value = environment_(name);
    if (value && (rest.empty() || !value->empty())) {
      return checked(name, *value);
    }
    if (form == ":-") {
      return depth < kMaxDepth ? expand(rest.substr(2), depth + 1)
                               : fail("defaults of variables are nested too deeply");
    }
    const std::string state = value ? "' is empty" : "' is not set";
    if (form == ":?") {
      const std::string message = one_line(rest.substr(2));
      return fail("environment variable '" + name + state + (message.empty() ? "" : ": " + message));
    }
    return fail("environment variable '" + name + state + "; set it, or give a default as ${" + name + ":-...}");
  }

  std::string checked(const std::string& name, const std::string& value) {
    if (find_invalid_utf8(value) != std::string::npos) {
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

}  // namespace sluice::config
