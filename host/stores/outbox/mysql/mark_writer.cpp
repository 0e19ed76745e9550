#include "host/stores/outbox/mysql/mark_writer.hpp"

#include <map>

#include "host/stores/outbox/lease_locks.hpp"
#include "host/stores/outbox/mysql/names.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

constexpr int kTries = 4;
constexpr unsigned int kSyntaxError = 1064;

std::string microseconds(Duration wait) {
  return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(wait).count());
}

}  // namespace

Result<std::vector<MarkStatus>> MarkWriter::write(std::span<const Mark> marks, Deadline deadline,
                                                  const std::string& heartbeat) {
  if (marks.empty()) {
    return std::vector<MarkStatus>();
  }
  for (int attempt = 1;; ++attempt) {
    auto written = transaction(marks, heartbeat, deadline);
    if (written || session_.over()) {
      return written;
    }
    const bool again = may_be_tried_again(session_.fault()) && attempt < kTries;
    roll_back(deadline);
    if (!again || session_.over()) {
      return written;
    }
  }
}

Result<std::vector<MarkStatus>> MarkWriter::transaction(std::span<const Mark> marks, const std::string& heartbeat,
                                                        Deadline deadline) {
  SLUICE_PASS_ON(session_.run("START TRANSACTION", deadline));
  if (!heartbeat.empty()) {
    SLUICE_TRY(beaten, session_.run(heartbeat, deadline));
    if (*beaten == 0) {
      return name_is_gone();
    }
  }
  auto statuses = examine(marks, deadline);
  if (statuses.has_error()) {
    return statuses;
  }
  SLUICE_PASS_ON(update(marks, *statuses, deadline));
  const auto committed = session_.run("COMMIT", deadline);
  if (committed.has_error()) {
    // The server may have done it before it was gone.
    return session_.over() ? Error(ErrorCode::unknown_outcome, committed.error().message()) : committed.error();
  }
  return statuses;
}

Result<std::vector<Cells>> MarkWriter::lock_rows(const std::string& ids, Deadline deadline) {
  const std::string statement = "SELECT " + sql_.id() + "," + sql_.sent_at() + " IS NOT NULL,IFNULL(" +
                                sql_.retry_count() + ",0) FROM " + sql_.table() + " WHERE " + sql_.id() + " IN (" +
                                ids + ") FOR UPDATE";
  if (skips_locked_) {
    auto rows = session_.rows(statement + " SKIP LOCKED", deadline);
    if (rows || session_.fault().code != kSyntaxError) {
      return rows;
    }
    skips_locked_ = false;  // before MariaDB 10.6 and MySQL 8.0.1: waits as long as innodb_lock_wait_timeout says
  }
  return session_.rows(statement, deadline);
}

Result<std::vector<MarkStatus>> MarkWriter::examine(std::span<const Mark> marks, Deadline deadline) {
  std::vector<std::int64_t> ids;
  std::map<std::int64_t, std::size_t> places;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    ids.push_back(marks[i].id);
    places.emplace(marks[i].id, i);
  }
  SLUICE_TRY(locked, lock_rows(list_of(ids), deadline));
  std::vector<MarkStatus> statuses(marks.size(), MarkStatus::gone);
  for (const Cells& row : *locked) {
    const auto place = places.find(number_of(row[0]));
    if (place == places.end()) {
      continue;
    }
    const Mark& mark = marks[place->second];
    const bool sent = number_of(row[1]) != 0 && !sql_.settings().resend_sent;
    const bool changed = mark.only_if && number_of(row[2]) != static_cast<std::int64_t>(*mark.only_if);
    statuses[place->second] = sent || changed ? MarkStatus::gone : MarkStatus::written;
    places.erase(place);
  }
  if (places.empty()) {
    return statuses;
  }
  std::vector<std::int64_t> missing;
  missing.reserve(places.size());
  for (const auto& [id, place] : places) {
    missing.push_back(id);
  }
  // What is there and was not locked is somebody else's now.
  SLUICE_TRY(there, session_.rows("SELECT " + sql_.id() + " FROM " + sql_.table() + " WHERE " + sql_.id() + " IN (" +
                                      list_of(missing) + ") AND " +
                                      (sql_.settings().resend_sent ? "TRUE" : sql_.sent_at() + " IS NULL"),
                                  deadline));
  for (const Cells& row : *there) {
    statuses[places.at(number_of(row[0]))] = MarkStatus::locked;
  }
  return statuses;
}

std::string MarkWriter::sent_update(const std::string& ids) const {
  const std::string error = sql_.last_error();
  return "UPDATE " + sql_.table() + " SET " + sql_.sent_at() + "=UTC_TIMESTAMP(6)" +
         (error.empty() ? "" : "," + error + "=NULL") + " WHERE " + sql_.id() + " IN (" + ids + ")";
}

std::string MarkWriter::failed_update(const std::vector<const Mark*>& marks) const {
  std::vector<std::int64_t> ids;
  std::string counts = " SET " + sql_.retry_count() + "=CASE " + sql_.id();
  std::string times = "," + sql_.retry_at() + "=CASE " + sql_.id();
  std::string errors = "," + sql_.last_error() + "=CASE " + sql_.id();
  for (const Mark* mark : marks) {
    const std::string when = " WHEN " + std::to_string(mark->id) + " THEN ";
    ids.push_back(mark->id);
    counts += when + std::to_string(mark->retries);
    times += when + (mark->kind == MarkKind::dead
                         ? "NULL"
                         : "UTC_TIMESTAMP(6)+INTERVAL " + microseconds(mark->wait) + " MICROSECOND");
    errors += when + text_literal(mark->error);
  }
  return "UPDATE " + sql_.table() + counts + " END" + times + " END" +
         (sql_.last_error().empty() ? "" : errors + " END") + " WHERE " + sql_.id() + " IN (" + list_of(ids) + ")";
}

Result<void> MarkWriter::update(std::span<const Mark> marks, const std::vector<MarkStatus>& statuses,
                                Deadline deadline) {
  std::vector<std::int64_t> sent;
  std::vector<const Mark*> failed;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (statuses[i] != MarkStatus::written) {
      continue;
    }
    if (marks[i].kind == MarkKind::sent) {
      sent.push_back(marks[i].id);
    } else {
      failed.push_back(&marks[i]);
    }
  }
  if (!sent.empty()) {
    SLUICE_PASS_ON(session_.run(sent_update(list_of(sent)), deadline));
  }
  if (!failed.empty()) {
    SLUICE_PASS_ON(session_.run(failed_update(failed), deadline));
  }
  return {};
}

void MarkWriter::roll_back(Deadline deadline) {
  // Where it fails the session is over, and the server rolls back itself.
  const auto ignored = session_.run("ROLLBACK", deadline);
  static_cast<void>(ignored);
}

}  // namespace sluice::queue::outbox::mysql
