#include "host/cli/commands/send_run.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace sluice::cli {

namespace {

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

}  // namespace sluice::cli
