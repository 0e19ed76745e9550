#include "host/runtime/dynamodb_cost.hpp"

#include <array>
#include <cstdio>

namespace sluice::runtime {

std::string DynamoDbCost::text(std::uint64_t count, std::string_view noun) const {
  std::array<char, 160> text{};
  std::snprintf(text.data(), text.size(), "%llu requests, %.1f RCU, %.1f WCU",
                static_cast<unsigned long long>(requests), read_units, write_units);
  std::string out = text.data();
  if (count > 0) {
    const auto each = static_cast<double>(count);
    std::snprintf(text.data(), text.size(), " (%.3f, %.3f and %.2f a ", static_cast<double>(requests) / each,
                  read_units / each, write_units / each);
    out.append(text.data()).append(noun).append(")");
  }
  return out;
}

}  // namespace sluice::runtime
