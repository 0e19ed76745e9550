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

namespace sluice::cli::convert {

namespace {

constexpr std::size_t kMaxFile = 1024 * 1024;

struct GoUnit {
  std::string_view name;
  double nanoseconds;
};
// The longer names first, so that "ms" is not read as "m".
constexpr std::array<GoUnit, 8> kGoUnits{
    {{"ns", 1}, {"us", 1e3}, {"\u00b5s", 1e3}, {"\u03bcs", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"m", 6e10}, {"h", 3.6e12}}};

/// The keys that a path leads through.
std::vector<std::string> keys_of(const std::string& path) {
  std::vector<std::string> keys;
  boost::algorithm::split(keys, path, [](char c) { return c == '.'; });
  return keys;
}

}  // namespace

void Complaints::add(const std::string& path, const std::string& what) {
  Complaints* field = this;
  for (const std::string& key : keys_of(path)) {
    field = &field->members_[key];
  }
  field->what_ = field->what_.empty() ? what : field->what_;
}

std::string Complaints::text() const {
  std::string text;
  for (const auto& [key, member] : members_) {
    text += (text.empty() ? "" : "; ") + key + ": ";
    text += member.what_.empty() ? "(" + member.text() + ")" : member.what_;
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
  auto tree = parse_yaml(marked, environment);
  if (auto* wrong = std::get_if<std::string>(&tree)) {
    error = std::move(*wrong);
    return nullptr;
  }
  return std::unique_ptr<Fields>(
      new Fields(std::move(marked.templates), std::get<YamlNode>(std::move(tree)), environment));
}

const YamlNode* Fields::find(const std::string& path) {
  known_.insert(path);
  const YamlNode* node = &tree_;
  for (const std::string& key : keys_of(path)) {
    node = node == nullptr ? nullptr : node->find(key);
  }
  return node != nullptr && node->kind == YamlNode::Kind::nothing && !has_marks(node->marked) ? nullptr : node;
}

bool Fields::has(const std::string& path) { return find(path) != nullptr; }

std::string Fields::meaning(const std::string& path) {
  const YamlNode* node = find(path);
  return node == nullptr ? std::string() : node->text;
}

Text Fields::translated(const std::string& path, const YamlNode& node, bool needed) {
  const Reading read = read_marks(node.marked, templates_, environment_, needed);
  // A variable that holds more than a text means what it means only where it stands.
  const bool same = read.now == node.text || node.kind == YamlNode::Kind::nothing;
  if (same && read.unsayable.empty()) {
    for (const std::string& difference : read.differences) {
      remark(path, difference);
    }
    return {read.ours, read.has_variables};
  }
  if (!read.missing.empty()) {
    complain(path, "required variable " + read.missing.front() + " is missing a value");
    return {};
  }
  remark(path, std::string("written with what the variable") + (read.unsayable.size() > 1 ? "s " : " ") +
                   sluice::joined(read.unsayable) + (read.unsayable.empty() ? "" : " ") +
                   "stood for when it was converted: our files have no such template");
  return {read_marks(node.text, {}, environment_).ours, false};
}

std::optional<Text> Fields::text(const std::string& path, bool needed) {
  const YamlNode* node = find(path);
  if (node != nullptr && node->kind != YamlNode::Kind::scalar && node->kind != YamlNode::Kind::nothing) {
    complain(path, "must be a string");
    return std::nullopt;
  }
  Text text = node == nullptr ? Text() : translated(path, *node, needed);
  if (!text.text.empty()) {
    return text;
  }
  if (needed) {
    complain(path, "cannot be blank");
  }
  return std::nullopt;
}

std::optional<std::string> Fields::word(const std::string& path) {
  const YamlNode* node = find(path);
  if (node == nullptr) {
    return std::nullopt;
  }
  const bool is_there = node->kind != YamlNode::Kind::nothing;
  if (has_marks(node->marked)) {
    const auto missing = read_marks(node->marked, templates_, environment_).missing;
    if (!missing.empty()) {
      complain(path, "required variable " + missing.front() + " is missing a value");
      return std::nullopt;
    }
    remark(path, is_there ? "written with what its variable stood for when it was converted: this key takes no variable"
                          : "its variable is not set here, so that the default is meant");
  }
  if (is_there && node->kind != YamlNode::Kind::scalar) {
    complain(path, "must be a plain value");
    return std::nullopt;
  }
  return is_there ? std::optional(node->text) : std::nullopt;
}

std::optional<std::int64_t> Fields::number(const std::string& path, NumberBounds bounds) {
  const auto text = word(path);
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
  const auto text = word(path);
  const auto value = text ? parse_number<double>(*text) : std::nullopt;
  if (text && (!value || *value < 0 || *value > 1)) {
    complain(path, "must be a number between 0 and 1");
    return std::nullopt;
  }
  return value;
}

std::optional<bool> Fields::flag(const std::string& path) {
  const auto text = word(path);
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
  const auto text = word(path);
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
  const YamlNode* node = find(path);
  const Template* only = node == nullptr ? nullptr : only_template(node->marked, templates_);
  const bool sayable = only != nullptr && (only->sign == 0 || (only->sign == '-' && only->colon));
  const auto word = sayable && !only->word.empty() ? parse_go_duration(only->word) : std::optional(fallback);
  if (!sayable || !word) {
    const auto value = duration(path);
    return value ? std::optional(Text{config::format_duration(*value), false}) : std::nullopt;
  }
  remark(path, "where " + only->name + " is set it must be a number and one unit, such as 90s for 1m30s");
  return Text{"${" + only->name + ":-" + config::format_duration(*word) + "}", true};
}

std::vector<Text> Fields::list(const std::string& path) {
  std::vector<Text> values;
  const YamlNode* node = find(path);
  if (node == nullptr) {
    return values;
  }
  if (node->kind == YamlNode::Kind::nothing) {
    remark(path, "its variable is not set here, so that the list is empty");
  } else if (node->kind != YamlNode::Kind::list) {
    complain(path, "must be a list");
  } else if (has_marks(node->marked)) {
    remark(path, "written with what its variable stood for when it was converted");
  }
  for (std::size_t i = 0; i < node->items.size(); ++i) {
    const YamlNode& item = node->items[i];
    if (item.kind != YamlNode::Kind::scalar || item.text.empty()) {
      complain(path + "." + std::to_string(i), "cannot be blank");
    } else {
      values.push_back(translated(path, item, false));
    }
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
  const auto is_said = [&](const Remark& one) { return one.field == path && one.what == what; };
  if (std::none_of(remarks_.begin(), remarks_.end(), is_said)) {
    remarks_.push_back({line, path, what});
  }
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
