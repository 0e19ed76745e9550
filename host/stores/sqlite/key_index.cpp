#include "host/stores/sqlite/key_index.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "host/stores/sqlite/id_index.hpp"

namespace sluice::queue::sqlite {

namespace {

constexpr std::int64_t kHashEnd = std::int64_t{1} << 48;
// Of the tail's beginning, when nothing of it counts: after all that is in the table.
constexpr std::int64_t kForgotten = std::numeric_limits<std::int64_t>::max();

}  // namespace

KeyIndex::KeyIndex(Connection& connection, const KeyIndexLimits& limits)
    : connection_(connection),
      limits_(limits),
      adding_(connection, "adding_key_hashes"),
      add_(connection, "INSERT OR IGNORE INTO key_hashes SELECT hash, seq FROM adding_key_hashes"),
      asking_(connection, "asking_key_hashes"),
      known_(connection, "SELECT a.hash FROM asking_key_hashes AS a CROSS JOIN key_hashes AS o ON o.hash = a.hash"),
      find_(connection, "SELECT seq FROM key_hashes WHERE hash = ?1"),
      some_(connection, "SELECT hash FROM key_hashes WHERE hash >= ?1 AND hash < ?2"),
      row_(connection, "SELECT job, key FROM key_records WHERE seq = ?1"),
      tail_rows_(connection, "SELECT seq, job, key FROM key_records WHERE seq > ?1"),
      oldest_(connection, "SELECT min(seq) FROM key_records"),
      drop_(connection,
            "DELETE FROM key_hashes WHERE hash >= ?1 AND hash < ?2 AND NOT EXISTS "
            "(SELECT 1 FROM key_records AS r WHERE r.seq = key_hashes.seq)"),
      counters_read_(connection, "SELECT next_seq, indexed, settled, records, stamp FROM key_counters"),
      counters_write_(connection,
                      "UPDATE key_counters SET next_seq = ?1, indexed = ?2, settled = ?3, records = ?4, stamp = ?5") {}

void KeyIndex::begin() {
  if (!added_.empty()) {
    last_ = std::move(added_);
  }
  added_.clear();
  synced_ = false;
  changed_ = false;
}

void KeyIndex::sync() {
  if (synced_) {
    return;
  }
  counters_read_.row();
  next_seq_ = counters_read_.integer(0);
  indexed_ = counters_read_.integer(1);
  settled_ = counters_read_.integer(2);
  records_ = counters_read_.integer(3);
  const std::int64_t stamp = counters_read_.integer(4);
  counters_read_.reset();
  if (stamp != stamp_ || true_to_ == 0) {
    catch_up();
    stamp_ = stamp;
  }
  true_to_ = next_seq_;
  last_.clear();
  synced_ = true;
  if (connection_.failed()) {
    // What was read is a part at best: the next one begins anew.
    true_to_ = 0;
    tail_from_ = kForgotten;
  }
}

/// Somebody else has written since, or the last transaction did not become true, or both.
void KeyIndex::catch_up() {
  if (indexed_ < tail_from_) {
    writing_.clear();
  } else if (!last_became_true()) {
    // What it wrote to the table is not there either; and the numbers that it gave out may be another's by now.
    written_ = written_before_;
    if (writing_to_ >= true_to_) {
      writing_.clear();
    }
  }
  for (const IdEntry& entry : last_) {
    tail_.erase(entry);
  }
  if (indexed_ < tail_from_) {
    tail_.clear();
    true_to_ = 0;
    tail_from_ = indexed_;
  }
  if (indexed_ >= true_to_) {
    // Others have put records into the table that this process has never seen.
    learnt_to_ = 0;
  }
  forget_indexed();
  tail_rows_.bind(std::max(indexed_, true_to_ - 1));
  while (tail_rows_.row()) {
    remember({IdLookup::hash(tail_rows_.integer(1), tail_rows_.bytes(2)), tail_rows_.integer(0)});
  }
  tail_rows_.reset();
}

bool KeyIndex::last_became_true() {
  if (last_.empty()) {
    return true;
  }
  row_.bind(last_.back().seq);
  const bool there = row_.row() && IdLookup::hash(row_.integer(0), row_.bytes(1)) == last_.back().hash;
  row_.reset();
  return there;
}

void KeyIndex::forget_indexed() {
  if (indexed_ > tail_from_) {
    tail_.erase_to(indexed_);
    tail_from_ = indexed_;
  }
}

std::int64_t KeyIndex::add(std::int64_t hash) {
  sync();
  const std::int64_t seq = next_seq_++;
  remember({hash, seq});
  added_.push_back({hash, seq});
  ++records_;
  changed_ = true;
  return seq;
}

void KeyIndex::remember(const IdEntry& entry) {
  tail_.add(entry);
  filter_.add(entry.hash);
}

void KeyIndex::learn_some(std::size_t entries) {
  if (filter_.full()) {
    // Room for three times as many more: so each is learnt anew a third of a time.
    filter_.reset(4 * (static_cast<std::size_t>(settled_) + tail_.size()));
    tail_.all([this](const IdEntry& entry) { filter_.add(entry.hash); });
    learnt_to_ = 0;
  }
  if (settled_ == 0) {
    learnt_to_ = kHashEnd;
  }
  if (learnt_to_ == kHashEnd) {
    return;
  }
  const std::int64_t piece = std::max(limits_.piece, 2 * static_cast<std::int64_t>(entries));
  const std::int64_t width = std::max<std::int64_t>(1, kHashEnd / std::max<std::int64_t>(1, settled_ / piece));
  const std::int64_t end = std::min(kHashEnd, learnt_to_ + width);
  some_.bind(learnt_to_, end);
  while (some_.row()) {
    filter_.add(some_.integer(0));
  }
  some_.reset();
  if (!connection_.failed()) {
    learnt_to_ = end;
  }
}

void KeyIndex::back_to(const Mark& mark) {
  // A number that was given out meanwhile stays used.
  for (; added_.size() > mark.added; added_.pop_back()) {
    tail_.erase(added_.back());
  }
  if (mark.synced) {
    records_ = mark.records;
  } else {
    synced_ = false;
    changed_ = false;
  }
}

void KeyIndex::find(std::int64_t hash, std::vector<std::int64_t>& seqs) {
  sync();
  seqs.clear();
  tail_.each(hash, [&seqs](std::int64_t seq) { seqs.push_back(seq); });
  if (settled_ == 0) {
    return;
  }
  find_.bind(hash);
  while (find_.row()) {
    seqs.push_back(find_.integer(0));
  }
  find_.reset();
}

std::vector<std::int64_t> KeyIndex::known(std::span<const std::int64_t> hashes) {
  sync();
  learn_some(hashes.size());
  std::vector<std::int64_t> found;
  asked_.clear();
  for (const std::int64_t hash : hashes) {
    if (hash < learnt_to_ && !filter_.may_have(hash)) {
      continue;
    }
    (tail_.contains(hash) ? found : asked_).push_back(hash);
  }
  if (settled_ > 0 && !asked_.empty()) {
    // In the table, neighbours by hash lie on one page.
    std::sort(asked_.begin(), asked_.end());
    asking_.look_up(asked_, known_, found);
  }
  std::sort(found.begin(), found.end());
  return found;
}

void KeyIndex::finish() {
  if (!synced_ || !changed_) {
    return;
  }
  if (!added_.empty()) {
    // By what it has added, a transaction is known to have become true.
    written_before_ = written_;
    write_some();
  }
  sweep_some();
  stamp_ = static_cast<std::int64_t>(random_.next());
  counters_write_.bind(next_seq_, indexed_, settled_, records_, stamp_).run();
}

void KeyIndex::write_some() {
  if (writing_.empty()) {
    if (tail_.size() <= limits_.tail) {
      return;
    }
    oldest_.row();
    const std::int64_t oldest = oldest_.integer(0);
    oldest_.reset();
    writing_to_ = next_seq_ - 1;
    tail_.all([this, oldest](const IdEntry& entry) {
      if (entry.seq >= oldest) {
        writing_.push_back(entry);
      }
    });
    written_ = 0;
    std::sort(writing_.begin(), writing_.end(),
              [](const IdEntry& a, const IdEntry& b) { return std::pair(a.hash, a.seq) < std::pair(b.hash, b.seq); });
  }
  const auto piece = static_cast<std::size_t>(std::max<std::int64_t>(limits_.piece, 2 * std::int64_t(added_.size())));
  const std::size_t count = std::min(piece, writing_.size() - written_);
  settled_ += adding_.put_down(std::span(writing_).subspan(written_, count), add_);
  written_ += count;
  if (written_ == writing_.size()) {
    indexed_ = std::max(indexed_, writing_to_);
    writing_.clear();
    forget_indexed();
  }
}

void KeyIndex::sweep_some() {
  if (settled_ <= limits_.stale + 4 * records_) {
    return;
  }
  const std::int64_t piece = std::max<std::int64_t>(limits_.piece, 2 * std::int64_t(added_.size()));
  const std::int64_t end =
      sweep_from_ + std::max<std::int64_t>(1, kHashEnd / std::max<std::int64_t>(1, settled_ / piece));
  settled_ = std::max<std::int64_t>(0, settled_ - drop_.bind(sweep_from_, end).run());
  sweep_from_ = end >= kHashEnd ? 0 : end;
}

}  // namespace sluice::queue::sqlite
