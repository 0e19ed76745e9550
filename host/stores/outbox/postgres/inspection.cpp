#include <algorithm>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>

#include "host/stores/outbox/postgres/sessions.hpp"

namespace sluice::queue::outbox::postgres {
namespace {

constexpr int kIdleLimitSince = 140000;

struct Wanted {
  std::string key;   ///< of [outbox.NAME.columns]
  std::string name;  ///< in the table
  std::initializer_list<const char*> types;
  const char* expected;
};

constexpr std::initializer_list<const char*> kWhole{"bigint", "integer", "smallint"};
constexpr std::initializer_list<const char*> kCount{"bigint", "integer", "smallint"};
constexpr std::initializer_list<const char*> kText{"character varying", "text", "character", "citext"};
constexpr std::initializer_list<const char*> kBody{"json", "jsonb", "text", "character varying"};
constexpr std::initializer_list<const char*> kTime{"timestamp with time zone", "timestamp without time zone"};

std::vector<Wanted> wanted_of(const Columns& names) {
  std::vector<Wanted> all{{"id", names.id, kWhole, "bigint"},
                          {"aggregate_type", names.aggregate_type, kText, "varchar or text"},
                          {"aggregate_id", names.aggregate_id, kText, "varchar or text"},
                          {"event", names.event, kText, "varchar or text"},
                          {"payload", names.payload, kBody, "json, jsonb or text"},
                          {"retry_at", names.retry_at, kTime, "timestamp"},
                          {"retry_count", names.retry_count, kCount, "int"},
                          {"sent_at", names.sent_at, kTime, "timestamp"}};
  if (!names.created_at.empty()) {
    all.push_back({"created_at", names.created_at, kTime, "timestamp"});
  }
  if (!names.last_error.empty()) {
    all.push_back({"last_error", names.last_error, kText, "text"});
  }
  return all;
}

/// Looks at one table, and collects what it finds.
class Inspection {
 public:
  Inspection(Connection& connection, const TableSql& sql, bool side_table, Deadline deadline)
      : connection_(connection), sql_(sql), side_table_(side_table), deadline_(deadline) {}

  Result<std::vector<Finding>> run() {
    SLUICE_TRY(there, connection_.run({"SELECT to_regclass($1) IS NOT NULL, pg_is_in_recovery(), "
                                       "current_setting('default_transaction_read_only')::boolean, current_user",
                                       {sql_.table()}},
                                      deadline_));
    if (there->flag(0, 1) || there->flag(0, 2)) {
      fatal(ErrorCode::unavailable, there->flag(0, 1)
                                        ? "the server is a read-only replica; name the primary in the url, or add "
                                          "?target_session_attrs=read-write to it"
                                        : "the database is set to read-only; rows could not be marked");
    }
    if (!there->flag(0, 0)) {
      fatal(ErrorCode::queue_missing, "there is no table " + sql_.table() + " (as user " +
                                          std::string(there->text(0, 3)) +
                                          " sees it); check 'schema' and 'table', or make it with what `sluice outbox "
                                          "ddl` prints");
      return findings_;
    }
    for (auto step : {&Inspection::columns, &Inspection::rights, &Inspection::identity, &Inspection::side_table,
                      &Inspection::helpers}) {
      SLUICE_PASS_ON((this->*step)());
    }
    if (connection_.server_version() < kIdleLimitSince && !side_table_) {
      remark(
          "PostgreSQL before 14 does not end idle sessions: what a host that vanishes without a word held is free "
          "only when TCP notices");
    }
    std::stable_partition(findings_.begin(), findings_.end(), [](const Finding& finding) { return finding.fatal; });
    return findings_;
  }

 private:
  void fatal(ErrorCode code, std::string text) { findings_.push_back({true, code, std::move(text)}); }
  void remark(std::string text) { findings_.push_back({false, ErrorCode::invalid, std::move(text)}); }

  Result<void> columns() {
    SLUICE_TRY(found, connection_.run({"SELECT a.attname, format_type(a.atttypid, NULL) FROM pg_attribute a WHERE "
                                       "a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped",
                                       {sql_.table()}},
                                      deadline_));
    std::map<std::string, std::string> types;
    for (int row = 0; row < found->rows(); ++row) {
      types.emplace(found->text(row, 0), found->text(row, 1));
    }
    for (const Wanted& column : wanted_of(sql_.settings().columns)) {
      const auto type = types.find(column.name);
      if (type == types.end()) {
        fatal(ErrorCode::invalid, "table " + sql_.table() + " has no column " + quoted(column.name) + "; name it as '" +
                                      column.key + "' in [outbox.NAME.columns], or add it");
      } else if (std::find(column.types.begin(), column.types.end(), type->second) == column.types.end()) {
        fatal(ErrorCode::invalid, "column " + quoted(column.name) + " of table " + sql_.table() + " is of type " +
                                      type->second + ", and '" + column.key + "' must be " + column.expected);
      }
    }
    for (const std::string& other : sql_.settings().columns.attributes) {
      if (!types.contains(other)) {
        fatal(ErrorCode::invalid, "table " + sql_.table() + " has no column " + quoted(other) +
                                      ", which 'attributes' in [outbox.NAME] names");
      }
    }
    return {};
  }

