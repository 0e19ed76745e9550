#include "host/stores/outbox/postgres/sql_text.hpp"

namespace sluice::queue::outbox::postgres {
namespace {

std::string escaped_element(const std::string& text) {
  std::string quoted_text = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted_text += '\\';
    }
    quoted_text += c;
  }
  return quoted_text + "\"";
}

template <typename Range, typename Text>
std::string array_text(const Range& range, Text text) {
  std::string all = "{";
  for (const auto& one : range) {
    all += (all.size() == 1 ? "" : ",") + text(one);
  }
  return all + "}";
}

}  // namespace

std::string array_of(std::span<const std::int64_t> numbers) {
  return array_text(numbers, [](std::int64_t number) { return std::to_string(number); });
}
std::string array_of(std::span<const std::uint32_t> numbers) {
  return array_text(numbers, [](std::uint32_t number) { return std::to_string(number); });
}
std::string array_of(const std::vector<std::string>& texts) { return array_text(texts, escaped_element); }
std::string array_of(const std::vector<Parameter>& texts) {
  return array_text(texts, [](const Parameter& text) { return text ? escaped_element(*text) : std::string("NULL"); });
}

std::string quoted(const std::string& identifier) {
  std::string name = "\"";
  for (const char c : identifier) {
    name += c == '"' ? std::string("\"\"") : std::string(1, c);
  }
  return name + "\"";
}

}  // namespace sluice::queue::outbox::postgres
