#include <array>
#include <charconv>
#include <limits>
#include <string_view>

#include "config/config.hpp"

namespace sluice::config {

namespace {

struct Unit {
  std::string_view name;
  Duration length;
};

constexpr std::array<Unit, 7> kUnits{{{"d", std::chrono::hours(24)},
                                      {"h", std::chrono::hours(1)},
                                      {"m", std::chrono::minutes(1)},
                                      {"s", std::chrono::seconds(1)},
                                      {"ms", std::chrono::milliseconds(1)},
                                      {"us", std::chrono::microseconds(1)},
                                      {"ns", std::chrono::nanoseconds(1)}}};

}  // namespace

std::optional<Duration> parse_duration(const std::string& text) {
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, count);
  if (code != std::errc()) {
    return std::nullopt;
  }
  const std::string_view name(rest, static_cast<std::size_t>(end - rest));
  for (const Unit& unit : kUnits) {
    if (unit.name == name) {
      const auto most = static_cast<std::uint64_t>(std::numeric_limits<Duration::rep>::max() / unit.length.count());
      return count <= most ? std::optional(unit.length * static_cast<Duration::rep>(count)) : std::nullopt;
    }
  }
  return std::nullopt;
}

std::string format_duration(Duration duration) {
  if (duration == Duration::zero()) {
    return "0s";
  }
  for (const Unit& unit : kUnits) {
    if (duration % unit.length == Duration::zero()) {
      return std::to_string(duration / unit.length) + std::string(unit.name);
    }
  }
  return {};  // Not reached: every duration is a whole number of nanoseconds.
}

}  // namespace sluice::config
