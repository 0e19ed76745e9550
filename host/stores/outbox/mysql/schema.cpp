#include "host/stores/outbox/mysql/schema.hpp"

#include <algorithm>
#include <array>
#include <map>

#include "host/stores/outbox/mysql/lease_book.hpp"
#include "host/stores/outbox/mysql/names.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

using Words = std::vector<std::string>;

const Words kNumbers{"bigint", "int", "mediumint", "smallint", "tinyint"};
const Words kTexts{"varchar",  "char",      "text",   "tinytext", "mediumtext",
                   "longtext", "varbinary", "binary", "enum",     "uuid"};
const Words kPayloads{"json",    "longtext", "mediumtext", "text",       "tinytext",
                      "varchar", "longblob", "blob",       "mediumblob", "varbinary"};
const Words kTimes{"datetime", "timestamp"};

struct Wanted {
  std::string column;
  const Words* types;  ///< null: any
  const char* kind;
};

std::vector<Wanted> wanted_columns(const Columns& names) {
  std::vector<Wanted> list{{names.id, &kNumbers, "BIGINT"},
                           {names.aggregate_type, &kTexts, "VARCHAR(255)"},
                           {names.aggregate_id, &kTexts, "VARCHAR(255)"},
                           {names.event, &kTexts, "VARCHAR(255)"},
                           {names.payload, &kPayloads, "JSON"},
                           {names.retry_at, &kTimes, "DATETIME(6)"},
                           {names.retry_count, &kNumbers, "INT"},
                           {names.sent_at, &kTimes, "DATETIME(6)"}};
  if (!names.created_at.empty()) {
    list.push_back({names.created_at, &kTimes, "DATETIME(6)"});
  }
  if (!names.last_error.empty()) {
    list.push_back({names.last_error, &kTexts, "TEXT"});
  }
  for (const std::string& attribute : names.attributes) {
    list.push_back({attribute, nullptr, "VARCHAR(255)"});
  }
  return list;
}

Finding fatal(ErrorCode code, std::string text) { return {.fatal = true, .code = code, .text = std::move(text)}; }

std::string schema_literal(const TableSettings& settings) {
  return settings.schema.empty() ? "DATABASE()" : text_literal(settings.schema);
}

class Inspection {
 public:
  Inspection(Session& session, const RowsSql& sql, bool side_table, Deadline deadline)
      : session_(session),
        sql_(sql),
        side_table_(side_table),
        deadline_(deadline),
        table_(session.place() + ": table " + sql.table()) {}

  Result<std::vector<Finding>> run() {
    for (const auto step : {&Inspection::look_at_columns, &Inspection::look_at_rights, &Inspection::look_at_identity,
                            &Inspection::look_at_side_table, &Inspection::look_at_indexes}) {
      SLUICE_PASS_ON((this->*step)());
      if (missing_) {
        break;
      }
    }
    std::stable_partition(findings_.begin(), findings_.end(), [](const Finding& finding) { return finding.fatal; });
    return std::move(findings_);
  }

 private:
  /// "information_schema" shows only what the user has a right to.
  Result<void> look_at_columns() {
    const auto found =
        session_.rows("SELECT COLUMN_NAME,LOWER(DATA_TYPE) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA=" +
                          schema_literal(sql_.settings()) + " AND TABLE_NAME=" + text_literal(sql_.settings().table),
                      deadline_);
    SLUICE_PASS_ON(found);
    if (found->empty()) {
      return look_for_table();
    }
    std::map<std::string, std::string> types;
    for (const Cells& row : *found) {
      types.emplace(row[0].value_or(""), row[1].value_or(""));
    }
    for (const Wanted& wanted : wanted_columns(sql_.settings().columns)) {
      const auto type = types.find(wanted.column);
      if (type == types.end()) {
        findings_.push_back(
            fatal(ErrorCode::invalid, table_ + " has no column " + wanted.column + "; add it as " + wanted.kind +
                                          ", or name the one that takes its place in [outbox.NAME.columns]"));
      } else if (wanted.types != nullptr &&
                 std::find(wanted.types->begin(), wanted.types->end(), type->second) == wanted.types->end()) {
        findings_.push_back(fatal(ErrorCode::invalid, table_ + ": column " + wanted.column + " is " + type->second +
                                                          ", and has to be such as " + wanted.kind));
      }
    }
    return {};
  }

