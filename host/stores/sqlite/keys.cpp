#include "host/stores/sqlite/keys.hpp"

#include <algorithm>
#include <utility>

#include "base/guard.hpp"
#include "host/stores/sqlite/id_index.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

namespace {

// Of records, in one transaction: at the front, where most expire first, and anywhere for those that are kept less
// long.
constexpr std::int64_t kFrontPeek = 16;
constexpr std::int64_t kSweepPiece = 256;
constexpr std::int64_t kRoamPiece = 64;

}  // namespace

Keys::Keys(Connection& connection, const KeyIndexLimits& limits)
    : index_(connection, limits),
      job_find_(connection, "SELECT id FROM key_jobs WHERE queue = ?1 AND job = ?2"),
      job_insert_(connection, "INSERT INTO key_jobs (queue, job) VALUES (?1, ?2)"),
      done_find_(
          connection,
          "SELECT owner, result, until FROM key_records WHERE seq = ?1 AND job = ?2 AND key = ?3 AND until > ?4"),
      recording_(connection),
      done_insert_(connection, "INSERT OR FAIL INTO key_records SELECT * FROM recording_keys"),
      done_delete_(connection, "DELETE FROM key_records WHERE seq = ?1"),
      done_some_(connection, "SELECT seq, until FROM key_records WHERE seq > ?1 ORDER BY seq LIMIT ?2"),
      mark_write_(connection,
                  "INSERT INTO key_marks VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (hash, job, key) DO UPDATE SET "
                  "owner = excluded.owner, fence = excluded.fence, until = excluded.until "
                  "WHERE owner = excluded.owner OR until <= ?7"),
      mark_find_(connection, "SELECT owner, until FROM key_marks WHERE hash = ?1 AND job = ?2 AND key = ?3"),
      mark_release_(connection,
                    "DELETE FROM key_marks WHERE hash = ?1 AND job = ?2 AND key = ?3 AND owner = ?4 AND fence = ?5"),
      mark_drop_(connection, "DELETE FROM key_marks WHERE hash = ?1 AND job = ?2 AND key = ?3"),
      marks_expire_(connection,
                    "DELETE FROM key_marks WHERE (hash, job, key) IN "
                    "(SELECT hash, job, key FROM key_marks WHERE until <= ?1 LIMIT ?2)") {}

void Keys::begin() {
  index_.begin();
  jobs_.clear();
  recording_.list.clear();
  recorded_ = 0;
  marked_ = 0;
}

void Keys::finish() {
  if (marked_ > 0) {
    marks_expire_.bind(stored(now_), 2 * marked_ + kFrontPeek).run();
  }
  if (recorded_ > 0) {
    sweep_records();
  }
  index_.finish();
}

std::vector<KeyAnswer> Keys::claim(std::int64_t queue, std::span<const KeyClaim> claims, WallTime now) {
  now_ = now;
  struct Asked {
    std::int64_t hash;
    std::size_t claim;
    std::optional<std::int64_t> job;
  };
  std::vector<Asked> asked;
  asked.reserve(claims.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const auto job = claims[i].hold_for > Duration::zero() ? std::optional(make_job(queue, claims[i].job))
                                                           : find_job(queue, claims[i].job);
    asked.push_back({job ? IdLookup::hash(*job, claims[i].key) : 0, i, job});
  }
  std::vector<std::int64_t> hashes;
  hashes.reserve(asked.size());
  for (const Asked& one : asked) {
    hashes.push_back(one.hash);
  }
  const std::vector<std::int64_t> known = index_.known(hashes);
  std::vector<KeyAnswer> answers(claims.size());
  for (const Asked& one : asked) {
    const KeyClaim& claim = claims[one.claim];
    if (!one.job) {
      continue;
    }
    const auto done = std::binary_search(known.begin(), known.end(), one.hash)
                          ? find_done(*one.job, one.hash, claim.key, now)
                          : std::nullopt;
    if (done) {
      answers[one.claim] = {KeyState::done, done->owner, done->result, loaded(done->until), {}};
    } else if (claim.hold_for > Duration::zero()) {
      answers[one.claim] = put_mark(*one.job, one.hash, claim, now);
    }
  }
  return answers;
}

KeyAnswer Keys::put_mark(std::int64_t job, std::int64_t hash, const KeyClaim& claim, WallTime now) {
  const WallTime until = SLUICE_GUARD(key_mark_expiry) ? later(now, claim.hold_for) : kLatest;
  ++marked_;
  if (mark_write_
          .bind(hash, job, Blob{claim.key}, std::string_view(claim.owner), claim.fence, stored(until), stored(now))
          .run() == 1) {
    return {.state = KeyState::ours, .owner = claim.owner, .until = until};
  }
  mark_find_.bind(hash, job, Blob{claim.key});
  KeyAnswer answer{.state = KeyState::running};
  if (mark_find_.row()) {
    answer.owner = mark_find_.bytes(0);
    answer.until = loaded(mark_find_.integer(1));
  }
  mark_find_.reset();
  return answer;
}

void Keys::release(std::int64_t queue, std::span<const KeyClaim> claims) {
  for (const KeyClaim& claim : claims) {
    if (const auto job = find_job(queue, claim.job)) {
      mark_release_
          .bind(IdLookup::hash(*job, claim.key), *job, Blob{claim.key}, std::string_view(claim.owner), claim.fence)
          .run();
    }
  }
}

