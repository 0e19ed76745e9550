#include "host/stores/sqlite/key_runs.hpp"

#include <algorithm>
#include <string_view>

namespace sluice::queue::sqlite {

namespace {

constexpr std::int64_t kMostBits = 20;
// A page has between half as many and these, on the average: then hardly one of them is larger than a page of the file.
constexpr std::int64_t kOnPage = 256;
// Runs of about one size, until they are merged.
constexpr std::size_t kMostAlike = 4;
// An entry is its hash and its seq, the lowest byte first, each of as many bytes.
constexpr std::size_t kNumberBytes = 6;
constexpr std::size_t kEntryBytes = 2 * kNumberBytes;

void store_number(char* bytes, std::int64_t number) {
  const auto value = static_cast<std::uint64_t>(number);
  for (unsigned i = 0; i < kNumberBytes; ++i) {
    bytes[i] = static_cast<char>(value >> (8 * i));
  }
}

std::int64_t load_number(const char* bytes) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < kNumberBytes; ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return static_cast<std::int64_t>(value);
}

/// Calls `use` with each entry of a page.
template <typename Use>
void each_entry(std::string_view page, Use use) {
  for (std::size_t at = 0; at + kEntryBytes <= page.size(); at += kEntryBytes) {
    use(IdEntry{load_number(page.data() + at), load_number(page.data() + at + kNumberBytes)});
  }
}

std::int64_t bits_for(std::int64_t entries) {
  std::int64_t bits = 0;
  while (bits < kMostBits && (entries >> bits) > kOnPage) {
    ++bits;
  }
  return bits;
}

}  // namespace

std::int64_t KeyRuns::Run::id_of(std::int64_t hash) const { return (number << kMostBits) | page_of(hash); }

KeyRuns::KeyRuns(Connection& connection)
    : runs_read_(
          connection,
          "SELECT run, bits, entries, last, from_run, to_run, merged_to, sweeps FROM sluice_key_runs ORDER BY run"),
      run_write_(connection, "INSERT OR REPLACE INTO sluice_key_runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"),
      run_delete_(connection, "DELETE FROM sluice_key_runs WHERE run = ?1"),
      page_(connection, "SELECT entries FROM sluice_key_pages WHERE id = ?1"),
      pages_(connection, "SELECT entries FROM sluice_key_pages WHERE id BETWEEN ?1 AND ?2"),
      page_insert_(connection, "INSERT OR FAIL INTO sluice_key_pages VALUES (?1, ?2)"),
      pages_delete_(connection, "DELETE FROM sluice_key_pages WHERE id BETWEEN ?1 AND ?2"),
      batch_(connection, "SELECT 1 FROM sluice_key_batches WHERE seq = ?1") {}

void KeyRuns::load() {
  runs_.clear();
  while (runs_read_.row()) {
    const Run run{runs_read_.integer(0), runs_read_.integer(1), runs_read_.integer(2), runs_read_.integer(3),
                  runs_read_.integer(4), runs_read_.integer(5), runs_read_.integer(6), runs_read_.integer(7) != 0};
    // No other is ever written; a damaged file must not lead anybody astray.
    if (run.bits >= 0 && run.bits <= kMostBits) {
      runs_.push_back(run);
    }
  }
  runs_read_.reset();
}

std::int64_t KeyRuns::entries() const {
  std::int64_t all = 0;
  for (const Run& run : runs_) {
    all += run.entries;
  }
  return all;
}

/// Whether the run has the page of this hash: of a merge, either its sources have it or what they become.
bool KeyRuns::has(const Run& run, std::int64_t hash) const {
  return hash < run.merged_to && std::none_of(runs_.begin(), runs_.end(), [&run, hash](const Run& target) {
           return target.is_source(run) && hash < target.merged_to;
         });
}

void KeyRuns::find(std::int64_t hash, std::vector<std::int64_t>& seqs) {
  for (const Run& run : runs_) {
    if (!has(run, hash)) {
      continue;
    }
    page_.bind(run.id_of(hash));
    if (page_.row()) {
      each_entry(page_.bytes(0), [hash, &seqs](const IdEntry& entry) {
        if (entry.hash == hash) {
          seqs.push_back(entry.seq);
        }
      });
    }
    page_.reset();
  }
}

void KeyRuns::gather(const Run& run, std::int64_t first_hash, std::int64_t last_hash) {
  pages_.bind(run.id_of(first_hash), run.id_of(last_hash));
  while (pages_.row()) {
    each_entry(pages_.bytes(0), [this](const IdEntry& entry) { gathered_.push_back(entry); });
  }
  pages_.reset();
}

/// Of `gathered_`, those whose batch is known to be gone; in a sweep, all whose batch is.
void KeyRuns::drop_dead(const Tidy& tidy, bool sweeps) {
  std::erase_if(gathered_, [this, &tidy, sweeps](const IdEntry& entry) {
    if (entry.seq < tidy.oldest || !sweeps) {
      return entry.seq < tidy.oldest;
    }
    batch_.bind(entry.seq);
    const bool there = batch_.row();
    batch_.reset();
    return !there;
  });
}