  Result<void> look_for_table() {
    missing_ = true;
    const auto seen = session_.run("SELECT 1 FROM " + sql_.table() + " LIMIT 0", deadline_);
    if (seen.has_error() && session_.over()) {
      return seen.error();
    }
    const Error error =
        seen.has_error() ? seen.error() : Error(ErrorCode::denied, table_ + ": the user may not see its columns");
    findings_.push_back(fatal(error.code(), error.message()));
    return {};
  }

  /// The server checks rights before it finds that no row is meant.
  Result<void> look_at_rights() {
    if (!findings_.empty()) {
      return {};
    }
    const Columns& names = sql_.settings().columns;
    std::string update = "UPDATE " + sql_.table() + " SET ";
    for (const std::string& column : {names.sent_at, names.retry_at, names.retry_count, names.last_error}) {
      if (!column.empty()) {
        update += (update.back() == ' ' ? "" : ",") + identifier(column) + "=" + identifier(column);
      }
    }
    for (const std::string& statement :
         {"SELECT " + sql_.columns() + " FROM " + sql_.table() + " LIMIT 0", update + " WHERE FALSE"}) {
      const auto allowed = session_.run(statement, deadline_);
      if (allowed.has_error()) {
        if (session_.over() && ends_session(session_.fault())) {
          return allowed.error();
        }
        findings_.push_back(fatal(allowed.error().code(), allowed.error().message()));
        missing_ = true;
        return {};
      }
    }
    return {};
  }

  /// A row is known by its id: where two have one, marking the one marks both, and the other is never published. Ids
  /// that the server counts differ though no index says so.
  Result<void> look_at_identity() {
    const Columns& names = sql_.settings().columns;
    const std::string of_table =
        "TABLE_SCHEMA=" + schema_literal(sql_.settings()) + " AND TABLE_NAME=" + text_literal(sql_.settings().table);
    SLUICE_TRY(
        found,
        session_.rows("SELECT EXTRA LIKE '%auto_increment%',EXISTS(SELECT 1 FROM information_schema.STATISTICS WHERE " +
                          of_table + " AND NON_UNIQUE=0 GROUP BY INDEX_NAME HAVING COUNT(*)=1 AND MAX(COLUMN_NAME)=" +
                          text_literal(names.id) + ") FROM information_schema.COLUMNS WHERE " + of_table +
                          " AND COLUMN_NAME=" + text_literal(names.id),
                      deadline_));
    if (found->empty() || found->front()[1].value_or("") == "1") {
      return {};
    }
    const bool counted = found->front()[0].value_or("") == "1";
    findings_.push_back({.fatal = !counted,
                         .text = table_ + ": column " + names.id + " is not unique by itself" +
                                 (counted ? ": rows are told apart by it, as the server counts its values"
                                          : ", so that marking one row would mark others that were never published") +
                                 "; make a unique key on it alone, or name a column that has one as 'id' in "
                                 "[outbox.NAME.columns]"});
    return {};
  }

  /// What coordination = "table" keeps its leases in: with no row meant, each right is checked all the same.
  Result<void> look_at_side_table() {
    const std::string side = side_table_of(sql_.settings());
    for (const std::string& statement :
         {"SELECT counter FROM " + side + " LIMIT 0", "UPDATE " + side + " SET counter=counter WHERE FALSE",
          "DELETE FROM " + side + " WHERE FALSE", "INSERT INTO " + side + " SELECT * FROM " + side + " WHERE FALSE"}) {
      const auto allowed = side_table_ ? session_.run(statement, deadline_) : Result<std::uint64_t>(0U);
      if (allowed.has_error()) {
        if (session_.over() && ends_session(session_.fault())) {
          return allowed.error();
        }
        findings_.push_back(fatal(allowed.error().code(),
                                  allowed.error().message() + "; coordination = \"table\" needs " + side +
                                      " and SELECT, INSERT, UPDATE and DELETE on it; `sluice outbox ddl` prints it"));
        return {};
      }
    }
    return {};
  }

