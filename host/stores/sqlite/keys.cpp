#include "host/stores/sqlite/keys.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include "base/guard.hpp"
#include "base/timestamp.hpp"
#include "host/queue/visibility.hpp"
#include "host/stores/sqlite/key_batch.hpp"
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
      job_find_(connection, "SELECT id FROM sluice_key_jobs WHERE queue = ?1 AND job = ?2"),
      job_insert_(connection, "INSERT INTO sluice_key_jobs (queue, job) VALUES (?1, ?2)"),
      done_find_(connection,
                 "SELECT content, until, records FROM sluice_key_batches WHERE seq = ?1 AND job = ?2 AND until > ?3"),
      done_insert_(connection, "INSERT OR FAIL INTO sluice_key_batches VALUES (?1, ?2, ?3, ?4, ?5)"),
      done_delete_(connection, "DELETE FROM sluice_key_batches WHERE seq = ?1"),
      done_change_(connection, "UPDATE sluice_key_batches SET content = ?2, records = ?3 WHERE seq = ?1"),
      done_some_(connection, "SELECT seq, until, records FROM sluice_key_batches WHERE seq > ?1 ORDER BY seq"),
      mark_write_(
          connection,
          "INSERT INTO sluice_key_marks VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (hash, job, key) DO UPDATE SET "
          "owner = excluded.owner, fence = excluded.fence, until = excluded.until "
          "WHERE owner = excluded.owner OR until <= ?7"),
      mark_find_(connection, "SELECT owner, until FROM sluice_key_marks WHERE hash = ?1 AND job = ?2 AND key = ?3"),
      mark_release_(
          connection,
          "DELETE FROM sluice_key_marks WHERE hash = ?1 AND job = ?2 AND key = ?3 AND owner = ?4 AND fence = ?5"),
      mark_drop_(connection, "DELETE FROM sluice_key_marks WHERE hash = ?1 AND job = ?2 AND key = ?3"),
      marks_expire_(connection,
                    "DELETE FROM sluice_key_marks WHERE (hash, job, key) IN "
                    "(SELECT hash, job, key FROM sluice_key_marks WHERE until <= ?1 LIMIT ?2)") {}

void Keys::begin() {
  index_.begin();
  jobs_.clear();
  batch_.count = 0;
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
  // Of each that its job may have: for a job of which nothing was ever written there is nothing to find.
  std::vector<std::optional<std::int64_t>> jobs;
  jobs.reserve(claims.size());
  hashes_.clear();
  for (const KeyClaim& claim : claims) {
    jobs.push_back(claim.hold_for > Duration::zero() ? std::optional(make_job(queue, claim.job))
                                                     : find_job(queue, claim.job));
    hashes_.push_back(jobs.back() ? key_hash(*jobs.back(), claim.key) : 0);
  }
  index_.prepare(hashes_);
  std::vector<KeyAnswer> answers(claims.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const KeyClaim& claim = claims[i];
    if (!jobs[i]) {
      continue;
    }
    const std::int64_t hash = hashes_[i];
    if (auto done = answer_of_done(*jobs[i], hash, claim.key, now)) {
      answers[i] = std::move(*done);
    } else if (claim.hold_for > Duration::zero()) {
      answers[i] = put_mark(*jobs[i], hash, claim, now);
    }
  }
  return answers;
}

void Keys::look_up(std::int64_t queue, const std::string& job, std::span<Delivery> deliveries, WallTime now) {
  if (deliveries.empty()) {
    return;
  }
  now_ = now;
  const auto number = find_job(queue, job);
  hashes_.clear();
  if (number) {
    for (const Delivery& delivery : deliveries) {
      hashes_.push_back(key_hash(*number, delivery.message.id));
    }
    index_.prepare(hashes_);
  }
  for (std::size_t i = 0; i < deliveries.size(); ++i) {
    OwnIdFound& found = deliveries[i].own_id;
    found = {.asked = true};
    if (auto done = number ? answer_of_done(*number, hashes_[i], deliveries[i].message.id, now) : std::nullopt) {
      found.done = std::make_shared<const KeyAnswer>(std::move(*done));
    }
  }
}

std::optional<KeyAnswer> Keys::answer_of_done(std::int64_t job, std::int64_t hash, std::string_view key, WallTime now) {
  auto done = index_.may_find(hash) ? find_done(job, hash, key, now) : std::nullopt;
  if (!done) {
    return std::nullopt;
  }
  return KeyAnswer{KeyState::done, std::move(done->owner), std::move(done->result), loaded(done->until), {}};
}