bool Keys::may_record(std::int64_t queue, const KeyRecord& record, std::string_view owner, WallTime now) {
  const auto job = record.own_id ? std::nullopt : find_job(queue, record.job);
  if (!job) {
    return true;
  }
  const std::int64_t hash = IdLookup::hash(*job, record.key);
  mark_find_.bind(hash, *job, Blob{record.key});
  const bool marked = mark_find_.row();
  const bool ours = marked && mark_find_.bytes(0) == owner;
  const bool free = !marked || ours || loaded(mark_find_.integer(1)) <= now;
  mark_find_.reset();
  if (!free) {
    return false;
  }
  // Whoever has the mark has made sure of the rest.
  const auto done = ours ? std::nullopt : find_done(*job, hash, record.key, now);
  return !done || done->owner == owner;
}

void Keys::put_record(std::int64_t queue, const KeyRecord& record, std::string_view owner, WallTime now) {
  now_ = now;
  const std::int64_t job = make_job(queue, record.job);
  const std::int64_t hash = IdLookup::hash(job, record.key);
  if (!record.own_id) {
    mark_drop_.bind(hash, job, Blob{record.key}).run();
  }
  const std::int64_t seq = index_.add(hash);
  const bool named = owner != record.key;
  recording_.list.push_back({seq, job, stored(later(now, record.ttl)), record.key,
                             named ? std::optional(owner) : std::nullopt, record.result});
  ++recorded_;
}

void Keys::Rows::column(std::size_t row, int column, ColumnValue value) const {
  const Row& at = list[row];
  switch (column) {
    case 0:
      return value.set(at.seq);
    case 1:
      return value.set(at.job);
    case 2:
      return value.set(at.until);
    case 3:
      return value.set(Blob{at.key});
    case 4:
      return value.set(at.owner);
    default:
      if (!at.result.empty()) {
        value.set(Blob{at.result});
      }
  }
}

void Keys::flush_records() {
  if (!recording_.list.empty()) {
    done_insert_.run();
    recording_.list.clear();
  }
}

void Keys::back_to(const Mark& mark) {
  recording_.list.clear();
  index_.back_to(mark.index);
  jobs_.clear();
  recorded_ = mark.recorded;
}

bool Keys::forget(std::int64_t queue, const std::string& job, const std::string& key, WallTime now) {
  now_ = now;
  const auto number = find_job(queue, job);
  if (!number) {
    return false;
  }
  const std::int64_t hash = IdLookup::hash(*number, key);
  bool found = false;
  mark_find_.bind(hash, *number, Blob{key});
  found = mark_find_.row() && loaded(mark_find_.integer(1)) > now;
  mark_find_.reset();
  mark_drop_.bind(hash, *number, Blob{key}).run();
  // There may be more than one: of a message that was done again.
  while (const auto done = find_done(*number, hash, key, now)) {
    if (done_delete_.bind(done->seq).run() == 0) {
      break;
    }
    index_.removed(1);
    found = true;
  }
  return found;
}

std::optional<std::int64_t> Keys::find_job(std::int64_t queue, const std::string& job) {
  for (const KnownJob& known : jobs_) {
    if (known.queue == queue && known.name == job) {
      return known.number;
    }
  }
  job_find_.bind(queue, std::string_view(job));
  std::optional<std::int64_t> number;
  if (job_find_.row()) {
    number = job_find_.integer(0);
    jobs_.push_back({queue, job, *number});
  }
  job_find_.reset();
  return number;
}

std::int64_t Keys::make_job(std::int64_t queue, const std::string& job) {
  if (const auto number = find_job(queue, job)) {
    return *number;
  }
  // Not remembered yet: a savepoint may take it back.
  job_insert_.bind(queue, std::string_view(job)).run();
  job_find_.bind(queue, std::string_view(job));
  const std::int64_t number = job_find_.row() ? job_find_.integer(0) : 0;
  job_find_.reset();
  return number;
}

std::optional<Keys::Done> Keys::find_done(std::int64_t job, std::int64_t hash, std::string_view key, WallTime now) {
  flush_records();
  index_.find(hash, seqs_);
  std::optional<Done> youngest;
  for (const std::int64_t seq : seqs_) {
    if (youngest && seq <= youngest->seq) {
      continue;
    }
    done_find_.bind(seq, job, Blob{key}, stored(now));
    if (done_find_.row()) {
      youngest = Done{seq, std::string(done_find_.is_null(0) ? key : done_find_.bytes(0)),
                      std::string(done_find_.bytes(1)), done_find_.integer(2)};
    }
    done_find_.reset();
  }
  return youngest;
}

void Keys::sweep_records() {
  std::int64_t front = 0;
  if (sweep_some(front, kFrontPeek) > 0) {
    sweep_some(front, 2 * recorded_ + kSweepPiece);
  }
  sweep_some(roam_from_, recorded_ / 4 + kRoamPiece);
}

std::int64_t Keys::sweep_some(std::int64_t& from, std::int64_t count) {
  std::vector<std::int64_t> expired;
  std::int64_t seen = 0;
  done_some_.bind(from, count);
  while (done_some_.row()) {
    ++seen;
    from = done_some_.integer(0);
    if (loaded(done_some_.integer(1)) <= now_) {
      expired.push_back(from);
    }
  }
  done_some_.reset();
  for (const std::int64_t seq : expired) {
    done_delete_.bind(seq).run();
  }
  if (seen < count) {
    from = 0;
  }
  const auto gone = static_cast<std::int64_t>(expired.size());
  if (gone > 0) {
    index_.removed(gone);
  }
  return gone;
}

}  // namespace sluice::queue::sqlite
