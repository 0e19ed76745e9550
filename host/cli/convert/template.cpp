#include <algorithm>
#include <array>

#include "config/syntax.hpp"
#include "host/cli/convert/fields.hpp"

namespace sluice::cli::convert {

namespace {

// Two characters of Unicode's private use area, which YAML takes for letters.
constexpr std::string_view kMarkBegin = "\xEE\x80\x80";
constexpr std::string_view kMarkEnd = "\xEE\x80\x81";
constexpr int kMaxDepth = 8;

std::string mark(std::size_t index) { return std::string(kMarkBegin) + std::to_string(index) + std::string(kMarkEnd); }

/// The closing brace that belongs to the `${` before `begin`, on its line; npos without one.
std::size_t closing_brace(std::string_view text, std::size_t begin) {
  int open = 1;
  for (std::size_t i = begin; i < text.size() && text[i] != '\n'; ++i) {
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
         (config::is_letter(text[length]) || text[length] == '_' || (length > 0 && config::is_digit(text[length])))) {
    ++length;
  }
  return length;
}

struct Spelling {
  std::string_view sign;
  Form form;
};
constexpr std::array<Spelling, 6> kSpellings{{{":-", Form::fallback_when_empty},
                                              {":+", Form::replacement_when_full},
                                              {":?", Form::required_when_empty},
                                              {"-", Form::fallback_when_unset},
                                              {"+", Form::replacement_when_set},
                                              {"?", Form::required_when_unset}}};

/// What stands between the braces; nothing when that is no template.
std::optional<Template> read_template(std::string_view inside) {
  Template found{.name = std::string(inside.substr(0, name_length(inside))), .form = Form::plain, .word = {}};
  if (found.name.empty()) {
    return std::nullopt;
  }
  const std::string_view rest = inside.substr(found.name.size());
  if (rest.empty()) {
    return found;
  }
  const auto* spelling = std::find_if(kSpellings.begin(), kSpellings.end(), [rest](const Spelling& known) {
    return rest.substr(0, known.sign.size()) == known.sign;
  });
  if (spelling == kSpellings.end()) {
    return std::nullopt;
  }
  found.form = spelling->form;
  found.word = std::string(rest.substr(spelling->sign.size()));
  return found;
}

class Marker {
 public:
  explicit Marker(std::string_view text) : text_(text) {}

  MarkedText run() {
    if (text_.find(kMarkBegin) != std::string_view::npos || text_.find(kMarkEnd) != std::string_view::npos) {
      marked_.error = "the text has characters U+E000 or U+E001, which no field can hold";
      return std::move(marked_);
    }
    while (at_ < text_.size() && marked_.error.empty()) {
      step();
    }
    return std::move(marked_);
  }

 private:
  void step() {
    if (text_[at_] != '$') {
      marked_.text += text_[at_++];
      return;
    }
    const std::string_view rest = text_.substr(at_ + 1);
    if (rest.substr(0, 1) == "$") {
      marked_.text += '$';
      at_ += 2;
    } else if (rest.substr(0, 1) == "{") {
      const std::size_t end = closing_brace(text_, at_ + 2);
      const auto found =
          end == std::string_view::npos ? std::nullopt : read_template(text_.substr(at_ + 2, end - at_ - 2));
      if (!found) {
        const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1;
        marked_.error = "line " + std::to_string(line) +
                        ": the template is not $VAR, ${VAR} or ${VAR} with one of "
                        ":- - :+ + :? ? and a word behind the name; write $$ for a plain $";
        return;
      }
      add(*found);
      at_ = end + 1;
    } else if (const std::size_t length = name_length(rest); length > 0) {
      add({.name = std::string(rest.substr(0, length)), .form = Form::plain, .word = {}});
      at_ += 1 + length;
    } else {
      marked_.text += text_[at_++];
    }
  }

  void add(Template found) {
    marked_.text += mark(marked_.templates.size());
    marked_.templates.push_back(std::move(found));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  MarkedText marked_;
};

/// Calls `plain` with each piece between marks, and `marked` with the index of each mark.
void walk(std::string_view text, const std::function<void(std::string_view)>& plain,
          const std::function<void(std::size_t)>& marked) {
  while (!text.empty()) {
    const std::size_t begin = text.find(kMarkBegin);
    plain(text.substr(0, begin));
    if (begin == std::string_view::npos) {
      return;
    }
    text.remove_prefix(begin + kMarkBegin.size());
    std::size_t index = 0;
    while (!text.empty() && config::is_digit(text.front())) {
      index = index * 10 + static_cast<std::size_t>(text.front() - '0');
      text.remove_prefix(1);
    }
    text.remove_prefix(std::min(text.size(), kMarkEnd.size()));
    marked(index);
  }
}

class Expansion {
 public:
  explicit Expansion(const config::Environment& environment) : environment_(environment) {}

