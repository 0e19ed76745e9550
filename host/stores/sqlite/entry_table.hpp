#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "host/stores/sqlite/hash_rows.hpp"

namespace sluice::queue::sqlite {

/// Entries by their hash of 48 bits, several of one hash too: in a few lists by its upper bits, so that one is added
/// at one of a few places, which stay in the processor's cache, and all are read in about the order of their hash.
class EntryTable {
 public:
  void add(const IdEntry& entry);
  /// That very one; false: it is not there.
  bool erase(const IdEntry& entry);
  /// Those whose seq is not greater.
  void erase_to(std::int64_t seq);
  void clear();

  std::size_t size() const { return size_; }
  /// Calls `use` with the seq of each of this hash.
  template <typename Use>
  void each(std::int64_t hash, Use use) const {
    if (lists_.empty()) {
      return;
    }
    for (const IdEntry& entry : lists_[list_of(hash)]) {
      if (entry.hash == hash) {
        use(entry.seq);
      }
    }
  }
  /// Calls `use` with each entry.
  template <typename Use>
  void all(Use use) const {
    for (const auto& list : lists_) {
      for (const IdEntry& entry : list) {
        use(entry);
      }
    }
  }

 private:
  static constexpr unsigned kListBits = 7;

  static std::size_t list_of(std::int64_t hash) {
    return (static_cast<std::size_t>(hash) >> (kHashBits - kListBits)) & ((std::size_t{1} << kListBits) - 1);
  }

  std::vector<std::vector<IdEntry>> lists_;  ///< empty until there is an entry
  std::size_t size_ = 0;
};

}  // namespace sluice::queue::sqlite
