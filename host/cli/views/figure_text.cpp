#include "host/cli/views/figure_text.hpp"

#include <array>
#include <charconv>

#include "host/cli/views/message_text.hpp"

namespace sluice::cli {

std::string decimal(double number, int digits) {
  std::array<char, 40> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed, digits);
  return {text.data(), end.ptr};
}

std::string rate_text(double per_second) {
  if (per_second < 0.05) {
    return "0";
  }
  if (per_second >= 9'950) {
    return decimal(per_second / 1000, 0) + "k";
  }
  if (per_second >= 999.5) {
    return decimal(per_second / 1000, 1) + "k";
  }
  return decimal(per_second, per_second < 9.95 ? 1 : 0);
}

std::string time_text(Duration time) {
  const double seconds = std::chrono::duration<double>(time).count();
  if (seconds <= 0) {
    return "-";
  }
  if (seconds < 0.001) {
    return decimal(seconds * 1e6, 0) + "us";
  }
  if (seconds < 0.9995) {
    return decimal(seconds * 1e3, seconds < 0.00995 ? 1 : 0) + "ms";
  }
  return seconds < 99.95 ? decimal(seconds, seconds < 9.995 ? 2 : 1) + "s" : short_duration(time);
}

}  // namespace sluice::cli
