#include "host/cli/convert/fields.hpp"

#include <algorithm>
#include <array>
#include <boost/algorithm/string/split.hpp>
#include <charconv>
#include <cmath>

#include "base/text/joined.hpp"
#include "base/text/lower_case.hpp"
#include "base/text/number.hpp"
#include "base/text/utf8.hpp"
#include "config/syntax.hpp"

namespace sluice::cli::convert {

namespace {

constexpr std::size_t kMaxFile = 1024 * 1024;

std::string where(const YamlError& error) {
  return (error.line == 0 ? std::string() : "line " + std::to_string(error.line) + ": ") + error.what;
}

struct GoUnit {
  std::string_view name;
  double nanoseconds;
};
// The longer names first, so that "ms" is not read as "m".
constexpr std::array<GoUnit, 6> kGoUnits{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}, {"h", 3.6e12}}};

/// The keys that a path leads through.
std::vector<std::string> keys_of(const std::string& path) {
  std::vector<std::string> keys;
  boost::algorithm::split(keys, path, [](char c) { return c == '.'; });
  return keys;
}

}  // namespace

void Complaints::add(const std::string& path, const std::string& what) {
  const std::size_t dot = path.find('.');
  Member& member = members_[path.substr(0, dot)];
  if (dot == std::string::npos) {
    member.what = member.what.empty() ? what : member.what;
    return;
  }
  if (member.inner == nullptr) {
    member.inner = std::make_unique<Complaints>();
  }
  member.inner->add(path.substr(dot + 1), what);
}

std::string Complaints::text() const {
  std::string text;
  for (const auto& [key, member] : members_) {
    text += text.empty() ? "" : "; ";
    text += key + ": " + (member.what.empty() ? "(" + member.inner->text() + ")" : member.what);
  }
  return text + ".";
}

std::optional<config::Duration> parse_go_duration(std::string_view text) {
  if (text == "0") {
    return config::Duration::zero();
  }
  double total = 0;
  bool any = false;
  while (!text.empty()) {
    double count = 0;
    const auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), count, std::chars_format::fixed);
    if (code != std::errc() || count < 0) {
      return std::nullopt;
    }
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
    const auto* unit = std::find_if(kGoUnits.begin(), kGoUnits.end(), [&text](const GoUnit& known) {
      return text.substr(0, known.name.size()) == known.name;
    });
    if (unit == kGoUnits.end()) {
      return std::nullopt;
    }
    text.remove_prefix(unit->name.size());
    total += count * unit->nanoseconds;
    any = true;
  }
  constexpr double kMost = 9.2e18;
  return any && total < kMost ? std::optional(config::Duration(std::llround(total))) : std::nullopt;
}

std::unique_ptr<Fields> Fields::read(const std::string& text, const config::Environment& environment,
                                     std::string& error) {
  if (text.size() > kMaxFile || !is_utf8(text)) {
    error = text.size() > kMaxFile ? "it is larger than 1 MiB" : "it is not UTF-8";
    return nullptr;
  }
  MarkedText marked = mark_templates(text);
  if (!marked.error.empty()) {
    error = marked.error;
    return nullptr;
  }
  auto tree = parse_yaml(marked.text);
  if (const auto* wrong = std::get_if<YamlError>(&tree)) {
    error = where(*wrong);
    return nullptr;
  }
  auto plain = parse_yaml(expand_marks(marked.text, marked.templates, environment).text);
  if (const auto* wrong = std::get_if<YamlError>(&plain)) {
    error = "with the variables of this environment: " + where(*wrong);
    return nullptr;
  }
  return std::unique_ptr<Fields>(new Fields(std::move(marked), std::get<YamlNode>(std::move(tree)),
                                            std::get<YamlNode>(std::move(plain)), environment));
}

Fields::Fields(MarkedText marked, YamlNode tree, YamlNode plain, const config::Environment& environment)
    : templates_(std::move(marked.templates)),
      tree_(std::move(tree)),
      plain_(std::move(plain)),
      environment_(environment) {}

