#include "host/stores/outbox/mysql/mysql_database.hpp"

#include "host/stores/outbox/mysql/schema.hpp"
#include "host/stores/outbox/mysql/sessions.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

/// Connects, once it is sure that what is asked for can be had.
Result<std::unique_ptr<Session>> connect(const Settings& settings, const Clock& clock, Deadline deadline) {
  const auto address = address_of(settings.connect);
  if (address.has_error()) {
    return address.error();
  }
  if (settings.connect.side_table) {
    return Error(ErrorCode::invalid,
                 "[outbox." + settings.name +
                     "] has coordination = \"table\", which is for PostgreSQL; leave it out for MySQL, whose "
                     "locks need no change of the schema");
  }
  return Session::open(settings.connect, *address, clock, deadline);
}

}  // namespace

MysqlDatabase::MysqlDatabase(Settings settings, const Clock& clock) : settings_(std::move(settings)), clock_(clock) {}

Result<std::unique_ptr<LockSession>> MysqlDatabase::open_locks(Deadline deadline) {
  auto session = connect(settings_, clock_, deadline);
  if (session.has_error()) {
    return session.error();
  }
  return make_lock_session(std::move(*session), settings_.table, clock_);
}

Result<std::unique_ptr<ReadSession>> MysqlDatabase::open_reader(bool /*listen*/, Deadline deadline) {
  auto session = connect(settings_, clock_, deadline);
  if (session.has_error()) {
    return session.error();
  }
  return make_read_session(std::move(*session), settings_.table, clock_);
}

Result<std::unique_ptr<DeskSession>> MysqlDatabase::open_desk(Deadline deadline) {
  auto session = connect(settings_, clock_, deadline);
  if (session.has_error()) {
    return session.error();
  }
  return make_desk_session(std::move(*session), settings_.table);
}

std::string MysqlDatabase::ddl() const { return ddl_of(settings_.table); }

}  // namespace sluice::queue::outbox::mysql