  Result<void> rights() {
    const Columns& names = sql_.settings().columns;
    std::vector<std::string> written{names.retry_at, names.retry_count, names.sent_at};
    if (!names.last_error.empty()) {
      written.push_back(names.last_error);
    }
    SLUICE_TRY(
        found,
        connection_.run(
            {"SELECT has_table_privilege($1::regclass, 'SELECT'), coalesce((SELECT string_agg(c, ', ') FROM "
             "unnest($2::text[]) AS c JOIN pg_attribute a ON a.attrelid = $1::regclass AND a.attname = c AND NOT "
             "a.attisdropped WHERE NOT has_column_privilege($1::regclass, a.attnum, 'UPDATE')), ''), current_user",
             {sql_.table(), array_of(written)}},
            deadline_));
    const std::string user = "user " + std::string(found->text(0, 2));
    if (!found->flag(0, 0)) {
      fatal(ErrorCode::denied,
            user + " may not read table " + sql_.table() + "; GRANT SELECT ON " + sql_.table() + " to it");
    }
    if (const std::string missing(found->text(0, 1)); !missing.empty()) {
      fatal(ErrorCode::denied, user + " may not write " + missing + " of table " + sql_.table() + "; GRANT UPDATE (" +
                                   missing + ") ON " + sql_.table() + " to it");
    }
    return {};
  }

  // A row is known by its id: where two have one, marking the one marks both, and the other is never published. Ids of
  // a sequence differ though no index says so, as in a table that is partitioned by time.
  Result<void> identity() {
    const Columns& names = sql_.settings().columns;
    SLUICE_TRY(
        found,
        connection_.run(
            {"SELECT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indisvalid "
             "AND "
             "i.indpred IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum), a.attidentity <> '' OR EXISTS "
             "(SELECT 1 "
             "FROM pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND pg_get_expr(d.adbin, "
             "d.adrelid) "
             "LIKE 'nextval(%') FROM pg_attribute a WHERE a.attrelid = to_regclass($1) AND a.attname = $2 AND NOT "
             "a.attisdropped",
             {sql_.table(), names.id}},
            deadline_));
    if (found->rows() == 0 || found->flag(0, 0)) {
      return {};
    }
    const std::string what = "column " + quoted(names.id) + " of table " + sql_.table() + " is not unique by itself";
    const std::string mend =
        "; make a unique index on it alone, or name a column that has one as 'id' in "
        "[outbox.NAME.columns]";
    if (found->flag(0, 1)) {
      remark(what + ": rows are told apart by it, as its values come from a sequence" + mend);
    } else {
      fatal(ErrorCode::invalid, what + ", so that marking one row would mark others that were never published" + mend);
    }
    return {};
  }

  // What coordination = "table" keeps its leases in.
  Result<void> side_table() {
    if (!side_table_) {
      return {};
    }
    const std::string name = SideTable(sql_.settings()).name();
    SLUICE_TRY(found,
               connection_.run({"SELECT to_regclass($1) IS NOT NULL, coalesce((SELECT string_agg(p, ', ') FROM "
                                "unnest($2::text[]) AS p WHERE "
                                "NOT has_table_privilege(to_regclass($1), p)), ''), current_user",
                                {name, array_of(std::vector<std::string>{"SELECT", "INSERT", "UPDATE", "DELETE"})}},
                               deadline_));
    const std::string user(found->text(0, 2));
    if (!found->flag(0, 0)) {
      fatal(ErrorCode::queue_missing, "there is no table " + name + " (as user " + user +
                                          " sees it), which coordination = \"table\" needs; make it with what `sluice "
                                          "outbox ddl` prints");
    } else if (const std::string missing(found->text(0, 1)); !missing.empty()) {
      fatal(ErrorCode::denied, "user " + user + " lacks a right to table " + name +
                                   ", which coordination = \"table\" " + "needs; GRANT " + missing + " ON " + name +
                                   " to it");
    }
    return {};
  }

  // What makes it quick.
  Result<void> helpers() {
    const Columns& names = sql_.settings().columns;
    SLUICE_TRY(
        found,
        connection_.run(
            {"SELECT EXISTS (SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = "
             "i.indkey[0] WHERE i.indrelid = $1::regclass AND i.indisvalid AND a.attname = $2 AND "
             "pg_get_expr(i.indpred, i.indrelid) LIKE '%IS NULL%'), EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid "
             "= "
             "$1::regclass AND i.indisvalid AND (SELECT count(*) FROM pg_attribute a WHERE a.attrelid = i.indrelid AND "
             "a.attnum IN (i.indkey[0], i.indkey[1]) AND a.attname IN ($3, $4)) = 2), EXISTS (SELECT 1 FROM pg_trigger "
             "t "
             "JOIN pg_proc p ON p.oid = t.tgfoid WHERE t.tgrelid = $1::regclass AND p.prosrc LIKE '%pg_notify%' AND "
             "t.tgenabled <> 'D')",
             {sql_.table(), names.id, names.aggregate_type, names.aggregate_id}},
            deadline_));
    const std::string mend = "; `sluice outbox ddl` prints it";
    if (!found->flag(0, 0)) {
      remark("table " + sql_.table() + " has no index on " + quoted(names.id) + " WHERE " + quoted(names.sent_at) +
             " IS NULL: each look reads past all rows that were sent and are kept" + mend);
    }
    if (!found->flag(0, 1)) {
      remark("table " + sql_.table() + " has no index that begins with " + quoted(names.aggregate_type) + " and " +
             quoted(names.aggregate_id) + ": after each retry all that is pending is read" + mend);
    }
    if (!found->flag(0, 2) && !side_table_) {
      remark("table " + sql_.table() + " has no trigger that tells of new rows: they are found at the next poll" +
             mend);
    }
    return {};
  }

  Connection& connection_;
  const TableSql& sql_;
  const bool side_table_;
  const Deadline deadline_;
  std::vector<Finding> findings_;
};

}  // namespace

Result<std::vector<Finding>> inspect_table(Connection& connection, const TableSql& sql, bool side_table,
                                           Deadline deadline) {
  return Inspection(connection, sql, side_table, deadline).run();
}

}  // namespace sluice::queue::outbox::postgres
