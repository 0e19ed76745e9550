#include "host/stores/outbox/mysql/names.hpp"
#include "host/stores/outbox/mysql/rows_sql.hpp"
#include "host/stores/outbox/mysql/schema.hpp"
#include "host/stores/outbox/mysql/sessions.hpp"
#include "host/stores/outbox/mysql/source_id.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

constexpr int kTries = 4;

std::string ago(Duration span) {
  return "UTC_TIMESTAMP(6)-INTERVAL " +
         std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(span).count()) + " MICROSECOND";
}

class MysqlAdmin final : public AdminSession {
 public:
  MysqlAdmin(std::unique_ptr<Session> session, const TableSettings& table, bool side_table)
      : session_(std::move(session)), sql_(table), side_table_(side_table) {}

  Result<std::vector<Finding>> inspect(Deadline deadline) override {
    return inspect_table(*session_, sql_, side_table_, deadline);
  }

  Result<SourceId> source_id(Deadline deadline) override { return source_id_of(*session_, sql_.settings(), deadline); }

  Result<StoredRow> get(const RowKey& key, Deadline deadline) override {
    SLUICE_TRY(found, session_->rows(select(true) + " WHERE " + sql_.id() + "=" + std::to_string(key.id), deadline));
    if (found->empty()) {
      return Error(ErrorCode::not_found, "the outbox has no row " + std::to_string(key.id));
    }
    return sql_.read_stored(std::move(found->front()));
  }

  Result<std::vector<StoredRow>> list(const ListRows& request, Deadline deadline) override {
    const std::string part = request.part == Part::pending
                                 ? sql_.sent_at() + " IS NULL AND IFNULL(" + sql_.retry_count() + ",0)<" +
                                       std::to_string(sql_.settings().retry_limit)
                             : request.part == Part::dead ? sql_.dead()
                                                          : sql_.sent_at() + " IS NOT NULL";
    std::string statement = select(request.payload) + " WHERE " + part;
    if (request.beyond) {
      statement += " AND " + sql_.id() + (request.newest_first ? "<" : ">") + std::to_string(request.beyond->id);
    }
    statement +=
        " ORDER BY " + sql_.id() + (request.newest_first ? " DESC" : "") + " LIMIT " + std::to_string(request.limit);
    std::vector<StoredRow> rows;
    const auto done = session_->run(
        statement,
        [&](Cells&& cells) {
          rows.push_back(sql_.read_stored(std::move(cells)));
          return true;
        },
        deadline);
    return done.has_error() ? Result<std::vector<StoredRow>>(done.error())
                            : Result<std::vector<StoredRow>>(std::move(rows));
  }

  Result<TableCounts> count(const CountRequest& request, Deadline deadline) override {
    const std::string limit = std::to_string(sql_.settings().retry_limit);
    const std::string tries = "IFNULL(" + sql_.retry_count() + ",0)";
    const std::string ahead = "IFNULL(" + sql_.retry_at() + ">UTC_TIMESTAMP(6),0)";
    const std::string created = sql_.settings().columns.created_at;
    const std::string alive = "IF(" + tries + "<" + limit + ",";
    SLUICE_TRY(found, session_->rows("SELECT SUM(" + tries + "<" + limit + " AND NOT " + ahead + "),SUM(" + tries +
                                         "<" + limit + " AND " + ahead + "),SUM(" + tries + ">=" + limit + "),MIN(" +
                                         alive + sql_.id() + ",NULL))," +
                                         (created.empty() ? "NULL"
                                                          : "TIMESTAMPDIFF(MICROSECOND,MIN(" + alive +
                                                                identifier(created) + ",NULL)),UTC_TIMESTAMP(6))") +
                                         " FROM " + sql_.table() + " WHERE " + sql_.sent_at() + " IS NULL",
                                     deadline));
    const Cells& cells = found->front();
    TableCounts counts{.ready = unsigned_of(cells[0]), .waiting = unsigned_of(cells[1]), .dead = unsigned_of(cells[2])};
    if (cells[3]) {
      counts.oldest_id = number_of(cells[3]);
    }
    if (cells[4]) {
      counts.oldest = std::chrono::microseconds(std::max<std::int64_t>(0, number_of(cells[4])));
    }
    SLUICE_PASS_ON(count_more(request, counts, deadline));
    return counts;
  }

  Result<std::vector<RowChanged>> change(std::span<const RowChange> changes, Deadline deadline) override {
    std::vector<RowChanged> results;
    for (const RowChange& one : changes) {
      SLUICE_TRY(changed, apply(one, deadline));
      results.push_back(*changed);
    }
    return results;
  }

