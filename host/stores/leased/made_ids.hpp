#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "host/queue/message.hpp"

/// What sort keys, and the ids that are made of them, look like. Pure functions.
namespace sluice::queue::leased {

// Crockford's base32: its characters sort as their values do.
inline constexpr std::string_view kBase32Digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
inline constexpr std::size_t kTimeDigits = 10;
inline constexpr std::size_t kChanceDigits = 16;
inline constexpr std::size_t kSortBytes = 1 + kTimeDigits + kChanceDigits;
inline constexpr std::size_t kShardDigits = 2;

// What each character stands for; kNoDigit: it is none of them. Every message's key is read several times.
inline constexpr std::uint8_t kNoDigit = 32;
inline constexpr auto kValues = [] {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (std::size_t value = 0; value < kBase32Digits.size(); ++value) {
    values[static_cast<unsigned char>(kBase32Digits[value])] = static_cast<std::uint8_t>(value);
  }
  return values;
}();

/// Nothing for what holds anything else.
inline std::optional<std::uint64_t> read_digits(std::string_view text) {
  std::uint64_t value = 0;
  for (const char digit : text) {
    const std::uint8_t read = kValues[static_cast<unsigned char>(digit)];
    if (read == kNoDigit) {
      return std::nullopt;
    }
    value = value << 5U | read;
  }
  return value;
}

/// Of a message: its priority, its due time, chance.
inline bool is_sort_key(std::string_view sort) {
  return sort.size() == kSortBytes && sort.front() >= '0' && sort.front() < '0' + static_cast<int>(kPriorities) &&
         read_digits(sort.substr(1)).has_value();
}

/// It may be read as a key and the number of a shard.
inline bool ends_in_a_shard(std::string_view id) {
  return id.size() > kShardDigits && read_digits(id.substr(id.size() - kShardDigits)).has_value();
}

/// A table of this layout has given a message this id: its sort key and its shard.
inline bool is_made_id(std::string_view id) {
  return ends_in_a_shard(id) && is_sort_key(id.substr(0, id.size() - kShardDigits));
}

}  // namespace sluice::queue::leased
