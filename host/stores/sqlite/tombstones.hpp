#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.hpp"
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

  /// A message with more bytes, its id and all that its sender has decided on, is not left lying: it has its pages to
  /// itself.
  static constexpr std::size_t kLongest = 1'024;
  /// An SQL condition on a row of `messages` that the statement calls m: it lies under a tombstone.
  static std::string buried();

  /// From here on the rows of these, in ascending order, count for nothing. Deletes about as many of those that lie
  /// there already.
  void bury(std::span<const std::int64_t> seqs, WallTime now);
  /// Deletes some of those that lie there, but for a process that has just done so or buried others: more may follow
  /// soon, by this process or by another one, to be deleted together.
  void sweep_idle(WallTime now);
  /// The file is full: deletes many of those that lie there.
  void make_room();

 private:
  static constexpr unsigned kBlockBits = 12;
  static constexpr std::int64_t kBlock = std::int64_t{1} << kBlockBits;
  /// Messages that are buried for each block that is swept. Of a backlog that is spread over many blocks, about half a
  /// block lies there when its turn comes.
  static constexpr std::size_t kForASweep = kBlock / 2;
  /// What is buried for each block may be much less, where most messages are of no group. So blocks are swept twice as
  /// fast as new ones are begun, but for the first: or those that sweeps have left behind them would never be reached.
  static constexpr std::size_t kMostBegun = kBlock + kForASweep;
  static constexpr Duration kBusy = std::chrono::seconds(1);
  static constexpr int kSweepsForRoom = 16;

  void bury_in(std::int64_t block, std::span<const std::int64_t> seqs);
  /// One block; false: there is none.
  bool sweep();
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
  std::size_t buried_ = 0;          ///< messages for which nothing has been swept yet
  std::int64_t newest_ = -1;        ///< the youngest block that this process has begun
  std::size_t begun_ = 0;           ///< the same of such blocks, in messages that they have room for
  std::optional<WallTime> last_;    ///< when this process has buried some, or swept some while idle
};

}  // namespace sluice::queue::sqlite
