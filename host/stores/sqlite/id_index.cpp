#include "host/stores/sqlite/id_index.hpp"

#include <algorithm>
#include <cmath>

#include "host/stores/sqlite/tombstones.hpp"

namespace sluice::queue::sqlite {

namespace {

/// The last digits of the time of a UUID of version 7, in milliseconds: three days of them. Of what has its shape and
/// no digits, some number.
std::uint64_t time_of(std::string_view id) {
  constexpr std::size_t kDigits[] = {5, 6, 7, 9, 10, 11, 12};
  std::uint64_t time = 0;
  for (const std::size_t at : kDigits) {
    const char c = id[at];
    time = time << 4U | (static_cast<std::uint64_t>(c <= '9' ? c - '0' : (c & 7) + 9) & 15U);
  }
  return time;
}

/// The time, and behind it what tells apart those of one millisecond. Stored: it must never change.
std::int64_t hash_with_time(std::int64_t queue, std::string_view id) {
  constexpr unsigned kBehindTime = 20;
  constexpr std::size_t kParts[] = {14, 20, 28};
  std::uint64_t value = 0xCBF29CE484222325ULL ^ static_cast<std::uint64_t>(queue);
  for (const std::size_t part : kParts) {
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < sizeof(word); ++i) {
      word |= static_cast<std::uint64_t>(static_cast<unsigned char>(id[part + i])) << (8 * i);
    }
    value = (value ^ word) * 0xFF51AFD7ED558CCDULL;
    value ^= value >> 32U;
  }
  return static_cast<std::int64_t>(time_of(id) << kBehindTime | value >> (64U - kBehindTime));
}

}  // namespace

IdLookup::IdLookup(Connection& connection)
    : find_(connection,
            ("SELECT m.seq FROM (SELECT seq FROM ids_fresh WHERE hash = ?1 UNION ALL SELECT seq FROM ids WHERE hash = "
             "?1) AS entry CROSS JOIN messages AS m ON m.seq = entry.seq WHERE m.id = ?2 AND m.half IN (?3, ?3 + 1) "
             "AND NOT " +
             Tombstones::buried())
                .c_str()) {}

bool IdLookup::has_time(std::string_view id) {
  constexpr std::size_t kUuid = 36;
  return id.size() == kUuid && id[8] == '-' && id[13] == '-' && id[14] == '7' && id[18] == '-' && id[23] == '-';
}

std::int64_t IdLookup::hash(std::int64_t queue, std::string_view id) {
  if (has_time(id)) {
    return hash_with_time(queue, id);
  }
  // FNV-1a over the queue and the id, then mixed so that the upper bits are as good as the lower ones. Stored: it must
  // never change.
  std::uint64_t value = 0xCBF29CE484222325ULL ^ static_cast<std::uint64_t>(queue);
  value *= 0x100000001B3ULL;
  for (const char c : id) {
    value ^= static_cast<unsigned char>(c);
    value *= 0x100000001B3ULL;
  }
  value ^= value >> 33U;
  value *= 0xFF51AFD7ED558CCDULL;
  value ^= value >> 33U;
  return static_cast<std::int64_t>(value >> (64U - kHashBits));
}

std::optional<std::int64_t> IdLookup::find(std::int64_t queue, std::string_view id) {
  find_.bind(hash(queue, id), id, queue * 2);
  std::optional<std::int64_t> seq;
  if (find_.row()) {
    seq = find_.integer(0);
  }
  find_.reset();
  return seq;
}

IdIndex::IdIndex(Connection& connection, const IdIndexLimits& limits)
    : connection_(connection),
      limits_(limits),
      adding_(connection, "sluice_adding_ids"),
      add_new_(connection, "INSERT OR FAIL INTO ids_fresh SELECT hash, seq FROM sluice_adding_ids"),
      add_old_(connection, "INSERT OR FAIL INTO ids SELECT hash, seq FROM sluice_adding_ids"),
      asking_(connection, "sluice_asking_ids"),
      known_(connection,
             "SELECT a.hash FROM sluice_asking_ids AS a CROSS JOIN ids_fresh AS n ON n.hash = a.hash UNION ALL "
             "SELECT a.hash FROM sluice_asking_ids AS a CROSS JOIN ids AS o ON o.hash = a.hash"),
      oldest_(connection, "SELECT min(seq) FROM messages"),
      behind_new_(connection, "SELECT hash FROM ids_fresh WHERE hash > ?1 ORDER BY hash LIMIT 1 OFFSET ?2"),
      behind_old_(connection, "SELECT hash FROM ids WHERE hash > ?1 ORDER BY hash LIMIT 1 OFFSET ?2"),
      keep_(connection,
            "INSERT OR IGNORE INTO ids SELECT hash, seq FROM ids_fresh WHERE hash >= ?1 AND hash < ?2 AND seq >= ?3 "
            "ORDER BY hash, seq"),
      drop_new_(connection, "DELETE FROM ids_fresh WHERE hash >= ?1 AND hash < ?2"),
      drop_old_(connection,
                "DELETE FROM ids WHERE hash >= ?1 AND hash < ?2 AND (seq < ?3 OR NOT EXISTS "
                "(SELECT 1 FROM messages AS m WHERE m.seq = ids.seq))") {}

