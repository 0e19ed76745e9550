#include "host/operate/send_run.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace sluice::operate {

namespace {

constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = failed == std::errc() && end == text.data() + text.size() && value > 0 && value < kNoEnd;
  return good ? std::optional(value) : std::nullopt;
}

constexpr std::size_t kMostMoment = 32;
/// Of an id, after its run's name. No input has more lines.
constexpr std::size_t kLineDigits = 12;
constexpr std::string_view kDigits = "0123456789abcdef";
constexpr std::string_view kPattern = "xxxxxxxx-xxxx-8xxx-8xxx";

bool is_name(std::string_view text) {
  return text.size() == kPattern.size() &&
         std::equal(text.begin(), text.end(), kPattern.begin(), [](char byte, char wanted) {
           return wanted == 'x' ? (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') : byte == wanted;
         });
}

// Letters and digits, as the shell leaves alone.
bool is_moment(std::string_view text) {
  return !text.empty() && text.size() <= kMostMoment && std::all_of(text.begin(), text.end(), [](char byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
  });
}

}  // namespace

std::optional<LineRanges> LineRanges::parse(std::string_view text) {
  LineRanges lines;
  while (true) {
    const std::string_view part = text.substr(0, text.find(','));
    const auto dash = part.find('-');
    const auto first = number(part.substr(0, dash));
    const bool open = dash != std::string_view::npos && dash + 1 == part.size();
    const auto last = dash == std::string_view::npos ? first : open ? kNoEnd : number(part.substr(dash + 1));
    if (!first || !last || *last < *first || (!lines.ranges_.empty() && *first <= lines.ranges_.back().last)) {
      return std::nullopt;
    }
    lines.ranges_.push_back({*first, *last});
    if (part.size() == text.size()) {
      return lines;
    }
    text.remove_prefix(part.size() + 1);
  }
}

void LineRanges::add(std::uint64_t line) {
  if (!ranges_.empty() && ranges_.back().last + 1 >= line) {
    ranges_.back().last = std::max(ranges_.back().last, line);
  } else {
    ranges_.push_back({line, line});
  }
}

void LineRanges::add_from(std::uint64_t line) {
  add(line);
  ranges_.back().last = kNoEnd;
}

void LineRanges::add(const LineRanges& lines) {
  for (const Range& range : lines.ranges_) {
    add(range.first);
    ranges_.back().last = range.last;
  }
}

LineRanges LineRanges::behind(std::uint64_t line) const {
  LineRanges rest;
  for (const Range& range : ranges_) {
    if (range.last > line) {
      rest.ranges_.push_back({std::max(range.first, line + 1), range.last});
    }
  }
  return rest;
}

bool LineRanges::contains(std::uint64_t line) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), line,
                                      [](std::uint64_t value, const Range& range) { return value < range.first; });
  return after != ranges_.begin() && line <= std::prev(after)->last;
}

LineRanges LineRanges::at_most(std::size_t most) const {
  LineRanges fewer = *this;
  if (fewer.ranges_.size() > most) {
    fewer.ranges_.resize(most);
    fewer.ranges_.back().last = kNoEnd;
  }
  return fewer;
}

std::string LineRanges::text() const {
  std::string text;
  for (const Range& range : ranges_) {
    text += (text.empty() ? "" : ",") + std::to_string(range.first);
    if (range.last == kNoEnd) {
      text += "-";
    } else if (range.last != range.first) {
      text += "-" + std::to_string(range.last);
    }
  }
  return text;
}

void UnsureLines::add(const std::string& moment, std::uint64_t line) {
  LineRanges one;
  one.add(line);
  add(moment, one);
}

void UnsureLines::add(const std::string& moment, const LineRanges& lines) {
  const auto same = std::find_if(by_moment_.begin(), by_moment_.end(),
                                 [&moment](const auto& known) { return known.first == moment; });
  (same != by_moment_.end() ? same->second : by_moment_.emplace_back(moment, LineRanges{}).second).add(lines);
}

void UnsureLines::add(const UnsureLines& lines) {
  for (const auto& [moment, those] : lines.by_moment_) {
    add(moment, those);
  }
}

std::string UnsureLines::moment_of(std::uint64_t line) const {
  const auto found = std::find_if(by_moment_.begin(), by_moment_.end(),
                                  [line](const auto& known) { return known.second.contains(line); });
  return found == by_moment_.end() ? std::string() : found->first;
}

std::size_t UnsureLines::count() const {
  std::size_t ranges = 0;
  for (const auto& known : by_moment_) {
    ranges += known.second.count();
  }
  return ranges;
}

UnsureLines UnsureLines::behind(std::uint64_t line) const {
  UnsureLines rest;
  for (const auto& [moment, lines] : by_moment_) {
    if (const LineRanges those = lines.behind(line); !those.empty()) {
      rest.add(moment, those);
    }
  }
  return rest;
}

std::string UnsureLines::text() const {
  std::string text;
  for (const auto& [moment, lines] : by_moment_) {
    text.append("@").append(moment).append(":").append(lines.text());
  }
  return text;
}

std::optional<UnsureLines> UnsureLines::parse(std::string_view text) {
  UnsureLines unsure;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find('@', 1));
    const auto colon = part.find(':');
    if (part.front() != '@' || colon == std::string_view::npos || !is_moment(part.substr(1, colon - 1))) {
      return std::nullopt;
    }
    const auto lines = LineRanges::parse(part.substr(colon + 1));
    if (!lines) {
      return std::nullopt;
    }
    unsure.add(std::string(part.substr(1, colon - 1)), *lines);
    text.remove_prefix(part.size());
  }
  return unsure;
}

SendRun SendRun::begin(Random& random) {
  std::string name(kPattern);
  for (char& byte : name) {
    byte = byte == 'x' ? kDigits[random.below(kDigits.size())] : byte;
  }
  LineRanges all;
  all.add_from(1);
  return {std::move(name), std::move(all), {}, false};
}

std::optional<SendRun> SendRun::resume(std::string_view token) {
  const auto colon = token.find(':');
  if (colon == std::string_view::npos || !is_name(token.substr(0, colon))) {
    return std::nullopt;
  }
  const auto at = std::min(token.find('@'), token.size());
  auto lines = at > colon ? LineRanges::parse(token.substr(colon + 1, at - colon - 1)) : std::nullopt;
  auto unsure = UnsureLines::parse(token.substr(at));
  if (!lines || !unsure) {
    return std::nullopt;
  }
  return SendRun(std::string(token.substr(0, colon)), std::move(*lines), std::move(*unsure), true);
}

std::string SendRun::id(std::uint64_t line) const {
  std::array<char, 1 + kLineDigits> digits{'-'};
  for (std::size_t place = kLineDigits; place > 0; --place, line >>= 4U) {
    digits[place] = kDigits[line & 15U];
  }
  std::string id;
  id.reserve(name_.size() + digits.size());
  id.append(name_).append(digits.data(), digits.size());
  return id;
}

std::string SendRun::token(const LineRanges& missing, const UnsureLines& unsure) const {
  return name_ + ":" + missing.text() + unsure.text();
}

}  // namespace sluice::operate
