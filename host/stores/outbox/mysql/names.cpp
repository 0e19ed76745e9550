#include "host/stores/outbox/mysql/names.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

template <typename Number>
std::string joined(std::span<const Number> numbers) {
  std::string text;
  for (const Number number : numbers) {
    text += (text.empty() ? "" : ",") + std::to_string(number);
  }
  return text;
}

}  // namespace

std::string identifier(std::string_view name) {
  std::string text = "`";
  for (const char c : name) {
    text += c == '`' ? "``" : std::string(1, c);
  }
  return text + "`";
}

std::string bytes_literal(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string literal = "x'";
  literal.reserve(text.size() * 2 + 3);
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    literal += kDigits[byte >> 4U];
    literal += kDigits[byte & 15U];
  }
  return literal + "'";
}

std::string text_literal(std::string_view text) { return "CONVERT(" + bytes_literal(text) + " USING utf8mb4)"; }

std::string exact(std::string_view column) {
  return "CAST(CONVERT(" + std::string(column) + " USING utf8mb4) AS BINARY)";
}

std::string list_of(std::span<const std::int64_t> numbers) { return joined(numbers); }

std::string list_of(std::span<const std::uint32_t> numbers) { return joined(numbers); }

std::string list_of(const std::vector<std::string>& texts) {
  std::string text;
  for (const std::string& one : texts) {
    text += (text.empty() ? "" : ",") + bytes_literal(one);
  }
  return text;
}

}  // namespace sluice::queue::outbox::mysql
