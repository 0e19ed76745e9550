#include "host/stores/sqlite/keys.hpp"

#include <charconv>
#include <memory>
#include <utility>

#include "base/timestamp.hpp"
#include "host/queue/message.hpp"
#include "host/stores/core/keys.hpp"
#include "host/stores/sqlite/message_record.hpp"

namespace sluice::queue::sqlite {

namespace {

// Expired ones that a transaction removes beyond twice as many as it writes: so a flood is kept up with, and nobody
// waits long for it.
constexpr std::int64_t kSweepPiece = 256;

// ?1 and ?2: queue and job; ?3: beyond which time a key counts.
constexpr const char* kStoredKey =
    "SELECT k.key, k.done, k.owner, k.until, k.result, j.job, j.id FROM sluice_key_jobs AS j CROSS JOIN sluice_keys AS "
    "k ON k.job = j.id WHERE j.queue = ?1 AND j.job = coalesce(?2, j.job) AND k.until > ?3 AND ";

/// Of key, done, owner, until and result, and the job's name where it is known. An owner who is the key itself takes no
/// room.
StoredKey stored_key(const Statement& row, std::string_view job = {}) {
  const std::string_view key = row.bytes(0);
  return {.job = std::string(job),
          .key = std::string(key),
          .owner = std::string(row.is_null(2) ? key : row.bytes(2)),
          .done = row.integer(1) != 0,
          .result = std::string(row.bytes(4)),
          .until = loaded(row.integer(3))};
}

}  // namespace

void Keys::finish() {
  if (written_ > 0) {
    expire_.bind(stored(now_), 2 * written_ + kSweepPiece).run();
  }
}

std::vector<KeyAnswer> Keys::claim(std::int64_t queue, std::span<const KeyClaim> claims, WallTime now) {
  now_ = now;
  std::vector<KeyAnswer> answers;
  answers.reserve(claims.size());
  for (const KeyClaim& one : claims) {
    // Of a job of which nothing was ever written there is nothing to find.
    const bool marks = one.hold_for > Duration::zero();
    answers.push_back(claim(marks ? std::optional(make_job(queue, one.job)) : find_job(queue, one.job), one, now));
  }
  return answers;
}

KeyAnswer Keys::claim(std::optional<std::int64_t> job, const KeyClaim& claim, WallTime now) {
  const auto found = job ? find(*job, claim.key) : std::nullopt;
  if (auto answer = core::answer_to(claim, found ? &*found : nullptr, now)) {
    return std::move(*answer);
  }
  const WallTime until = core::mark_end(claim, now);
  put_.bind(*job, Blob{claim.key}, std::int64_t{0}, stored(until), claim.fence, unless(claim.key, claim.owner),
            std::optional<Blob>())
      .run();
  ++written_;
  return {.state = KeyState::ours, .owner = claim.owner, .until = until};
}

void Keys::look_up(std::int64_t queue, const std::string& job, std::span<Delivery> deliveries, WallTime now) {
  const auto number = find_job(queue, job);
  for (Delivery& delivery : deliveries) {
    delivery.own_id = {.asked = true};
    const auto found = number ? find(*number, delivery.message.id) : std::nullopt;
    if (auto answer = core::answer_to({}, found ? &*found : nullptr, now); answer->state == KeyState::done) {
      delivery.own_id.done = std::make_shared<const KeyAnswer>(std::move(*answer));
    }
  }
}

void Keys::release(std::int64_t queue, std::span<const KeyClaim> claims) {
  for (const KeyClaim& claim : claims) {
    if (const auto job = find_job(queue, claim.job)) {
      release_.bind(*job, Blob{claim.key}, unless(claim.key, claim.owner), claim.fence).run();
    }
  }
}

bool Keys::may_record(std::int64_t queue, const KeyRecord& record, std::string_view owner, WallTime now) {
  const auto job = record.own_id ? std::nullopt : find_job(queue, record.job);
  const auto found = job ? find(*job, record.key) : std::nullopt;
  return core::may_record(found ? &*found : nullptr, owner, now);
}

void Keys::put_record(std::int64_t queue, const KeyRecord& record, std::string_view owner, WallTime now) {
  now_ = now;
  const std::string_view key = record.key_of(owner);
  const std::optional<std::string_view> other = owner == key ? std::nullopt : std::optional(owner);
  put_.bind(make_job(queue, record.job), Blob{key}, std::int64_t{1}, stored(later(now, record.ttl)), std::int64_t{0},
            other, unless_empty(record.result))
      .run();
  ++written_;
}

bool Keys::forget(std::int64_t queue, const std::string& job, const std::string& key, WallTime now) {
  const auto number = find_job(queue, job);
  const auto found = number ? find(*number, key) : std::nullopt;
  if (!found || core::is_void(*found, now)) {
    return false;
  }
  drop_.bind(*number, Blob{key}).run();
  return true;
}

std::int64_t Keys::make_job(std::int64_t queue, const std::string& job) {
  if (const auto number = find_job(queue, job)) {
    return *number;
  }
  job_insert_.bind(queue, std::string_view(job)).run();
  return connection_.last_row();
}

std::optional<StoredKey> Keys::find(std::int64_t job, std::string_view key) {
  return find_.bind(job, Blob{key}).only([this] { return stored_key(find_); });
}

// A cursor is the job's number and the last key, behind a colon.
KeyPage list_keys(Connection& connection, std::int64_t queue, const std::string& job, std::size_t limit,
                  const std::string& cursor, WallTime now) {
  std::int64_t after = -1;
  const char* const end = cursor.data() + cursor.size();
  const auto [rest, code] = std::from_chars(cursor.data(), end, after);
  const std::string_view last(rest == end ? rest : rest + 1,
                              static_cast<std::size_t>(rest == end ? 0 : end - rest - 1));
  Statement rows(connection, (std::string(kStoredKey) + "(k.job, k.key) > (?4, ?5) ORDER BY k.job, k.key").c_str());
  rows.bind(queue, unless({}, job), stored(now), after, Blob{last});
  KeyPage page;
  std::int64_t number = 0;
  while (page.keys.size() < limit && rows.row()) {
    number = rows.integer(6);
    page.keys.push_back(stored_key(rows, rows.bytes(5)));
  }
  rows.reset();
  if (page.keys.size() == limit && limit > 0) {
    page.next = std::to_string(number) + ":" + page.keys.back().key;
  }
  return page;
}

std::optional<StoredKey> find_key(Connection& connection, std::int64_t queue, const std::string& job,
                                  const std::string& key, WallTime now) {
  Statement row(connection, (std::string(kStoredKey) + "k.key = ?4").c_str());
  return row.bind(queue, std::string_view(job), stored(now), Blob{key}).only([&] { return stored_key(row, job); });
}

}  // namespace sluice::queue::sqlite
