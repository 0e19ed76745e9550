#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/stores/sqlite/hash_rows.hpp"

namespace sluice::queue::sqlite {

/// Entries by their hash, several of one hash too, in one piece of memory: no allocation for each, and mostly one
/// cache line looked at. A hash is as good as random in its lower bits; a seq is positive.
class EntryTable {
 public:
  void add(const IdEntry& entry);
  /// That very one; false: it is not there.
  bool erase(const IdEntry& entry);
  /// Those whose seq is not greater.
  void erase_to(std::int64_t seq);
  void clear();

  std::size_t size() const { return size_; }
  bool contains(std::int64_t hash) const;
  /// Calls `use` with the seq of each of this hash.
  template <typename Use>
  void each(std::int64_t hash, Use use) const {
    for (std::size_t at = first(hash); !slots_.empty() && slots_[at].seq != kEmpty; at = after(at)) {
      if (slots_[at].seq > kEmpty && slots_[at].hash == hash) {
        use(slots_[at].seq);
      }
    }
  }
  /// Calls `use` with each entry, in no order.
  template <typename Use>
  void all(Use use) const {
    for (const IdEntry& slot : slots_) {
      if (slot.seq > kEmpty) {
        use(slot);
      }
    }
  }

 private:
  // What stands for a seq in a slot that has none: a search ends at the first kind, and goes on at the second.
  static constexpr std::int64_t kEmpty = 0;
  static constexpr std::int64_t kGone = -1;

  // As long as there are slots, their number is a power of two.
  std::size_t first(std::int64_t hash) const { return static_cast<std::size_t>(hash) & (slots_.size() - 1); }
  std::size_t after(std::size_t at) const { return (at + 1) & (slots_.size() - 1); }
  void put(const IdEntry& entry);
  /// Makes room for so many, without those that are gone.
  void rebuild(std::size_t entries);

  std::vector<IdEntry> slots_;
  std::size_t size_ = 0;
  std::size_t used_ = 0;  ///< slots that are not empty
};

}  // namespace sluice::queue::sqlite
