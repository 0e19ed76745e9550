#include "host/fleet/steering.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "host/fleet/notice_json.hpp"

namespace sluice::fleet {

template <Described<AuditEntry> Record, typename Visit>
void describe(Record& entry, Visit visit) {
  visit("at", entry.at);
  visit("who", entry.who);
  visit("what", entry.what);
}

namespace {

constexpr std::array<std::string_view, 6> kWishes{"pause", "scale", "log-level", "drain", "reload", "cancel-running"};
constexpr std::array<std::string_view, 5> kTargets{"queue", "job", "host", "all", "message"};
constexpr std::array<std::string_view, 5> kLevels{"trace", "debug", "info", "warn", "error"};

template <typename Word, std::size_t count>
std::optional<Word> find_word(const std::array<std::string_view, count>& words, std::string_view word) {
  const auto found = std::find(words.begin(), words.end(), word);
  return found == words.end() ? std::nullopt : std::optional(static_cast<Word>(found - words.begin()));
}

bool fits(Wish wish, Target target) {
  switch (wish) {
    case Wish::pause:
      return target == Target::queue || target == Target::job;
    case Wish::scale:
      return target == Target::job;
    case Wish::log_level:
    case Wish::reload:
      return target == Target::host || target == Target::all;
    case Wish::drain:
      return target == Target::host;
    case Wish::cancel_running:
      break;
  }
  return target == Target::message;
}

std::string write(const Directive& directive) {
  NoticeWriter line;
  line.put("id", directive.id);
  line.put("wish", to_string(directive.wish));
  line.put("target", to_string(directive.target));
  line.put("name", directive.name);
  line.put("value", directive.value);
  line.put("by", directive.by);
  line.put("at", directive.at);
  return std::move(line).finish();
}

/// Nothing where this version does not know the wish or its target.
std::optional<Directive> read(JsonReader& json) {
  Directive directive;
  std::string wish;
  std::string target;
  read_members(json, [&](const std::string& name) {
    return name == "id"       ? read_into(json, directive.id)
           : name == "wish"   ? read_into(json, wish)
           : name == "target" ? read_into(json, target)
           : name == "name"   ? read_into(json, directive.name)
           : name == "value"  ? read_into(json, directive.value)
           : name == "by"     ? read_into(json, directive.by)
           : name == "at"     ? read_into(json, directive.at)
                              : json.skip();
  });
  const auto known_wish = find_word<Wish>(kWishes, wish);
  const auto known_target = find_word<Target>(kTargets, target);
  if (!known_wish || !known_target) {
    return std::nullopt;
  }
  directive.wish = *known_wish;
  directive.target = *known_target;
  return directive;
}

}  // namespace

std::string_view to_string(Wish wish) { return kWishes.at(static_cast<std::size_t>(wish)); }
std::string_view to_string(Target target) { return kTargets.at(static_cast<std::size_t>(target)); }

bool stands(Wish wish) { return wish == Wish::pause || wish == Wish::scale || wish == Wish::log_level; }

std::string Directive::text() const {
  const std::string whom = target == Target::all ? "all hosts" : std::string(to_string(target)) + " " + name;
  switch (wish) {
    case Wish::scale:
      return "scale " + whom + " to " + value;
    case Wish::log_level:
      return "log-level of " + whom + " is " + value;
    case Wish::pause:
    case Wish::drain:
    case Wish::reload:
    case Wish::cancel_running:
      break;
  }
  return std::string(to_string(wish)) + " " + whom;
}

std::optional<std::uint32_t> workers_of(const Directive& directive) {
  std::uint32_t workers = 0;
  const std::string& text = directive.value;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), workers);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && workers >= 1 && workers <= kMostWorkers ? std::optional(workers) : std::nullopt;
}

std::optional<std::string> flaw_of(const Directive& directive) {
  if (!fits(directive.wish, directive.target)) {
    return std::string(to_string(directive.wish)) + " means no " + std::string(to_string(directive.target));
  }
  if (directive.target != Target::all && directive.name.empty()) {
    return std::string(to_string(directive.wish)) + " needs the name of a " + std::string(to_string(directive.target));
  }
  if (directive.name.size() > kMaxTargetBytes) {
    return "a name has at most " + std::to_string(kMaxTargetBytes) + " bytes";
  }
  if (directive.wish == Wish::scale && !workers_of(directive)) {
    return "a job has 1 to " + std::to_string(kMostWorkers) + " workers, not \"" + directive.value +
           "\"; to have nothing started, pause it";
  }
  if (directive.wish == Wish::log_level &&
      std::find(kLevels.begin(), kLevels.end(), directive.value) == kLevels.end()) {
    return "a log level is trace, debug, info, warn or error, not \"" + directive.value + "\"";
  }
  return std::nullopt;
}

std::string write_steering(const Steering& steering) {
  if (steering.directives.empty() && !steering.watched_until) {
    return {};
  }
  std::string directives = "[";
  for (const Directive& directive : steering.directives) {
    directives += (directives.size() > 1 ? "," : "") + write(directive);
  }
  NoticeWriter line;
  line.put("watched_until", steering.watched_until);
  line.raw("directives", directives + "]");
  return std::move(line).finish();
}

Result<Steering> read_steering(std::string_view text) {
  Steering steering;
  if (text.empty()) {
    return steering;
  }
  SLUICE_PASS_ON(read_object(text, "what operators want", [&](JsonReader& json, const std::string& name) {
    return name == "watched_until" ? read_into(json, steering.watched_until)
           : name == "directives"  ? read_elements(json,
                                                   [&] {
                                                    if (auto directive = read(json)) {
                                                      steering.directives.push_back(std::move(*directive));
                                                    }
                                                  })
                                   : json.skip();
  }));
  return steering;
}

std::string write_audit(const std::vector<AuditEntry>& entries, std::size_t most_bytes) {
  std::vector<std::string> kept;
  std::size_t bytes = std::string_view("{\"entries\":[]}").size();
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    kept.push_back(write_described(*entry));
    bytes += kept.back().size() + 1;
    if (bytes > most_bytes) {
      kept.pop_back();
      break;
    }
  }
  std::string out = "{\"entries\":[";
  for (auto text = kept.rbegin(); text != kept.rend(); ++text) {
    out += (text == kept.rbegin() ? "" : ",") + *text;
  }
  return out + "]}";
}

Result<std::vector<AuditEntry>> read_audit(std::string_view text) {
  std::vector<AuditEntry> entries;
  if (text.empty()) {
    return entries;
  }
  SLUICE_PASS_ON(read_object(text, "the audit", [&](JsonReader& json, const std::string& name) {
    return name == "entries" ? read_into(json, entries) : json.skip();
  }));
  return entries;
}

}  // namespace sluice::fleet
