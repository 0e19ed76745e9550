#include "host/stores/sqlite/entry_table.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace sluice::queue::sqlite {

namespace {

constexpr std::size_t kLeastSlots = 64;

}  // namespace

void EntryTable::add(const IdEntry& entry) {
  if ((used_ + 1) * 4 > slots_.size() * 3) {
    rebuild(size_ + 1);
  }
  put(entry);
}

void EntryTable::put(const IdEntry& entry) {
  std::size_t at = first(entry.hash);
  while (slots_[at].seq != kEmpty) {
    at = after(at);
  }
  slots_[at] = entry;
  ++size_;
  ++used_;
}

bool EntryTable::erase(const IdEntry& entry) {
  for (std::size_t at = first(entry.hash); !slots_.empty() && slots_[at].seq != kEmpty; at = after(at)) {
    if (slots_[at].seq == entry.seq && slots_[at].hash == entry.hash) {
      slots_[at].seq = kGone;
      --size_;
      return true;
    }
  }
  return false;
}

void EntryTable::erase_to(std::int64_t seq) {
  for (IdEntry& slot : slots_) {
    if (slot.seq > kEmpty && slot.seq <= seq) {
      slot.seq = kGone;
      --size_;
    }
  }
  rebuild(size_);
}

void EntryTable::clear() {
  slots_.clear();
  size_ = 0;
  used_ = 0;
}

bool EntryTable::contains(std::int64_t hash) const {
  bool found = false;
  each(hash, [&found](std::int64_t /*seq*/) { found = true; });
  return found;
}

void EntryTable::rebuild(std::size_t entries) {
  const std::vector<IdEntry> old = std::exchange(slots_, {});
  // It was as large as that before, and will be again.
  slots_.resize(std::bit_ceil(std::max({kLeastSlots, entries * 2, old.size()})));
  size_ = 0;
  used_ = 0;
  for (const IdEntry& entry : old) {
    if (entry.seq > kEmpty) {
      put(entry);
    }
  }
}

}  // namespace sluice::queue::sqlite