Fields::Found Fields::find(const std::string& path) {
  known_.insert(path);
  Found found{&tree_, &plain_};
  for (const std::string& key : keys_of(path)) {
    found.marked = found.marked == nullptr ? nullptr : found.marked->find(key);
    found.plain = found.plain == nullptr ? nullptr : found.plain->find(key);
  }
  return found.plain == nullptr || found.plain->kind == YamlNode::Kind::nothing
             ? (found.marked != nullptr && has_marks(found.marked->text) ? Found{found.marked, nullptr} : Found{})
             : found;
}

bool Fields::has(const std::string& path) {
  const Found found = find(path);
  return found.plain != nullptr || found.marked != nullptr;
}

std::string Fields::meaning(const std::string& path) {
  const Found found = find(path);
  return found.plain == nullptr ? std::string() : found.plain->text;
}

Text Fields::translated(const std::string& path, const Found& found, bool whole) {
  const std::string now = found.plain == nullptr ? std::string() : found.plain->text;
  const std::string& marked = found.marked == nullptr ? now : found.marked->text;
  if (!has_marks(marked) && marked == now) {
    return {translate_marks(marked, templates_, false).text, false};
  }
  const Expanded expanded = expand_marks(marked, templates_, environment_);
  const Translated ours = translate_marks(marked, templates_, whole);
  // A template that holds more than the text of one value means what it means only in the whole file.
  const bool same = expanded.text == now || found.plain == nullptr;
  if (same && ours.unsayable.empty()) {
    for (const std::string& difference : ours.differences) {
      remark(path, difference);
    }
    return {ours.text, true};
  }
  if (!expanded.missing.empty()) {
    complain(path, "required variable " + expanded.missing.front() + " is missing a value");
    return {};
  }
  remark(path, std::string("written with what the variable") + (ours.unsayable.size() > 1 ? "s " : " ") +
                   sluice::joined(ours.unsayable) + (ours.unsayable.empty() ? "" : " ") +
                   "stood for when it was converted: our files have no such template");
  return {translate_marks(now, {}, false).text, false};
}

std::optional<Text> Fields::text(const std::string& path, bool needed) {
  const Found found = find(path);
  if (found.plain == nullptr && found.marked == nullptr) {
    if (needed) {
      complain(path, "cannot be blank");
    }
    return std::nullopt;
  }
  if (found.plain != nullptr && found.plain->kind != YamlNode::Kind::scalar) {
    complain(path, "must be a string");
    return std::nullopt;
  }
  Text text = translated(path, found, needed);
  if (text.text.empty()) {
    if (needed) {
      complain(path, "cannot be blank");
    }
    return std::nullopt;
  }
  return text;
}

/// For what our files have no variables in: numbers, booleans, durations.
std::optional<std::string> Fields::scalar(const std::string& path) {
  const Found found = find(path);
  const bool variable = found.marked != nullptr && has_marks(found.marked->text);
  if (variable) {
    const Expanded expanded = expand_marks(found.marked->text, templates_, environment_);
    if (!expanded.missing.empty()) {
      complain(path, "required variable " + expanded.missing.front() + " is missing a value");
      return std::nullopt;
    }
    remark(path, found.plain == nullptr
                     ? "its variable is not set here, so that the default is meant"
                     : "written with what its variable stood for when it was converted: this key takes no variable");
  }
  if (found.plain == nullptr) {
    return std::nullopt;
  }
  if (found.plain->kind != YamlNode::Kind::scalar) {
    complain(path, "must be a plain value");
    return std::nullopt;
  }
  return found.plain->text;
}

std::optional<std::int64_t> Fields::number(const std::string& path, NumberBounds bounds) {
  const auto text = scalar(path);
  const auto value = text ? parse_number<std::int64_t>(*text) : std::nullopt;
  if (text && !value) {
    complain(path, "must be a whole number");
  } else if (value && (*value < bounds.least || *value > bounds.most)) {
    complain(path, bounds.complaint);
    return std::nullopt;
  }
  return value;
}

std::optional<double> Fields::fraction(const std::string& path) {
  const auto text = scalar(path);
  const auto value = text ? parse_number<double>(*text) : std::nullopt;
  if (text && (!value || *value < 0 || *value > 1)) {
    complain(path, "must be a number between 0 and 1");
    return std::nullopt;
  }
  return value;
}

