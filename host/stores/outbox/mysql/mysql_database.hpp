#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/stores/outbox/database.hpp"

namespace sluice::queue::outbox::mysql {

/// An outbox in MySQL or MariaDB. Immutable; the references outlive it. Asked of MariaDB 10.11; what MySQL 8 has
/// otherwise is written for it and untested.
class MysqlDatabase final : public Database {
 public:
  MysqlDatabase(Settings settings, const Clock& clock, Random& random);

  Result<std::unique_ptr<LockSession>> open_locks(Deadline deadline) override;
  Result<std::unique_ptr<ReadSession>> open_reader(bool listen, Deadline deadline) override;
  Result<std::unique_ptr<AdminSession>> open_admin(Deadline deadline) override;
  std::string ddl() const override;

 private:
  const Settings settings_;
  const Clock& clock_;
  Random& random_;
};

}  // namespace sluice::queue::outbox::mysql
