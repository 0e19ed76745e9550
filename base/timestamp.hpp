#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace sluice {

/// RFC 3339 in UTC with always nine fraction digits, such as "2026-11-20T23:14:00.906192364Z". Strings made here sort as
/// their times do.
std::string format_timestamp(WallTime time);

/// Reads RFC 3339 with any number of fraction digits (beyond nine they are dropped) and any offset, as Go's
/// `time.Parse(time.RFC3339Nano, ...)` does. Nothing for text that is not one, or outside the years 1678 to 2261. What
/// lies before 1970 is its beginning, so that 64 bits hold the span between any two times.
std::optional<WallTime> parse_timestamp(std::string_view text);

/// Where times of 64 bits end, to the second that is whole: stands for every time after it.
inline constexpr WallTime kEndOfTime{std::chrono::seconds(9'214'646'399)};  // 2261-12-31T23:59:59Z

/// The same, but what lies after 2261 is kEndOfTime: an end in the year 9999 is a time like any other.
std::optional<WallTime> parse_timestamp_or_end(std::string_view text);

}  // namespace sluice