std::optional<bool> Fields::flag(const std::string& path) {
  const auto text = scalar(path);
  if (!text) {
    return std::nullopt;
  }
  for (const auto& [word, value] :
       {std::pair("true", true), {"yes", true}, {"on", true}, {"false", false}, {"no", false}, {"off", false}}) {
    if (lower_case(*text) == word) {
      return value;
    }
  }
  complain(path, "must be true or false");
  return std::nullopt;
}

std::optional<config::Duration> Fields::duration(const std::string& path) {
  const auto text = scalar(path);
  if (!text) {
    return std::nullopt;
  }
  if (const auto nanoseconds = parse_number<std::int64_t>(*text); nanoseconds && *nanoseconds >= 0) {
    return config::Duration(*nanoseconds);
  }
  const auto value = parse_go_duration(*text);
  if (!value) {
    complain(path, "must be a duration such as 5s");
  }
  return value;
}

std::optional<Text> Fields::duration_text(const std::string& path, config::Duration fallback) {
  const Found found = find(path);
  const bool variable = found.marked != nullptr && only_mark(found.marked->text).has_value();
  const Template* only = variable ? &templates_.at(*only_mark(found.marked->text)) : nullptr;
  const bool sayable = only != nullptr && (only->form == Form::plain || (only->form == Form::fallback && only->colon));
  const auto word = sayable && !only->word.empty() ? parse_go_duration(only->word) : std::optional(fallback);
  if (!sayable || !word) {
    const auto value = duration(path);
    return value ? std::optional(Text{config::format_duration(*value), false}) : std::nullopt;
  }
  remark(path, "where " + only->name + " is set it must be a number and one unit, such as 90s for 1m30s");
  return Text{"${" + only->name + ":-" + config::format_duration(*word) + "}", true};
}

std::vector<Text> Fields::list(const std::string& path) {
  const Found found = find(path);
  std::vector<Text> values;
  if (found.plain == nullptr) {
    if (found.marked != nullptr) {
      remark(path, "its variable is not set here, so that the list is empty");
    }
    return values;
  }
  if (found.plain->kind != YamlNode::Kind::list) {
    complain(path, "must be a list");
    return values;
  }
  const bool same_shape = found.marked != nullptr && found.marked->items.size() == found.plain->items.size();
  if (!same_shape) {
    remark(path, "written with what its variable stood for when it was converted");
  }
  for (std::size_t i = 0; i < found.plain->items.size(); ++i) {
    const YamlNode& item = found.plain->items[i];
    if (item.kind != YamlNode::Kind::scalar || item.text.empty()) {
      complain(path + "." + std::to_string(i), "cannot be blank");
      continue;
    }
    values.push_back(translated(path, {same_shape ? &found.marked->items[i] : nullptr, &item}, false));
  }
  return values;
}

void Fields::leave_out(const std::string& path, const std::string& why) {
  if (has(path)) {
    remark(path, "left out: " + why);
  }
}

void Fields::remark(const std::string& path, const std::string& what) {
  // The line of the deepest part of the path that stands in the file.
  const YamlNode* node = &tree_;
  std::uint32_t line = 1;
  for (const std::string& key : keys_of(path)) {
    node = node == nullptr ? nullptr : node->find(key);
    line = node == nullptr ? line : node->line;
  }
  remarks_.push_back({line, path, what});
}

void Fields::note_unknown(const YamlNode& node, const std::string& path) {
  for (const auto& [key, value] : node.members) {
    const std::string inner = path.empty() ? key : path + "." + key;
    const auto below = known_.lower_bound(inner + ".");
    const bool has_known_members = below != known_.end() && below->rfind(inner + ".", 0) == 0;
    if (has_known_members) {
      note_unknown(value, inner);
    } else if (known_.count(inner) == 0) {
      const auto meant = config::nearest(inner, {known_.begin(), known_.end()});
      remark(inner,
             "left out: outbox-worker has no such field" + (meant ? "; is " + *meant + " meant?" : std::string()));
    }
  }
}

std::vector<Remark> Fields::take_remarks() {
  note_unknown(tree_, {});
  std::stable_sort(remarks_.begin(), remarks_.end(),
                   [](const Remark& one, const Remark& other) { return one.line < other.line; });
  return std::move(remarks_);
}

}  // namespace sluice::cli::convert
