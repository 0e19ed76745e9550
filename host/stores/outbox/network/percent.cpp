#include "host/stores/outbox/network/percent.hpp"

#include <charconv>

namespace sluice::queue::outbox {

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    const std::size_t escape = text.find('%');
    plain += text.substr(0, escape);
    if (escape == std::string_view::npos) {
      return plain;
    }
    const std::string_view digits = text.substr(escape + 1, 2);
    unsigned int byte = 0;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() < 2 || code != std::errc() || end != digits.data() + digits.size()) {
      return std::nullopt;
    }
    plain += static_cast<char>(byte);
    text.remove_prefix(escape + 3);
  }
  return plain;
}

}  // namespace sluice::queue::outbox
