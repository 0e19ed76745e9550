#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "host/stores/owned/sort_keys.hpp"

/// What the ids look like that are made of sort keys. Pure functions.
namespace sluice::queue::leased {

using owned::due_of;
using owned::first_sort_key;
using owned::front_sort_key;
using owned::is_sort_key;
using owned::kFrontEnd;
using owned::kSortBytes;
using owned::last_sort_key;
using owned::millis_of;
using owned::priority_of;
using owned::sort_key_of;
using owned::time_of_millis;
using owned::whole_milliseconds;

inline constexpr std::size_t kShardDigits = 2;

/// The keys by which an item is listed that has no id: its sort key and its shard, put together as a made id is.
inline std::optional<std::pair<std::string, std::uint32_t>> listed_keys(std::string_view id) {
  if (id.size() <= kShardDigits) {
    return std::nullopt;
  }
  const std::size_t sort_bytes = id.size() - kShardDigits;
  const auto shard = owned::read_digits(id.substr(sort_bytes));
  if (!shard) {
    return std::nullopt;
  }
  return std::pair(std::string(id.substr(0, sort_bytes)), static_cast<std::uint32_t>(*shard));
}

/// The same of an id that a table of this layout has given a message; nothing for any other.
inline std::optional<std::pair<std::string, std::uint32_t>> place_of_made_id(std::string_view id) {
  auto keys = listed_keys(id);
  return keys && is_sort_key(keys->first) ? std::move(keys) : std::nullopt;
}

}  // namespace sluice::queue::leased
