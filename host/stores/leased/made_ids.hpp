#pragma once

#include <cstddef>
#include <string_view>

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

/// It may be read as a key and the number of a shard.
inline bool ends_in_a_shard(std::string_view id) {
  return id.size() > kShardDigits && owned::read_digits(id.substr(id.size() - kShardDigits)).has_value();
}

/// A table of this layout has given a message this id: its sort key and its shard.
inline bool is_made_id(std::string_view id) {
  return ends_in_a_shard(id) && is_sort_key(id.substr(0, id.size() - kShardDigits));
}

}  // namespace sluice::queue::leased
