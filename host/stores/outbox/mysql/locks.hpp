#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "host/stores/outbox/sql/sql_server.hpp"

namespace sluice::queue::outbox::mysql {

/// Locks that the session has by name. `place`: where the server answers, for errors. The references outlive them.
std::unique_ptr<LockSession> make_locks(sql::SqlServer& server, std::unique_ptr<sql::SqlConnection> connection,
                                        std::string place, const Clock& clock);

}  // namespace sluice::queue::outbox::mysql
