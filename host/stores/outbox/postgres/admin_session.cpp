#include <chrono>
#include <unordered_map>
#include <utility>

#include "host/stores/outbox/postgres/sessions.hpp"

namespace sluice::queue::outbox::postgres {
namespace {

using std::chrono::microseconds;

// Errors are grouped by their beginning, and only the most frequent are told.
constexpr const char* kMostGroups = "50";
constexpr const char* kErrorLetters = "200";

std::string micros_of(Duration span) { return std::to_string(std::chrono::duration_cast<microseconds>(span).count()); }

}  // namespace

Result<std::unique_ptr<AdminSession>> PostgresAdmin::open(const Settings& settings, const TableSql& sql,
                                                          Deadline deadline) {
  SLUICE_TRY(connection, open_session(settings, {}, deadline));
  return std::unique_ptr<AdminSession>(new PostgresAdmin(std::move(*connection), sql, settings.connect));
}

Result<std::vector<Finding>> PostgresAdmin::inspect(Deadline deadline) {
  auto findings = inspect_table(*connection_, sql_, settings_.side_table, deadline);
  if (!findings || settings_.side_table) {
    return findings;
  }
  SLUICE_TRY(shared, sessions_are_shared(*connection_, settings_, deadline));
  if (*shared) {
    findings->insert(findings->begin(), {true, ErrorCode::invalid, shared_sessions(ErrorCode::invalid).message()});
  }
  return findings;
}

std::string PostgresAdmin::stored_columns(bool payload) const {
  const Columns& names = sql_.settings().columns;
  const auto time = [](const std::string& column) {
    return "(extract(epoch FROM (o." + quoted(column) + " - timestamp '1970-01-01'))*1000000)::bigint";
  };
  return sql_.row_columns(false) + ", " + time(names.retry_at) + ", " + time(names.sent_at) + ", " +
         (names.last_error.empty() ? std::string("NULL") : "o." + quoted(names.last_error) + "::text") + ", " +
         (payload ? "o." + quoted(names.payload) + "::text" : std::string("NULL"));
}

StoredRow PostgresAdmin::stored_row(const Answer& answer, int row) const {
  StoredRow stored{.row = sql_.row_of(answer, row)};
  const int first = sql_.row_width();
  if (const auto at = answer.number_or_null(row, first)) {
    stored.retry_at = WallTime(microseconds(*at));
  }
  if (const auto at = answer.number_or_null(row, first + 1)) {
    stored.sent_at = WallTime(microseconds(*at));
  }
  stored.last_error = answer.text(row, first + 2);
  stored.row.payload = answer.text(row, first + 3);
  return stored;
}

Result<SourceId> PostgresAdmin::source_id(Deadline deadline) { return source_id_of(*connection_, sql_, deadline); }

Result<StoredRow> PostgresAdmin::get(const RowKey& key, Deadline deadline) {
  SLUICE_TRY(found, connection_->run({"SELECT " + stored_columns(true) + " FROM " + sql_.table() + " o WHERE o." +
                                          quoted(sql_.settings().columns.id) + " = $1::bigint",
                                      {std::to_string(key.id)}},
                                     deadline));
  if (found->rows() == 0) {
    return Error(ErrorCode::not_found, "table " + sql_.table() + " has no row " + std::to_string(key.id));
  }
  return stored_row(*found, 0);
}

Result<std::vector<StoredRow>> PostgresAdmin::list(const ListRows& request, Deadline deadline) {
  const Columns& names = sql_.settings().columns;
  const std::string id = "o." + quoted(names.id);
  const std::string sent = "o." + quoted(names.sent_at) + " IS ";
  Statement statement;
  std::string where;
  switch (request.part) {
    case Part::pending:
      where = sent + "NULL AND NOT " + sql_.is_dead();
      break;
    case Part::dead:
      where = sent + "NULL AND " + sql_.is_dead();
      break;
    case Part::sent:
      where = sent + "NOT NULL";
      break;
  }
  if (request.beyond) {
    statement.parameters.emplace_back(std::to_string(request.beyond->id));
    where += " AND " + id + (request.newest_first ? " < " : " > ") + "$1::bigint";
  }
  statement.sql = "SELECT " + stored_columns(request.payload) + " FROM " + sql_.table() + " o WHERE " + where +
                  " ORDER BY " + id + (request.newest_first ? " DESC" : "") + " LIMIT " + std::to_string(request.limit);
  SLUICE_TRY(found, connection_->run(statement, deadline));
  std::vector<StoredRow> rows;
  rows.reserve(static_cast<std::size_t>(found->rows()));
  for (int row = 0; row < found->rows(); ++row) {
    rows.push_back(stored_row(*found, row));
  }
  return rows;
}

Result<TableCounts> PostgresAdmin::count(const CountRequest& request, Deadline deadline) {
  const Columns& names = sql_.settings().columns;
  const std::string alive = "NOT " + sql_.is_dead();
  const std::string age = names.created_at.empty()
                              ? "NULL"
                              : "(extract(epoch FROM (localtimestamp - min(o." + quoted(names.created_at) +
                                    ") FILTER (WHERE " + alive + ")))*1000000)::bigint";
  const auto found =
      connection_->run({"SELECT count(*) FILTER (WHERE " + alive + " AND NOT " + sql_.waits() +
                        "), count(*) FILTER (WHERE " + alive + " AND " + sql_.waits() + "), count(*) FILTER (WHERE " +
                        sql_.is_dead() + "), min(o." + quoted(names.id) + ") FILTER (WHERE " + alive + "), " + age +
                        " FROM " + sql_.table() + " o WHERE o." + quoted(names.sent_at) + " IS NULL"},
                       deadline);
  SLUICE_PASS_ON(found);
  TableCounts counts;
  counts.ready = static_cast<std::uint64_t>(found->number(0, 0));
  counts.waiting = static_cast<std::uint64_t>(found->number(0, 1));
  counts.dead = static_cast<std::uint64_t>(found->number(0, 2));
  counts.oldest_id = found->number_or_null(0, 3);
  if (const auto oldest = found->number_or_null(0, 4)) {
    counts.oldest = microseconds(*oldest);
  }
  if (request.sent) {
    SLUICE_TRY(sent, connection_->run({"SELECT count(*) FROM " + sql_.table() + " o WHERE o." + quoted(names.sent_at) +
                                       " IS NOT NULL"},
                                      deadline));
    counts.sent = static_cast<std::uint64_t>(sent->number(0, 0));
  }
  if (request.details) {
    SLUICE_PASS_ON(count_details(counts, deadline));
  }
  return counts;
}

Result<void> PostgresAdmin::count_details(TableCounts& counts, Deadline deadline) {
  const Columns& names = sql_.settings().columns;
  const std::string rest = " AS n FROM " + sql_.table() + " o WHERE o." + quoted(names.sent_at) + " IS NULL";
  const std::string most = std::string(" GROUP BY 1 ORDER BY 2 DESC LIMIT ") + kMostGroups;
  const auto take = [&](const std::string& sql, std::map<std::string, std::uint64_t>& into) -> Result<void> {
    SLUICE_TRY(found, connection_->run({sql}, deadline));
    for (int row = 0; row < found->rows(); ++row) {
      into[std::string(found->text(row, 0))] = static_cast<std::uint64_t>(found->number(row, 1));
    }
    return {};
  };
  if (auto done = take(
          "SELECT o." + quoted(names.aggregate_type) + "::text, count(*)" + rest + " AND NOT " + sql_.is_dead() + most,
          counts.by_type);
      !done || names.last_error.empty()) {
    return done;
  }
  const std::string error = "o." + quoted(names.last_error);
  return take("SELECT left(" + error + "::text, " + kErrorLetters + "), count(*)" + rest + " AND " + error +
                  " IS NOT NULL" + most,
              counts.by_error);
}

Statement PostgresAdmin::statement_of(const RowChange& change) const {
  const Columns& names = sql_.settings().columns;
  const std::string id = quoted(names.id);
  const std::string fresh =
      quoted(names.retry_count) + " = NULL, " + quoted(names.retry_at) + " = NULL" + sql_.clear_error();
  Statement statement{"", {std::to_string(change.id)}};
  std::string where = " WHERE o." + id + " = $1::bigint";
  const std::string unsent = " AND o." + quoted(names.sent_at) + " IS NULL";
  const std::string head = "UPDATE " + sql_.table() + " AS o SET ";
  switch (change.action) {
    case RowAction::redrive:
      statement.sql = head + fresh + where + unsent + " AND " + sql_.is_dead();
      break;
    case RowAction::reset:
      statement.sql = head + fresh + where + unsent;
      break;
    case RowAction::delay:
      statement.parameters.emplace_back(micros_of(change.after));
      statement.sql =
          head + quoted(names.retry_at) + " = localtimestamp + $2::bigint * interval '1 microsecond'" + where + unsent;
      break;
    case RowAction::dead_letter: {
      std::string error;
      if (!names.last_error.empty()) {
        statement.parameters.emplace_back(change.error);
        error = ", " + quoted(names.last_error) + " = coalesce(" +
                sql_.cut_error("nullif($2::text, '')", statement.parameters) + ", o." + quoted(names.last_error) + ")";
      }
      statement.sql = head + quoted(names.retry_count) + " = greatest(coalesce(o." + quoted(names.retry_count) +
                      ", 0), " + std::to_string(sql_.settings().retry_limit) + "), " + quoted(names.retry_at) +
                      " = NULL" + error + where + unsent;
      break;
    }
    case RowAction::discard:
      statement.sql = head + quoted(names.sent_at) + " = localtimestamp" + where + unsent;
      break;
    case RowAction::remove:
      statement.sql = "DELETE FROM " + sql_.table() + " AS o" + where;
      break;
  }
  if (change.only_if) {
    statement.parameters.emplace_back(std::to_string(*change.only_if));
    statement.sql += " AND coalesce(o." + quoted(names.retry_count) + ", 0) = $" +
                     std::to_string(statement.parameters.size()) + "::int";
  }
  statement.sql += " RETURNING o." + id;
  return statement;
}

Result<std::vector<RowChanged>> PostgresAdmin::change(std::span<const RowChange> changes, Deadline deadline) {
  std::vector<Statement> statements;
  std::vector<std::int64_t> ids;
  for (const RowChange& change : changes) {
    statements.push_back(statement_of(change));
    ids.push_back(change.id);
  }
  statements.push_back({"SELECT o." + quoted(sql_.settings().columns.id) + " FROM " + sql_.table() + " o WHERE o." +
                            quoted(sql_.settings().columns.id) + " = ANY ($1::bigint[])",
                        {array_of(ids)}});
  statements.push_back({"SELECT pg_notify($1, $2)", {kChannel, "changed:" + sql_.settings().table}});
  SLUICE_TRY(answers, connection_->run_together(statements, deadline));
  const Answer& there = (*answers)[changes.size()];
  std::unordered_map<std::int64_t, bool> known;
  for (int row = 0; row < there.rows(); ++row) {
    known[there.number(row, 0)] = true;
  }
  std::vector<RowChanged> changed;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const bool applied = (*answers)[i].rows() > 0;
    changed.push_back(applied                         ? RowChanged::applied
                      : known.contains(changes[i].id) ? RowChanged::conflict
                                                      : RowChanged::not_found);
  }
  return changed;
}

Result<std::uint64_t> PostgresAdmin::prune(const PruneRequest& request, Deadline deadline) {
  const Columns& names = sql_.settings().columns;
  const std::string old = "o." + quoted(names.sent_at) + " < localtimestamp - $1::bigint * interval '1 microsecond'";
  const std::string id = quoted(names.id);
  Statement statement{"", {micros_of(request.sent_before)}};
  if (request.dry_run) {
    statement.sql = "SELECT count(*) FROM " + sql_.table() + " o WHERE " + old;
  } else {
    statement.sql = "WITH gone AS (DELETE FROM " + sql_.table() + " WHERE " + id + " IN (SELECT o." + id + " FROM " +
                    sql_.table() + " o WHERE " + old + " ORDER BY o." + id + " LIMIT " + std::to_string(request.limit) +
                    " FOR UPDATE SKIP LOCKED) RETURNING 1) SELECT count(*) FROM gone";
  }
  SLUICE_TRY(done, connection_->run(statement, deadline));
  return static_cast<std::uint64_t>(done->number(0, 0));
}

}  // namespace sluice::queue::outbox::postgres