void KeyRuns::put_pages(const Run& run, std::int64_t first_page, std::int64_t pages, std::span<const IdEntry> entries) {
  const auto place = [&run, first_page](const IdEntry& entry) {
    return static_cast<std::size_t>(run.page_of(entry.hash) - first_page);
  };
  // How many each page has; then where each begins; then, as they are put down, where each ends.
  ends_.assign(static_cast<std::size_t>(pages) + 1, 0);
  for (const IdEntry& entry : entries) {
    ++ends_[place(entry) + 1];
  }
  for (std::size_t i = 1; i < ends_.size(); ++i) {
    ends_[i] += ends_[i - 1];
  }
  bytes_.resize(entries.size() * kEntryBytes);
  for (const IdEntry& entry : entries) {
    char* const to = bytes_.data() + ends_[place(entry)]++ * kEntryBytes;
    store_number(to, entry.hash);
    store_number(to + kNumberBytes, entry.seq);
  }
  std::size_t from = 0;
  for (std::int64_t i = 0; i < pages; ++i) {
    const std::size_t end = ends_[static_cast<std::size_t>(i)];
    if (end > from) {
      const auto page = std::string_view(bytes_).substr(from * kEntryBytes, (end - from) * kEntryBytes);
      page_insert_.bind((run.number << kMostBits) | (first_page + i), Blob{page}).run();
    }
    from = end;
  }
}

void KeyRuns::write(std::span<const IdEntry> entries, std::int64_t last) {
  const auto count = static_cast<std::int64_t>(entries.size());
  const std::int64_t number = runs_.empty() ? 1 : runs_.back().number + 1;
  const Run run{number, bits_for(count), count, last, 0, 0, kHashEnd, false};
  put_pages(run, 0, std::int64_t{1} << run.bits, entries);
  runs_.push_back(run);
  save(run);
}

void KeyRuns::save(const Run& run) {
  run_write_
      .bind(run.number, run.bits, run.entries, run.last, run.from, run.to, run.merged_to,
            std::int64_t{run.sweeps ? 1 : 0})
      .run();
}

/// False: there is nothing to be merged.
bool KeyRuns::begin_merge(const Tidy& tidy) {
  if (runs_.empty()) {
    return false;
  }
  auto first = runs_.begin();
  auto end = runs_.end();
  if (!tidy.sweep && first->last < tidy.oldest) {
    // All of it is gone.
    end = first + 1;
  } else if (!tidy.sweep) {
    const std::int64_t most = 2 * runs_.back().entries;
    first = std::find_if(runs_.rbegin(), runs_.rend(), [most](const Run& run) { return run.entries > most; }).base();
    if (static_cast<std::size_t>(end - first) < kMostAlike) {
      return false;
    }
  }
  Run target{runs_.back().number + 1, 0, 0, 0, first->number, std::prev(end)->number + 1, 0, tidy.sweep};
  std::int64_t most = 0;
  for (auto run = first; run != end; ++run) {
    most += run->entries;
    target.last = std::max(target.last, run->last);
  }
  target.bits = bits_for(most);
  runs_.push_back(target);
  return true;
}

void KeyRuns::merge_some(const Tidy& tidy) {
  const auto merging = [this] {
    return std::find_if(runs_.begin(), runs_.end(), [](const Run& run) { return run.merging(); });
  };
  if (merging() == runs_.end() && !begin_merge(tidy)) {
    return;
  }
  Run& target = *merging();
  // As wide as the widest page: then no page lies in two pieces.
  std::int64_t bits = target.bits;
  std::int64_t left = 0;
  for (const Run& run : runs_) {
    if (target.is_source(run)) {
      bits = std::min(bits, run.bits);
      left += run.entries;
    }
  }
  const std::int64_t width = std::int64_t{1} << (kHashBits - bits);
  const std::int64_t widths_left = (kHashEnd - target.merged_to) / width;
  const std::int64_t widths =
      std::clamp<std::int64_t>(tidy.piece * widths_left / std::max<std::int64_t>(1, left), 1, widths_left);
  merge_range(target, target.merged_to, target.merged_to + widths * width, tidy);
  if (!target.merging()) {
    end_merge();
  } else {
    save(target);
  }
}

void KeyRuns::merge_range(Run& target, std::int64_t from, std::int64_t to, const Tidy& tidy) {
  gathered_.clear();
  for (Run& run : runs_) {
    if (!target.is_source(run)) {
      continue;
    }
    const std::size_t before = gathered_.size();
    gather(run, from, to - 1);
    pages_delete_.bind(run.id_of(from), run.id_of(to - 1)).run();
    run.entries -= static_cast<std::int64_t>(gathered_.size() - before);
    save(run);
  }
  drop_dead(tidy, target.sweeps);
  put_pages(target, target.page_of(from), target.page_of(to - 1) - target.page_of(from) + 1, gathered_);
  target.entries += static_cast<std::int64_t>(gathered_.size());
  target.merged_to = to;
}

/// What the last piece has made whole takes the place of its sources.
void KeyRuns::end_merge() {
  const auto whole = std::find_if(runs_.begin(), runs_.end(), [](const Run& run) { return run.to != 0; });
  const std::int64_t from = whole->from;
  const std::int64_t to = whole->to;
  whole->from = 0;
  whole->to = 0;
  save(*whole);
  std::erase_if(runs_, [this, from, to](const Run& run) {
    const bool gone = (run.number >= from && run.number < to) || (run.entries == 0 && !run.merging());
    if (gone) {
      run_delete_.bind(run.number).run();
    }
    return gone;
  });
}

}  // namespace sluice::queue::sqlite
