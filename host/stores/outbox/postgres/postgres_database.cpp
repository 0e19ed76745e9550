#include "host/stores/outbox/postgres/postgres_database.hpp"

#include "host/stores/outbox/lease_locks.hpp"
#include "host/stores/outbox/postgres/lease_book.hpp"
#include "host/stores/outbox/postgres/sessions.hpp"

namespace sluice::queue::outbox {
namespace {

class PostgresDatabase final : public Database {
 public:
  PostgresDatabase(const Settings& settings, const Clock& clock, Random& random)
      : settings_(settings), sql_(settings.table), clock_(clock), random_(random) {}

  Result<std::unique_ptr<LockSession>> open_locks(Deadline deadline) override {
    if (settings_.connect.side_table) {
      return open_leases(deadline);
    }
    return postgres::PostgresLocks::open(settings_, sql_, deadline);
  }
  Result<std::unique_ptr<ReadSession>> open_reader(bool listen, Deadline deadline) override {
    return postgres::PostgresReader::open(settings_, sql_, listen, deadline);
  }
  Result<std::unique_ptr<AdminSession>> open_admin(Deadline deadline) override {
    return postgres::PostgresAdmin::open(settings_, sql_, deadline);
  }
  std::string ddl() const override { return postgres::ddl_of(settings_); }

 private:
  Result<std::unique_ptr<LockSession>> open_leases(Deadline deadline) {
    SLUICE_TRY(connection, postgres::open_session(settings_, {}, deadline));
    const Duration lease = settings_.connect.lease;
    return std::unique_ptr<LockSession>(std::make_unique<LeaseLocks>(
        std::make_unique<postgres::PostgresLeaseBook>(*std::move(connection), sql_),
        LeaseLocks::Settings{settings_.name, lease, default_beat(lease)}, clock_, random_));
  }

  // Fixed after construction.
  const Settings settings_;
  const postgres::TableSql sql_;
  const Clock& clock_;
  Random& random_;
};

}  // namespace

std::unique_ptr<Database> make_postgres_database(const Settings& settings, const Clock& clock, Random& random) {
  return std::make_unique<PostgresDatabase>(settings, clock, random);
}

}  // namespace sluice::queue::outbox