  Result<std::uint64_t> prune(const PruneRequest& request, Deadline deadline) override {
    const std::string old = " FROM " + sql_.table() + " WHERE " + sql_.sent_at() + "<" + ago(request.sent_before);
    if (!request.dry_run) {
      return again("DELETE" + old + " ORDER BY " + sql_.sent_at() + " LIMIT " + std::to_string(request.limit),
                   deadline);
    }
    const auto found = session_->rows("SELECT COUNT(*)" + old, deadline);
    return found.has_error() ? Result<std::uint64_t>(found.error()) : unsigned_of(found->front()[0]);
  }

 private:
  static std::uint64_t unsigned_of(const Cell& cell) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(0, number_of(cell)));
  }

  std::string select(bool payload) const { return "SELECT " + sql_.stored_columns(payload) + " FROM " + sql_.table(); }

  /// A statement that is a transaction of its own; a deadlock is tried again.
  Result<std::uint64_t> again(const std::string& statement, Deadline deadline) {
    for (int attempt = 1;; ++attempt) {
      auto done = session_->run(statement, deadline);
      if (done || session_->over() || !may_be_tried_again(session_->fault()) || attempt == kTries) {
        return done;
      }
    }
  }

  Result<void> group_counts(const std::string& column, const std::string& where,
                            std::map<std::string, std::uint64_t>& into, Deadline deadline) {
    SLUICE_TRY(found,
               session_->rows("SELECT " + column + ",COUNT(*) FROM " + sql_.table() + " WHERE " + where + " GROUP BY 1",
                              deadline));
    for (const Cells& cells : *found) {
      into[cells[0].value_or("")] += unsigned_of(cells[1]);
    }
    return {};
  }

  Result<void> count_more(const CountRequest& request, TableCounts& counts, Deadline deadline) {
    if (request.sent) {
      SLUICE_TRY(found,
                 session_->rows("SELECT COUNT(*) FROM " + sql_.table() + " WHERE " + sql_.sent_at() + " IS NOT NULL",
                                deadline));
      counts.sent = unsigned_of(found->front()[0]);
    }
    if (!request.details) {
      return {};
    }
    const std::string unsent = sql_.sent_at() + " IS NULL";
    auto types = group_counts(
        exact(identifier(sql_.settings().columns.aggregate_type)),
        unsent + " AND IFNULL(" + sql_.retry_count() + ",0)<" + std::to_string(sql_.settings().retry_limit),
        counts.by_type, deadline);
    if (types.has_error() || sql_.last_error().empty()) {
      return types;
    }
    return group_counts(exact(sql_.last_error()), unsent + " AND " + sql_.last_error() + " IS NOT NULL",
                        counts.by_error, deadline);
  }

  /// What is set, and which state of the row it asks for.
  std::pair<std::string, std::string> statement_of(const RowChange& change) const {
    const std::string unsent = sql_.sent_at() + " IS NULL";
    const std::string error = sql_.last_error();
    const std::string anew = sql_.retry_count() + "=NULL," + sql_.retry_at() + "=NULL";
    switch (change.action) {
      case RowAction::redrive:
        return {anew, sql_.dead()};
      case RowAction::reset:
        return {anew, unsent};
      case RowAction::delay:
        return {sql_.retry_at() + "=" + ago(-change.after), unsent};
      case RowAction::dead_letter:
        return {sql_.retry_count() + "=GREATEST(IFNULL(" + sql_.retry_count() + ",0)," +
                    std::to_string(sql_.settings().retry_limit) + ")," + sql_.retry_at() + "=NULL" +
                    (error.empty() ? "" : "," + error + "=" + text_literal(change.error)),
                unsent};
      case RowAction::discard:
        return {sql_.sent_at() + "=UTC_TIMESTAMP(6)", unsent};
      case RowAction::remove:
        break;
    }
    return {"", "TRUE"};
  }

  Result<RowChanged> apply(const RowChange& change, Deadline deadline) {
    const auto [set, state] = statement_of(change);
    const std::string id = sql_.id() + "=" + std::to_string(change.id);
    std::string where = " WHERE " + id + " AND " + state;
    if (change.only_if) {
      where += " AND IFNULL(" + sql_.retry_count() + ",0)=" + std::to_string(*change.only_if);
    }
    const auto touched =
        again(set.empty() ? "DELETE FROM " + sql_.table() + where : "UPDATE " + sql_.table() + " SET " + set + where,
              deadline);
    SLUICE_PASS_ON(touched);
    if (*touched != 0) {
      return RowChanged::applied;
    }
    SLUICE_TRY(found, session_->rows("SELECT 1 FROM " + sql_.table() + " WHERE " + id, deadline));
    return found->empty() ? RowChanged::not_found : RowChanged::conflict;
  }

  const std::unique_ptr<Session> session_;
  const RowsSql sql_;
  const bool side_table_;
};

}  // namespace

std::unique_ptr<AdminSession> make_admin_session(std::unique_ptr<Session> session, const TableSettings& table,
                                                 bool side_table) {
  return std::make_unique<MysqlAdmin>(std::move(session), table, side_table);
}

}  // namespace sluice::queue::outbox::mysql