KeyAnswer Keys::put_mark(std::int64_t job, std::int64_t hash, const KeyClaim& claim, WallTime now) {
  const WallTime until = SLUICE_GUARD(key_mark_expiry) ? later(now, claim.hold_for) : kEndOfTime;
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
      mark_release_.bind(key_hash(*job, claim.key), *job, Blob{claim.key}, std::string_view(claim.owner), claim.fence)
          .run();
    }
  }
}

bool Keys::may_record(std::int64_t queue, const KeyRecord& record, std::string_view owner, WallTime now) {
  const auto job = record.own_id ? std::nullopt : find_job(queue, record.job);
  if (!job) {
    return true;
  }
  const std::int64_t hash = key_hash(*job, record.key);
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
  const std::string_view key = record.key_of(owner);
  const std::int64_t hash = key_hash(job, key);
  if (!record.own_id) {
    mark_drop_.bind(hash, job, Blob{key}).run();
  }
  const std::int64_t until = stored(later(now, record.ttl));
  const bool fits = batch_.count > 0 && batch_.job == job && batch_.until == until &&
                    key_fits(batch_.content, key, owner, record.result);
  if (!fits) {
    flush_records();
    batch_.seq = index_.new_batch();
    batch_.job = job;
    batch_.until = until;
    batch_.content.clear();
  }
  index_.add(hash, batch_.seq);
  append_key(batch_.content, key, owner, record.result);
  ++batch_.count;
  ++recorded_;
}

void Keys::flush_records() {
  if (batch_.count > 0) {
    done_insert_.bind(batch_.seq, batch_.job, batch_.until, batch_.count, Blob{batch_.content}).run();
    batch_.count = 0;
  }
}

void Keys::back_to(const Mark& mark) {
  batch_.count = 0;
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
  const std::int64_t hash = key_hash(*number, key);
  bool found = false;
  mark_find_.bind(hash, *number, Blob{key});
  found = mark_find_.row() && loaded(mark_find_.integer(1)) > now;
  mark_find_.reset();
  mark_drop_.bind(hash, *number, Blob{key}).run();
  // There may be more than one: of a message that was done again.
  while (const auto done = find_done(*number, hash, key, now, Want::removal)) {
    const std::int64_t changed = done->others == 0 ? done_delete_.bind(done->seq).run()
                                                   : done_change_.bind(done->seq, Blob{done->rest}, done->others).run();
    if (changed == 0) {
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

std::optional<Keys::Done> Keys::find_done(std::int64_t job, std::int64_t hash, std::string_view key, WallTime now,
                                          Want want) {
  flush_records();
  index_.find(hash, seqs_);
  // The youngest first: there is mostly no other.
  std::sort(seqs_.begin(), seqs_.end(), std::greater<>());
  std::optional<Done> found;
  for (std::size_t i = 0; i < seqs_.size() && !found; ++i) {
    done_find_.bind(seqs_[i], job, stored(now));
    if (done_find_.row()) {
      const std::string_view batch = done_find_.bytes(0);
      if (const auto record = find_in_batch(batch, key)) {
        found = Done{.seq = seqs_[i],
                     .owner = std::string(record->owner),
                     .result = std::string(record->result),
                     .until = done_find_.integer(1),
                     .others = done_find_.integer(2) - 1,
                     .rest = want == Want::removal ? without_key(batch, *record) : std::string()};
      }
    }
    done_find_.reset();
  }
  return found;
}

void Keys::sweep_records() {
  std::int64_t front = 0;
  if (sweep_some(front, kFrontPeek)) {
    sweep_some(front, 2 * recorded_ + kSweepPiece);
  }
  sweep_some(roam_from_, recorded_ / 4 + kRoamPiece);
}

bool Keys::sweep_some(std::int64_t& from, std::int64_t count) {
  expired_.clear();
  std::int64_t gone = 0;
  std::int64_t seen = 0;
  done_some_.bind(from);
  bool more = done_some_.row();
  for (; more && seen < count; more = done_some_.row()) {
    from = done_some_.integer(0);
    const std::int64_t records = std::max<std::int64_t>(1, done_some_.integer(2));
    seen += records;
    if (loaded(done_some_.integer(1)) <= now_) {
      expired_.push_back(from);
      gone += records;
    }
  }
  done_some_.reset();
  for (const std::int64_t seq : expired_) {
    done_delete_.bind(seq).run();
  }
  if (!more) {
    from = 0;
  }
  if (gone > 0) {
    index_.removed(gone);
  }
  return gone > 0;
}

}  // namespace sluice::queue::sqlite
