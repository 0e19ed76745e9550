#include "host/stores/sqlite/waiting_list.hpp"

#include <algorithm>

namespace sluice::queue::sqlite {

namespace {

// Places of 16 bytes.
constexpr std::size_t kKept = 50'000;

}  // namespace

WaitingList::WaitingList(Connection& connection)
    : connection_(connection),
      scan_(connection,
            "SELECT sent_at, seq FROM deliveries INDEXED BY deliveries_due WHERE half = ?1 AND until IS NOT NULL "
            "AND (sent_at, seq) > (?2, ?3) ORDER BY sent_at, seq LIMIT ?4"),
      file_version_(connection, "PRAGMA data_version") {}

void WaitingList::scan(std::int64_t half, const Place& after, std::size_t limit, std::vector<Place>& places) {
  scan_.bind(half, after.first, after.second, static_cast<std::int64_t>(limit));
  while (scan_.row()) {
    places.emplace_back(scan_.integer(0), scan_.integer(1));
  }
  scan_.reset();
}

std::int64_t WaitingList::file_version() {
  const std::int64_t version = file_version_.row() ? file_version_.integer(0) : 0;
  file_version_.reset();
  return version;
}

void WaitingList::list(std::int64_t half, const Place& after, std::size_t limit, std::vector<Place>& places) {
  if (after == kFirst) {
    // Most look at the first page only.
    return scan(half, after, limit, places);
  }
  const std::int64_t version = file_version();
  const bool known = half_ == half && version_ == version && from_ <= after;
  auto first = known ? std::upper_bound(kept_.begin(), kept_.end(), after) : kept_.end();
  if (!known || (!complete_ && static_cast<std::size_t>(kept_.end() - first) < limit)) {
    const std::size_t wanted = std::max(limit, kKept);
    kept_.clear();
    scan(half, after, wanted, kept_);
    half_ = connection_.failed() ? -1 : half;
    version_ = version;
    from_ = after;
    complete_ = kept_.size() < wanted;
    first = kept_.begin();
  }
  const auto count = std::min(static_cast<std::size_t>(kept_.end() - first), limit);
  places.insert(places.end(), first, first + static_cast<std::ptrdiff_t>(count));
}

}  // namespace sluice::queue::sqlite
