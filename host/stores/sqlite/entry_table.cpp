#include "host/stores/sqlite/entry_table.hpp"

#include <algorithm>

namespace sluice::queue::sqlite {

void EntryTable::add(const IdEntry& entry) {
  if (lists_.empty()) {
    lists_.resize(std::size_t{1} << kListBits);
  }
  lists_[list_of(entry.hash)].push_back(entry);
  ++size_;
}

bool EntryTable::erase(const IdEntry& entry) {
  if (lists_.empty()) {
    return false;
  }
  auto& list = lists_[list_of(entry.hash)];
  // Those that are taken back came last.
  const auto found = std::find_if(list.rbegin(), list.rend(), [&entry](const IdEntry& one) {
    return one.seq == entry.seq && one.hash == entry.hash;
  });
  if (found == list.rend()) {
    return false;
  }
  list.erase(std::next(found).base());
  --size_;
  return true;
}

void EntryTable::erase_to(std::int64_t seq) {
  for (auto& list : lists_) {
    size_ -= std::erase_if(list, [seq](const IdEntry& entry) { return entry.seq <= seq; });
  }
}

void EntryTable::clear() {
  lists_.clear();
  size_ = 0;
}

}  // namespace sluice::queue::sqlite
