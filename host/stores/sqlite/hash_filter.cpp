#include "host/stores/sqlite/hash_filter.hpp"

#include <algorithm>
#include <bit>

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kInWord = 4;
constexpr std::size_t kLeastRoom = 262'144;   // 512 KiB
constexpr std::size_t kMostRoom = 8'388'608;  // 16 MiB

}  // namespace

void HashFilter::reset(std::size_t room) {
  const std::size_t fitting = std::bit_ceil(std::clamp(room, kLeastRoom, kMostRoom));
  words_.assign(fitting / kInWord, 0);
  // At the limit it is not made anew for each hash more.
  room_ = std::max(fitting, room);
  added_ = 0;
}

}  // namespace sluice::queue::sqlite
