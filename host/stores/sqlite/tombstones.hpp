#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/hash_rows.hpp"

namespace sluice::queue::sqlite {

/// Messages of groups that are done, and whose rows in `messages` and `chains` are still there. They are handed out in
/// turns, so those that are done together lie apart in the file: to delete them at once would write a page for each.
/// So their end is a bit of `tombstones`, and they are deleted later, with those that lie beside them.
///
/// Works inside a transaction of its connection.
class Tombstones {
 public:
  explicit Tombstones(Connection& connection);

  /// A message with a longer body is not left lying: it has its pages to itself.
  static constexpr std::size_t kLongestBody = 1'024;
  /// An SQL condition on a row of `messages` that the statement calls m: it lies under a tombstone.
  static std::string buried();

  /// From here on the rows of these, in ascending order, count for nothing. Deletes about as many of those that lie
  /// there already.
  void bury(std::span<const std::int64_t> seqs);
  /// Deletes some of those that lie there; nothing happens where there are none.
  void sweep();

 private:
  static constexpr unsigned kBlockBits = 12;
  static constexpr std::int64_t kBlock = std::int64_t{1} << kBlockBits;
  /// Messages that are buried for each block that is swept. Of a backlog that is spread over many blocks, about half a
  /// block lies there when its turn comes.
  static constexpr std::size_t kForASweep = kBlock / 2;

  void bury_in(std::int64_t block, std::span<const std::int64_t> seqs);
  void remove_rows(std::int64_t block);

  HashRows removing_;
  Statement read_;
  Statement write_;
  Statement next_;
  Statement drop_;
  Statement delete_messages_;
  Statement delete_links_;
  std::string bits_;                ///< scratch
  std::vector<std::int64_t> seqs_;  ///< scratch
  std::int64_t swept_ = -1;         ///< the block that was swept last
  std::size_t buried_ = 0;          ///< since then
};

}  // namespace sluice::queue::sqlite
