#include "host/stores/outbox/postgres/sessions.hpp"

namespace sluice::queue::outbox::postgres {

Result<SourceId> source_id_of(Connection& connection, const TableSql& sql, Deadline deadline) {
  const auto table =
      connection.run({"SELECT d.oid::text || '-' || to_regclass($1)::oid::text FROM pg_database d WHERE d.datname = "
                      "current_database()",
                      {sql.table()}},
                     deadline);
  SLUICE_PASS_ON(table);
  if (table->rows() == 0 || table->is_null(0, 0)) {
    return Error(ErrorCode::queue_missing, "there is no table " + sql.table() +
                                               "; check 'schema' and 'table', or make it with what `sluice outbox "
                                               "ddl` prints");
  }
  const std::string place = "-" + std::string(table->text(0, 0));
  const auto cluster = connection.run({"SELECT system_identifier::text FROM pg_control_system()"}, deadline);
  if (cluster) {
    return SourceId{"postgres-" + std::string(cluster->text(0, 0)) + place, {}};
  }
  if (cluster.error().code() != ErrorCode::denied && cluster.error().code() != ErrorCode::invalid) {
    return cluster.error();
  }
  SLUICE_TRY(address,
             connection.run({"SELECT coalesce(host(inet_server_addr()), 'local') || '-' || current_setting('port')"},
                            deadline));
  return SourceId{"postgres-" + std::string(address->text(0, 0)) + place,
                  "the user may not run pg_control_system(), so that deduplication knows the database by its server's "
                  "address, which others may have and a fail-over changes; GRANT EXECUTE ON FUNCTION "
                  "pg_control_system() to the user, or give each database a 'producer' of its own"};
}

}  // namespace sluice::queue::outbox::postgres
