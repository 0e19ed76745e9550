#include <algorithm>

#include "config/syntax.hpp"
#include "host/cli/convert/fields.hpp"

namespace sluice::cli::convert {

namespace {

// Two characters of Unicode's private use area, which YAML takes for letters.
constexpr std::string_view kMarkBegin = "\xEE\x80\x80";
constexpr std::string_view kMarkEnd = "\xEE\x80\x81";
constexpr int kMaxDepth = 8;

std::string mark(std::size_t index) { return std::string(kMarkBegin) + std::to_string(index) + std::string(kMarkEnd); }

/// What stands between the braces; nothing when that is no template.
std::optional<Template> read_template(std::string_view inside) {
  Template found{.name = std::string(inside.substr(0, config::variable_name_length(inside)))};
  inside.remove_prefix(found.name.size());
  if (found.name.empty() || inside.empty()) {
    return found.name.empty() ? std::nullopt : std::optional(found);
  }
  found.colon = inside.starts_with(':');
  inside.remove_prefix(found.colon ? 1 : 0);
  switch (inside.empty() ? '\0' : inside.front()) {
    case '-':
      found.form = Form::fallback;
      break;
    case '+':
      found.form = Form::replacement;
      break;
    case '?':
      found.form = Form::required;
      break;
    default:
      return std::nullopt;
  }
  found.word = std::string(inside.substr(1));
  return found;
}

/// Calls `plain` with each piece between marks, and `marked` with the index of each mark.
template <typename Plain, typename Marked>
void walk(std::string_view text, Plain plain, Marked marked) {
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

void expand(std::string_view marked, const std::vector<Template>& templates, const config::Environment& environment,
            int depth, Expanded& out) {
  const auto add_word = [&](const Template& found) {
    const MarkedText inner = mark_templates(found.word);
    if (depth < kMaxDepth) {
      expand(inner.text, inner.templates, environment, depth + 1, out);
    }
  };
  const auto add_value = [&](std::size_t index) {
    const Template& found = templates.at(index);
    const auto value = environment(found.name);
    const bool there = value && !(found.colon && value->empty());
    if (found.form == Form::replacement ? there : !there && found.form == Form::fallback) {
      add_word(found);
    } else if (!there && found.form == Form::required) {
      out.missing.push_back(found.name);
    } else if (there && found.form != Form::replacement) {
      out.text += *value;
    }
  };
  walk(
      marked, [&out](std::string_view piece) { out.text += piece; }, add_value);
}

/// Text as our files have it: only `${` needs its own spelling.
std::string literal(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    result += text.substr(i, 2) == "${" ? "$$" : std::string(1, text[i]);
  }
  return result;
}

/// Without what our braces could not hold.
std::string message(std::string text) {
  std::erase_if(text, [](char c) { return c == '$' || c == '{' || c == '}'; });
  return text;
}

void translate(std::string_view marked, const std::vector<Template>& templates, bool needed, int depth,
               Translated& out) {
  const auto add_word = [&out, depth](const Template& found) {
    const MarkedText inner = mark_templates(found.word);
    if (!inner.error.empty() || depth >= kMaxDepth || inner.text.find('}') != std::string::npos) {
      out.unsayable.push_back(found.name);  // our braces could not hold it
    } else {
      translate(inner.text, inner.templates, false, depth + 1, out);
    }
  };
  const auto add = [&](std::size_t index) {
    const Template& found = templates.at(index);
    out.has_variables = true;
    if (found.form == Form::replacement || out.text.ends_with('$')) {
      out.unsayable.push_back(found.name);  // before a variable "$${" means something else to us
    }
    if (found.form == Form::plain) {
      out.text += "${" + found.name + (needed ? ":?must be set}" : ":-}");
    } else if (found.form == Form::fallback) {
      if (!found.colon && !found.word.empty()) {
        out.differences.push_back("an empty " + found.name + " takes the default too");
      }
      out.text += "${" + found.name + ":-";
      add_word(found);
      out.text += "}";
    } else if (found.form == Form::required) {
      if (!found.colon) {
        out.differences.push_back("an empty " + found.name + " is an error too");
      }
      out.text += "${" + found.name + ":?" + message(found.word) + "}";
    }
  };
  walk(
      marked, [&out](std::string_view piece) { out.text += literal(piece); }, add);
}

}  // namespace

MarkedText mark_templates(std::string_view text) {
  MarkedText marked;
  if (text.find(kMarkBegin) != std::string_view::npos || text.find(kMarkEnd) != std::string_view::npos) {
    marked.error = "the text has characters U+E000 or U+E001, which no field can hold";
    return marked;
  }
  const auto add = [&marked](Template found) {
    marked.text += mark(marked.templates.size());
    marked.templates.push_back(std::move(found));
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.substr(at);
    const std::size_t name = rest.front() == '$' ? config::variable_name_length(rest.substr(1)) : 0;
    if (rest.starts_with("$$")) {
      marked.text += '$';
      at += 2;
    } else if (rest.starts_with("${")) {
      const std::size_t end = config::closing_brace(rest.substr(0, rest.find('\n')), 2);
      auto found = end == std::string_view::npos ? std::nullopt : read_template(rest.substr(2, end - 2));
      if (!found) {
        const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n') + 1;
        marked.error = "line " + std::to_string(line) +
                       ": the template is not $VAR, ${VAR} or ${VAR} with one of "
                       ":- - :+ + :? ? and a word behind the name; write $$ for a plain $";
        return marked;
      }
      add(std::move(*found));
      at += end + 1;
    } else if (name > 0) {
      add({.name = std::string(rest.substr(1, name))});
      at += 1 + name;
    } else {
      marked.text += text[at++];
    }
  }
  return marked;
}

Expanded expand_marks(std::string_view marked, const std::vector<Template>& templates,
                      const config::Environment& environment) {
  Expanded expanded;
  expand(marked, templates, environment, 0, expanded);
  return expanded;
}

Translated translate_marks(std::string_view marked, const std::vector<Template>& templates, bool needed) {
  Translated translated;
  translate(marked, templates, needed, 0, translated);
  return translated;
}

bool has_marks(std::string_view text) { return text.find(kMarkBegin) != std::string_view::npos; }

std::optional<std::size_t> only_mark(std::string_view text) {
  std::optional<std::size_t> only;
  walk(
      text, [](std::string_view) {}, [&only](std::size_t index) { only = index; });
  return only && text == mark(*only) ? only : std::nullopt;
}

}  // namespace sluice::cli::convert
