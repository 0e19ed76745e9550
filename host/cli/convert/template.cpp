#include <algorithm>

#include "base/text/number.hpp"
#include "host/cli/convert/fields.hpp"

namespace sluice::cli::convert {

namespace {

// Two characters of Unicode's private use area, which YAML takes for letters.
constexpr std::string_view kMarkBegin = "\xEE\x80\x80";
constexpr std::string_view kMarkEnd = "\xEE\x80\x81";
constexpr int kMaxDepth = 8;

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

void append(std::vector<std::string>& names, const std::vector<std::string>& more) {
  names.insert(names.end(), more.begin(), more.end());
}

/// The template of the mark that `text` begins with; null where it begins with none.
const Template* marked_at(std::string_view text, const std::vector<Template>& templates) {
  const std::size_t end = text.find(kMarkEnd);
  if (!text.starts_with(kMarkBegin) || end == std::string_view::npos) {
    return nullptr;
  }
  const auto index = parse_number<std::size_t>(text.substr(kMarkBegin.size(), end - kMarkBegin.size()));
  return index && *index < templates.size() ? &templates[*index] : nullptr;
}

Reading read(std::string_view marked, const std::vector<Template>& templates, const config::Environment& environment,
             bool needed, int depth);

void read_template(const Template& found, const config::Environment& environment, bool needed, int depth,
                   Reading& out) {
  Reading word;
  bool holds_word = true;  // our braces do
  if (found.sign == '-' || found.sign == '+') {
    const MarkedText inner = mark_templates(found.word);
    holds_word = inner.error.empty() && depth < kMaxDepth && inner.text.find('}') == std::string::npos;
    word = depth < kMaxDepth ? read(inner.text, inner.templates, environment, false, depth + 1) : Reading();
  }
  const auto value = environment(found.name);
  const bool there = value && !(found.colon && value->empty());
  if (found.sign == '+' ? there : !there && found.sign == '-') {
    out.now += word.now;
    append(out.missing, word.missing);
  } else if (!there && found.sign == '?') {
    out.missing.push_back(found.name);
  } else if (there && found.sign != '+') {
    out.now += *value;
  }
  out.has_variables = true;
  // Before a variable "$${" means something else to us.
  if (found.sign == '+' || !holds_word || out.ours.ends_with('$')) {
    out.unsayable.push_back(found.name);
  } else {
    append(out.unsayable, word.unsayable);
    append(out.differences, word.differences);
  }
  if (found.sign == 0) {
    out.ours += "${" + found.name + (needed ? ":?must be set}" : ":-}");
  } else if (found.sign == '-') {
    if (!found.colon && !found.word.empty()) {
      out.differences.push_back("an empty " + found.name + " takes the default too");
    }
    out.ours += "${" + found.name + ":-" + word.ours + "}";
  } else if (found.sign == '?') {
    if (!found.colon) {
      out.differences.push_back("an empty " + found.name + " is an error too");
    }
    out.ours += "${" + found.name + ":?" + message(found.word) + "}";
  }
}

Reading read(std::string_view marked, const std::vector<Template>& templates, const config::Environment& environment,
             bool needed, int depth) {
  Reading out;
  while (!marked.empty()) {
    const Template* const found = marked_at(marked, templates);
    // Whoever writes such characters by an escape of YAML means them.
    const std::size_t length = found != nullptr ? marked.find(kMarkEnd) + kMarkEnd.size()
                                                : std::min(marked.find(kMarkBegin, 1), marked.size());
    if (found != nullptr) {
      read_template(*found, environment, needed, depth, out);
    } else {
      out.now += marked.substr(0, length);
      out.ours += literal(marked.substr(0, length));
    }
    marked.remove_prefix(length);
  }
  return out;
}

}  // namespace

MarkedText mark_templates(std::string_view text) {
  MarkedText marked;
  if (text.find(kMarkBegin) != std::string_view::npos || text.find(kMarkEnd) != std::string_view::npos) {
    marked.error = "the text has characters U+E000 or U+E001, which no field can hold";
    return marked;
  }
  const auto add = [&marked](Template found) {
    marked.text.append(kMarkBegin).append(std::to_string(marked.templates.size())).append(kMarkEnd);
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
      auto found = end == std::string_view::npos ? std::nullopt : config::parse_reference(rest.substr(2, end - 2));
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

Reading read_marks(std::string_view marked, const std::vector<Template>& templates,
                   const config::Environment& environment, bool needed) {
  return read(marked, templates, environment, needed, 0);
}

bool has_marks(std::string_view text) { return text.find(kMarkBegin) != std::string_view::npos; }

const Template* only_template(std::string_view text, const std::vector<Template>& templates) {
  return text.find(kMarkEnd) + kMarkEnd.size() == text.size() ? marked_at(text, templates) : nullptr;
}

}  // namespace sluice::cli::convert
