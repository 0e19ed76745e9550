#pragma once

#include <memory>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/stores/outbox/settings.hpp"
#include "host/stores/outbox/sql/sql_connection.hpp"

namespace sluice::queue::outbox::mysql {

/// A session with a server of MySQL or MariaDB.
Result<std::unique_ptr<sql::SqlConnection>> connect(const ConnectSettings& settings, const Clock& clock,
                                                    Deadline deadline);

}  // namespace sluice::queue::outbox::mysql