  std::string text(std::string_view marked, const std::vector<Template>& templates, int depth) {
    std::string result;
    walk(
        marked, [&result](std::string_view piece) { result += piece; },
        [&](std::size_t index) { result += value(templates.at(index), depth); });
    return result;
  }

  std::vector<std::string> missing;

 private:
  std::string value(const Template& found, int depth) {
    const auto set = environment_(found.name);
    const bool full = set && !set->empty();
    switch (found.form) {
      case Form::plain:
        return set.value_or(std::string());
      case Form::fallback_when_empty:
        return full ? *set : word(found, depth);
      case Form::fallback_when_unset:
        return set ? *set : word(found, depth);
      case Form::replacement_when_full:
        return full ? word(found, depth) : std::string();
      case Form::replacement_when_set:
        return set ? word(found, depth) : std::string();
      case Form::required_when_empty:
      case Form::required_when_unset:
        break;
    }
    if (full || (set && found.form == Form::required_when_unset)) {
      return *set;
    }
    missing.push_back(found.name);
    return {};
  }

  std::string word(const Template& found, int depth) {
    const MarkedText inner = mark_templates(found.word);
    return depth < kMaxDepth ? text(inner.text, inner.templates, depth + 1) : std::string();
  }

  const config::Environment& environment_;
};

/// Text as our files have it: only `${` needs its own spelling.
std::string literal(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text.substr(i, 2) == "${" ? "$$" : std::string(1, text[i]);
  }
  return result;
}

void append(std::vector<std::string>& list, std::vector<std::string> more) {
  list.insert(list.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

class Translation {
 public:
  Translated text(std::string_view marked, const std::vector<Template>& templates, bool needed, int depth) {
    Translated result;
    walk(
        marked, [&result](std::string_view piece) { result.text += literal(piece); },
        [&](std::size_t index) { add(result, templates.at(index), needed, depth); });
    return result;
  }

 private:
  void add(Translated& result, const Template& found, bool needed, int depth) {
    result.has_variables = true;
    if (!result.text.empty() && result.text.back() == '$') {
      result.unsayable.push_back(found.name);  // a plain '$' before a variable: "$${" means something else to us
    }
    const auto differs = [&result, &found](const std::string& how) {
      result.differences.push_back("an empty " + found.name + how);
    };
    switch (found.form) {
      case Form::plain:
        result.text += "${" + found.name + (needed ? ":?must be set}" : ":-}");
        return;
      case Form::fallback_when_unset:
        if (!found.word.empty()) {
          differs(" takes the default too");
        }
        [[fallthrough]];
      case Form::fallback_when_empty:
        result.text += "${" + found.name + ":-" + word(result, found, depth) + "}";
        return;
      case Form::required_when_unset:
        differs(" is an error too");
        [[fallthrough]];
      case Form::required_when_empty:
        result.text += "${" + found.name + ":?" + message(found.word) + "}";
        return;
      case Form::replacement_when_full:
      case Form::replacement_when_set:
        result.unsayable.push_back(found.name);
        return;
    }
  }

  /// Without what our braces could not hold.
  static std::string message(std::string text) {
    text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == '$' || c == '{' || c == '}'; }),
               text.end());
    return text;
  }

  std::string word(Translated& result, const Template& found, int depth) {
    const MarkedText inner = mark_templates(found.word);
    if (!inner.error.empty() || depth >= kMaxDepth || inner.text.find('}') != std::string::npos) {
      result.unsayable.push_back(found.name);  // our braces could not hold it
      return {};
    }
    Translated translated = text(inner.text, inner.templates, false, depth + 1);
    append(result.differences, std::move(translated.differences));
    append(result.unsayable, std::move(translated.unsayable));
    return translated.text;
  }
};

}  // namespace

MarkedText mark_templates(std::string_view text) { return Marker(text).run(); }

Expanded expand_marks(std::string_view marked, const std::vector<Template>& templates,
                      const config::Environment& environment) {
  Expansion expansion(environment);
  std::string text = expansion.text(marked, templates, 0);
  return {std::move(text), std::move(expansion.missing)};
}

Translated translate_marks(std::string_view marked, const std::vector<Template>& templates, bool needed) {
  return Translation().text(marked, templates, needed, 0);
}

bool has_marks(std::string_view text) { return text.find(kMarkBegin) != std::string_view::npos; }

std::optional<std::size_t> only_mark(std::string_view text) {
  std::optional<std::size_t> only;
  walk(
      text, [](std::string_view) {}, [&only](std::size_t index) { only = index; });
  return only && text == mark(*only) ? only : std::nullopt;
}

}  // namespace sluice::cli::convert
