#pragma once

#include <cstdint>
#include <vector>

#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/places.hpp"

namespace sluice::queue::sqlite {

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
