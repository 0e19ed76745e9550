#pragma once

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "host/stores/sqlite/connection.hpp"

namespace sluice::queue::sqlite {

/// A place in the order of a half: sent_at, seq.
using Place = std::pair<std::int64_t, std::int64_t>;
inline constexpr Place kFirst{std::numeric_limits<std::int64_t>::min(), 0};  ///< before all others

/// Messages that are delayed or in flight, in the order of their half. They lie in another order, so that each look
/// goes through all of them; the places that it finds are kept for the next pages, until anybody writes to the file.
class WaitingList {
 public:
  /// Of a connection that writes nothing itself.
  explicit WaitingList(Connection& connection);

  /// Adds the first places after `after` to `places`.
  void list(std::int64_t half, const Place& after, std::size_t limit, std::vector<Place>& places);

 private:
  void scan(std::int64_t half, const Place& after, std::size_t limit, std::vector<Place>& places);
  std::int64_t file_version();

  Connection& connection_;
  Statement scan_;
  Statement file_version_;
  // The kept places: all of this half after `from_`, up to the last of them, as of `version_`.
  std::vector<Place> kept_;
  std::int64_t half_ = -1;
  std::int64_t version_ = 0;
  Place from_ = kFirst;
  bool complete_ = false;  ///< there are none after the last
};

}  // namespace sluice::queue::sqlite
