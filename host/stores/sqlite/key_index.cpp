#include "host/stores/sqlite/key_index.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "host/stores/sqlite/key_batch.hpp"

namespace sluice::queue::sqlite {

namespace {

// Of the tail's beginning, when nothing of it counts: after all that is in runs.
constexpr std::int64_t kForgotten = std::numeric_limits<std::int64_t>::max();
// Entries are learnt in pieces larger than those that are written, by so many times: they are only read.
constexpr std::int64_t kLearnPieces = 16;
// An entry is merged a few times, until it is in a run of the largest size: so often as many as were added are merged.
constexpr std::int64_t kMergeRate = 8;

}  // namespace

KeyIndex::KeyIndex(Connection& connection, const KeyIndexLimits& limits)
    : connection_(connection),
      limits_(limits),
      runs_(connection),
      tail_batches_(connection, "SELECT seq, job, content FROM sluice_key_batches WHERE seq > ?1"),
      oldest_(connection, "SELECT min(seq) FROM sluice_key_batches"),
      counters_read_(connection, "SELECT next_seq, indexed, records, stamp FROM sluice_key_counters"),
      counters_write_(connection,
                      "UPDATE sluice_key_counters SET next_seq = ?1, indexed = ?2, records = ?3, stamp = ?4") {}

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
  records_ = counters_read_.integer(2);
  const std::int64_t stamp = counters_read_.integer(3);
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
  runs_.load();
  for (const IdEntry& entry : last_) {
    tail_.erase(entry);
  }
  if (indexed_ < tail_from_) {
    tail_.clear();
    true_to_ = 0;
    tail_from_ = indexed_;
  }
  if (indexed_ >= true_to_) {
    // Others have put records into runs that this process has never seen.
    learnt_to_ = 0;
  }
  forget_indexed();
  tail_batches_.bind(std::max(indexed_, true_to_ - 1));
  while (tail_batches_.row()) {
    const std::int64_t seq = tail_batches_.integer(0);
    const std::int64_t job = tail_batches_.integer(1);
    KeyBatchReader batch(tail_batches_.bytes(2));
    while (const auto record = batch.next()) {
      remember({key_hash(job, record->key), seq});
    }
  }
  tail_batches_.reset();
}

void KeyIndex::forget_indexed() {
  if (indexed_ > tail_from_) {
    tail_.erase_to(indexed_);
    tail_from_ = indexed_;
  }
}

std::int64_t KeyIndex::new_batch() {
  sync();
  return next_seq_++;
}

void KeyIndex::add(std::int64_t hash, std::int64_t seq) {
  remember({hash, seq});
  added_.push_back({hash, seq});
  ++records_;
  changed_ = true;
}

void KeyIndex::remember(const IdEntry& entry) {
  tail_.add(entry);
  filter_.add(entry.hash);
}

void KeyIndex::learn_some(std::size_t asked) {
  const std::int64_t entries = runs_.entries();
  if (filter_.full()) {
    // Room for three times as many more: so each is learnt anew a third of a time.
    filter_.reset(4 * (static_cast<std::size_t>(entries) + tail_.size()));
    tail_.all([this](const IdEntry& entry) { filter_.add(entry.hash); });
    learnt_to_ = 0;
  }
  if (entries == 0) {
    learnt_to_ = kHashEnd;
  }
  if (learnt_to_ == kHashEnd) {
    return;
  }
  const std::int64_t piece = std::max(kLearnPieces * limits_.piece, 2 * static_cast<std::int64_t>(asked));
  const std::int64_t end = std::min(kHashEnd, learnt_to_ + hash_range_width(entries, piece));
  runs_.hashes(learnt_to_, end, [this](std::int64_t hash) { filter_.add(hash); });
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
  if (may_find(hash)) {
    tail_.each(hash, [&seqs](std::int64_t seq) { seqs.push_back(seq); });
    runs_.find(hash, seqs);
  }
}

void KeyIndex::prepare(std::span<const std::int64_t> hashes) {
  sync();
  learn_some(hashes.size());
  for (const std::int64_t hash : hashes) {
    filter_.prefetch(hash);
  }
}

void KeyIndex::finish() {
  if (!synced_ || !changed_) {
    return;
  }
  write_tail();
  tidy_up();
  stamp_ = static_cast<std::int64_t>(random_.next());
  counters_write_.bind(next_seq_, indexed_, records_, stamp_).run();
}

std::int64_t KeyIndex::oldest() {
  oldest_.row();
  // Where there is none, all that there were are gone.
  const std::int64_t oldest = oldest_.optional_integer(0).value_or(next_seq_);
  oldest_.reset();
  return oldest;
}

void KeyIndex::write_tail() {
  if (tail_.size() <= limits_.tail) {
    return;
  }
  writing_.clear();
  tail_.all([this, from = oldest()](const IdEntry& entry) {
    if (entry.seq >= from) {
      writing_.push_back(entry);
    }
  });
  indexed_ = next_seq_ - 1;
  if (!writing_.empty()) {
    runs_.write(writing_, indexed_);
  }
  forget_indexed();
}

void KeyIndex::tidy_up() {
  const auto added = static_cast<std::int64_t>(added_.size());
  runs_.merge_some({.oldest = oldest(),
                    .piece = std::max(limits_.piece, kMergeRate * added),
                    .sweep = runs_.entries() > limits_.stale + 4 * records_});
}

}  // namespace sluice::queue::sqlite
