#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "host/stores/outbox/database.hpp"

namespace sluice::queue::outbox::mysql {

/// An outbox in MySQL or MariaDB. Immutable; `clock` outlives it. Asked of MariaDB 10.11; what MySQL 8 has otherwise is
/// written for it and untested.
class MysqlDatabase final : public Database {
 public:
  MysqlDatabase(Settings settings, const Clock& clock);

  Result<std::unique_ptr<LockSession>> open_locks(Deadline deadline) override;
  Result<std::unique_ptr<ReadSession>> open_reader(bool listen, Deadline deadline) override;
  Result<std::unique_ptr<DeskSession>> open_desk(Deadline deadline) override;
  std::string ddl() const override;

 private:
  const Settings settings_;
  const Clock& clock_;
};

}  // namespace sluice::queue::outbox::mysql
