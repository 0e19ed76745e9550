#include <array>
#include <charconv>
#include <limits>
#include <string_view>

#include "config/config.hpp"

namespace sluice::config {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t bytes;
};

constexpr std::array<Unit, 3> kUnits{{{"GiB", 1ULL << 30U}, {"MiB", 1ULL << 20U}, {"KiB", 1ULL << 10U}}};

}  // namespace

std::optional<std::uint64_t> parse_size(const std::string& text) {
  std::uint64_t count = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, count);
  const std::string_view name(rest, static_cast<std::size_t>(end - rest));
  for (const Unit& unit : kUnits) {
    if (code == std::errc() && unit.name == name && count > 0 &&
        count <= std::numeric_limits<std::int64_t>::max() / unit.bytes) {
      return count * unit.bytes;
    }
  }
  return std::nullopt;
}

std::string format_size(std::uint64_t bytes) {
  for (const Unit& unit : kUnits) {
    if (bytes != 0 && bytes % unit.bytes == 0) {
      return std::to_string(bytes / unit.bytes) + std::string(unit.name);
    }
  }
  return std::to_string(bytes) + " bytes";
}

}  // namespace sluice::config
