#include "host/stores/outbox/mysql/source_id.hpp"

#include "host/stores/outbox/mysql/names.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

std::string source_table_of(const TableSettings& settings) {
  return (settings.schema.empty() ? "" : identifier(settings.schema) + ".") + identifier(settings.table + "_source");
}

/// As much as a server says of itself.
Result<SourceId> id_of_server(Session& session, const TableSettings& settings, Deadline deadline) {
  const auto variables =
      session.rows("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('hostname','port','server_uuid')", deadline);
  SLUICE_PASS_ON(variables);
  std::string server;
  for (const Cells& variable : *variables) {
    server += variable[1].value_or("") + "/";
  }
  const std::string schema = settings.schema.empty() ? "DATABASE()" : text_literal(settings.schema);
  SLUICE_TRY(hash, session.rows("SELECT SHA1(CONCAT_WS('/'," + text_literal(server) + "," + schema + "," +
                                    text_literal(settings.table) + "))",
                                deadline));
  return SourceId{"mysql-" + hash->at(0)[0].value_or(""),
                  "there is no row of " + source_table_of(settings) +
                      " that the user may read, so that deduplication knows the database by its server's name, which "
                      "others may have and a fail-over changes; make the table with what `sluice outbox ddl` prints "
                      "and grant SELECT on it, or give each database a 'producer' of its own"};
}

}  // namespace

std::string source_table_ddl(const TableSettings& settings) {
  const std::string table = source_table_of(settings);
  return "\n-- What this database is called where messages are deduplicated: made once, and kept.\n"
         "CREATE TABLE IF NOT EXISTS " +
         table +
         " (\n"
         "  one TINYINT NOT NULL PRIMARY KEY,  -- there is one row\n"
         "  id CHAR(36) CHARACTER SET ascii NOT NULL\n"
         ") ENGINE=InnoDB;\n"
         "INSERT IGNORE INTO " +
         table + " (one, id) VALUES (1, UUID());\n";
}

Result<SourceId> source_id_of(Session& session, const TableSettings& settings, Deadline deadline) {
  const auto kept = session.rows("SELECT id FROM " + source_table_of(settings) + " WHERE one=1", deadline);
  if (kept && !kept->empty()) {
    return SourceId{"mysql-" + kept->front()[0].value_or(""), {}};
  }
  const bool absent = kept || kept.error().code() == ErrorCode::queue_missing ||
                      kept.error().code() == ErrorCode::denied || kept.error().code() == ErrorCode::invalid;
  return absent && !session.over() ? id_of_server(session, settings, deadline) : Result<SourceId>(kept.error());
}

}  // namespace sluice::queue::outbox::mysql