/// Entries that `ids_fresh` may hold: as many as make an entry write the fewest pages. In `ids_fresh` that is a share
/// of all its pages, or one where a batch has fewer entries than that; in `ids`, where those of one page come together
/// when they are moved, the fewer the more of them were waiting. Between the two the geometric mean is best, where it
/// saves enough: large batches write few pages anyway.
std::int64_t IdIndex::most_fresh(std::int64_t old_ids) const {
  constexpr double kOnPage = 180;
  // As much work as moving an entry that need not have been: its message would have been gone by then.
  constexpr double kMove = 0.25;
  const auto batch = static_cast<double>(std::max<std::int64_t>(1, usual_));
  const auto old = static_cast<double>(old_ids);
  const auto pages = [batch, old](double fresh) {
    return std::min(1.0, fresh / kOnPage / batch) + old / kOnPage / fresh;
  };
  const auto most = static_cast<double>(limits_.fresh);
  const double mean =
      std::clamp(std::sqrt(old * batch), static_cast<double>(std::min(limits_.least_fresh, limits_.fresh)), most);
  return pages(mean) + kMove < pages(most) ? static_cast<std::int64_t>(mean) : limits_.fresh;
}

std::int64_t IdIndex::end_of_piece(Statement& behind, std::int64_t from, std::int64_t added) const {
  behind.bind(from, std::max(limits_.piece, 2 * added));
  const std::int64_t end = behind.row() ? behind.integer(0) : kHashEnd;
  behind.reset();
  return end;
}

void IdIndex::add(const NewIds& entries) {
  if (!entries.anywhere.empty()) {
    adding_.put_down(entries.anywhere, add_new_);
  }
  if (!entries.with_time.empty()) {
    adding_.put_down(entries.with_time, add_old_);
  }
  added_new_ += static_cast<std::int64_t>(entries.anywhere.size());
  added_old_ += static_cast<std::int64_t>(entries.with_time.size());
}

std::vector<std::int64_t> IdIndex::known(std::span<const std::int64_t> hashes) {
  std::vector<std::int64_t> found;
  if (hashes.empty()) {
    return found;
  }
  asking_.look_up(hashes, known_, found);
  std::sort(found.begin(), found.end());
  return found;
}

std::int64_t IdIndex::oldest() {
  oldest_.row();
  const std::int64_t seq = oldest_.integer(0);
  oldest_.reset();
  return seq;
}

void IdIndex::sweep(std::int64_t& new_ids, std::int64_t& old_ids, std::int64_t live) {
  if (live == 0 && new_ids + old_ids > limits_.clear) {
    connection_.execute("DELETE FROM ids_fresh");
    connection_.execute("DELETE FROM ids");
    new_ids = 0;
    old_ids = 0;
    added_new_ = 0;
    added_old_ = 0;
    return;
  }
  if (added_new_ > 0) {
    usual_ = usual_ == 0 ? added_new_ : usual_ + (added_new_ - usual_) / 8;
  }
  // Who only claims and settles leaves it to the next one who sends.
  if (new_ids > (added_new_ > 0 ? most_fresh(old_ids) : limits_.fresh)) {
    settle_piece(new_ids, old_ids);
  }
  if (old_ids > limits_.stale + 4 * live) {
    sweep_piece(old_ids);
  }
  added_new_ = 0;
  added_old_ = 0;
}

void IdIndex::settle_piece(std::int64_t& new_ids, std::int64_t& old_ids) {
  const std::int64_t end = end_of_piece(behind_new_, new_from_, added_new_);
  old_ids += keep_.bind(new_from_, end, oldest()).run();
  new_ids = std::max<std::int64_t>(0, new_ids - drop_new_.bind(new_from_, end).run());
  new_from_ = end >= kHashEnd ? 0 : end;
}

void IdIndex::sweep_piece(std::int64_t& old_ids) {
  const std::int64_t end = end_of_piece(behind_old_, old_from_, added_new_ + added_old_);
  old_ids = std::max<std::int64_t>(0, old_ids - drop_old_.bind(old_from_, end, oldest()).run());
  old_from_ = end >= kHashEnd ? 0 : end;
}

}  // namespace sluice::queue::sqlite
