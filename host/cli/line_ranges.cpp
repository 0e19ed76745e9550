#include "host/cli/line_ranges.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

namespace sluice::cli {

namespace {

constexpr std::uint64_t kNoEnd = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = failed == std::errc() && end == text.data() + text.size() && value > 0 && value < kNoEnd;
  return good ? std::optional(value) : std::nullopt;
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

}  // namespace sluice::cli
