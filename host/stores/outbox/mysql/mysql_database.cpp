#include "host/stores/outbox/mysql/mysql_database.hpp"

#include "host/stores/outbox/lease_locks.hpp"
#include "host/stores/outbox/mysql/lease_book.hpp"
#include "host/stores/outbox/mysql/schema.hpp"
#include "host/stores/outbox/mysql/sessions.hpp"
#include "host/stores/outbox/mysql/source_id.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

Result<std::unique_ptr<Session>> connect(const Settings& settings, const Clock& clock, Deadline deadline) {
  SLUICE_TRY(address, address_of(settings.connect));
  return Session::open(settings.connect, *address, clock, deadline);
}

}  // namespace

MysqlDatabase::MysqlDatabase(Settings settings, const Clock& clock, Random& random)
    : settings_(std::move(settings)), clock_(clock), random_(random) {}

Result<std::unique_ptr<LockSession>> MysqlDatabase::open_locks(Deadline deadline) {
  SLUICE_TRY(session, connect(settings_, clock_, deadline));
  if (settings_.connect.side_table) {
    const Duration lease = settings_.connect.lease;
    return std::unique_ptr<LockSession>(std::make_unique<LeaseLocks>(
        std::make_unique<MysqlLeaseBook>(std::move(*session), settings_.table),
        LeaseLocks::Settings{settings_.name, lease, default_beat(lease)}, clock_, random_));
  }
  return make_lock_session(std::move(*session), settings_.table, clock_);
}

Result<std::unique_ptr<ReadSession>> MysqlDatabase::open_reader(bool /*listen*/, Deadline deadline) {
  SLUICE_TRY(session, connect(settings_, clock_, deadline));
  return make_read_session(std::move(*session), settings_.table, clock_);
}

Result<std::unique_ptr<AdminSession>> MysqlDatabase::open_admin(Deadline deadline) {
  SLUICE_TRY(session, connect(settings_, clock_, deadline));
  return make_admin_session(std::move(*session), settings_.table, settings_.connect.side_table);
}

std::string MysqlDatabase::ddl() const {
  return ddl_of(settings_.table) + source_table_ddl(settings_.table) +
         (settings_.connect.side_table ? side_table_ddl(settings_.table) : std::string());
}

}  // namespace sluice::queue::outbox::mysql