  Result<void> look_at_indexes() {
    SLUICE_TRY(found,
               session_.rows(
                   "SELECT INDEX_NAME,COLUMN_NAME,NON_UNIQUE FROM information_schema.STATISTICS WHERE TABLE_SCHEMA=" +
                       schema_literal(sql_.settings()) + " AND TABLE_NAME=" + text_literal(sql_.settings().table) +
                       " AND SEQ_IN_INDEX=1",
                   deadline_));
    const Columns& names = sql_.settings().columns;
    const auto begins_with = [&found](const std::string& column) {
      return std::any_of(found->begin(), found->end(), [&column](const Cells& row) { return row[1] == column; });
    };
    if (!begins_with(names.id)) {
      findings_.push_back({.text = table_ + " has no key on " + names.id +
                                   ": rows are searched for one after the other; make it "
                                   "the primary key"});
    }
    if (!begins_with(names.sent_at)) {
      findings_.push_back({.text = table_ + " has no index that begins with " + names.sent_at +
                                   ": each look reads what was sent long ago; `CREATE INDEX outbox_pending ON " +
                                   sql_.table() + " (" + identifier(names.sent_at) + ", " + identifier(names.id) +
                                   ")` mends that"});
    }
    return look_at_engine();
  }

  Result<void> look_at_engine() {
    SLUICE_TRY(found, session_.rows("SELECT ENGINE FROM information_schema.TABLES WHERE TABLE_SCHEMA=" +
                                        schema_literal(sql_.settings()) +
                                        " AND TABLE_NAME=" + text_literal(sql_.settings().table),
                                    deadline_));
    const std::string engine = found->empty() ? "" : found->front()[0].value_or("");
    if (!engine.empty() && engine != "InnoDB") {
      findings_.push_back({.text = table_ + " is of the engine " + engine +
                                   ", which has no transactions: an event may be there "
                                   "without what it tells of; use InnoDB"});
    }
    return {};
  }

  Session& session_;
  const RowsSql& sql_;
  const bool side_table_;
  const Deadline deadline_;
  const std::string table_;
  std::vector<Finding> findings_;
  bool missing_ = false;
};

}  // namespace

std::string ddl_of(const TableSettings& settings) {
  const Columns& names = settings.columns;
  const std::string table = RowsSql(settings).table();
  const auto line = [](const std::string& column, const char* type) {
    return "  " + identifier(column) + " " + type + ",\n";
  };
  std::string text = "CREATE TABLE " + table + " (\n" + line(names.id, "BIGINT NOT NULL AUTO_INCREMENT") +
                     line(names.aggregate_type, "VARCHAR(255) NOT NULL") +
                     line(names.aggregate_id, "VARCHAR(255) NOT NULL") + line(names.event, "VARCHAR(255) NOT NULL") +
                     line(names.payload, "JSON NOT NULL") + line(names.retry_at, "DATETIME(6) NULL") +
                     line(names.retry_count, "INT NULL") + line(names.sent_at, "DATETIME(6) NULL");
  if (!names.created_at.empty()) {
    text += line(names.created_at, "DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)");
  }
  if (!names.last_error.empty()) {
    text += line(names.last_error, "TEXT NULL");
  }
  for (const std::string& attribute : names.attributes) {
    text += line(attribute, "VARCHAR(255) NULL");
  }
  text += "  PRIMARY KEY (" + identifier(names.id) + ")\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;\n\n";
  text += "-- What is pending lies together here, in its order, however much was sent before.\n";
  return text + "CREATE INDEX outbox_pending ON " + table + " (" + identifier(names.sent_at) + ", " +
         identifier(names.id) + ");\n";
}

Result<std::vector<Finding>> inspect_table(Session& session, const RowsSql& sql, bool side_table, Deadline deadline) {
  return Inspection(session, sql, side_table, deadline).run();
}

}  // namespace sluice::queue::outbox::mysql
