#include "host/stores/outbox/mysql/names.hpp"

#include "base/text/hex.hpp"

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

std::string bytes_literal(std::string_view text) { return "x'" + to_hex(text) + "'"; }

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
