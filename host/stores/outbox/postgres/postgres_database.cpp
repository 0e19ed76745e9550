#include "host/stores/outbox/postgres/postgres_database.hpp"

#include "host/stores/outbox/postgres/sessions.hpp"

namespace sluice::queue::outbox {
namespace {

class PostgresDatabase final : public Database {
 public:
  explicit PostgresDatabase(const Settings& settings) : settings_(settings), sql_(settings.table) {}

  Result<std::unique_ptr<LockSession>> open_locks(Deadline deadline) override {
    return postgres::PostgresLocks::open(settings_, sql_, deadline);
  }
  Result<std::unique_ptr<ReadSession>> open_reader(bool listen, Deadline deadline) override {
    return postgres::PostgresReader::open(settings_, sql_, listen, deadline);
  }
  Result<std::unique_ptr<DeskSession>> open_desk(Deadline deadline) override {
    return postgres::PostgresDesk::open(settings_, sql_, deadline);
  }
  std::string ddl() const override { return postgres::ddl_of(settings_); }

 private:
  // Fixed after construction.
  const Settings settings_;
  const postgres::TableSql sql_;
};

}  // namespace

std::unique_ptr<Database> make_postgres_database(const Settings& settings) {
  return std::make_unique<PostgresDatabase>(settings);
}

}  // namespace sluice::queue::outbox
