#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/message.hpp"

namespace sluice::queue::leased {

/// A sort key as a whole number, of the same order: its priority, its time, its chance.
__extension__ typedef unsigned __int128 KeyNumber;
/// Zero for what is no sort key.
KeyNumber number_of_key(std::string_view sort);
std::string key_of_number(KeyNumber number);

/// Estimates how many records lie in a partition, and where among its keys, from a bounded number of short reads: what
/// lies at both ends, and around places in between, each of which is put where most may lie that nobody has seen. What
/// was read is counted; between two reads the keys lie as densely as at their edges, and where reads have found gaps,
/// as densely as all that was read.
///
/// A partition of at most kEdge records takes one read and is exact. Step functions. Not thread-safe.
class KeySketch {
 public:
  static constexpr std::size_t kEdge = 40;  ///< records that are read at either end
  static constexpr std::size_t kSide = 16;  ///< and on each side of a place in between

  /// At most so many places in between.
  explicit KeySketch(std::size_t places) : places_left_(places) {}

  /// One read of keys, both ends included.
  struct Order {
    std::string from;
    std::string to;
    bool forward = true;
    std::size_t limit = 0;
  };
  struct Answer {
    std::vector<std::string> keys;  ///< as they were read
    bool ended = false;             ///< there are no more between from and to
  };
  /// What is to be read next, side by side, all of which is answered at once; nothing: it is as good as it gets.
  std::vector<Order> next(WallTime now);
  void done(const std::vector<Answer>& answers);
  /// What has come behind the last record is to be read next.
  void extend() { step_ = Step::more; }

  /// There is an estimate.
  bool drawn() const { return drawn_; }
  /// Every record has been read.
  bool exact() const { return drawn_ && blocks_.size() <= 1; }

  struct Amount {
    double records = 0;
    double unseen = 0;  ///< of these, estimated
  };
  /// Of keys beyond `after` and up to `to`.
  Amount between(KeyNumber after, KeyNumber to) const;

 private:
  /// Keys between which every record has been read.
  struct Block {
    KeyNumber first = 0;
    KeyNumber last = 0;
    double count = 0;
    double left = 0;  ///< records a key at its left edge
    double right = 0;
  };
  enum class Step { tail, head, split, more, none };

  static Block block_of(const std::vector<KeyNumber>& keys);
  double between_blocks(std::size_t left) const;
  double read_density() const;
  double possible(std::size_t left) const;
  bool choose_split(WallTime now);
  void split_done(const std::vector<KeyNumber>& before, bool adjoins, const std::vector<KeyNumber>& behind, bool ended);
  void note_gap(const Block& before, const Block& behind, double gap);

  std::vector<Block> blocks_;  ///< by their keys
  std::vector<double> gaps_;   ///< that were found where nothing lies, in the order of their lengths
  std::set<unsigned> at_now_;  ///< priorities whose keys of now have been looked at
  std::size_t places_left_;
  Step step_ = Step::tail;
  bool drawn_ = false;
  std::size_t left_ = 0;  ///< the block before the place that is looked at
  KeyNumber place_ = 0;
};

}  // namespace sluice::queue::leased
