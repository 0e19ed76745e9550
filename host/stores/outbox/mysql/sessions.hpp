#pragma once

#include <memory>

#include "base/clock.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/mysql/session.hpp"

namespace sluice::queue::outbox::mysql {

// The three kinds of session, each on a connection of its own. `clock` outlives them.
std::unique_ptr<LockSession> make_lock_session(std::unique_ptr<Session> session, const TableSettings& table,
                                               const Clock& clock);
std::unique_ptr<ReadSession> make_read_session(std::unique_ptr<Session> session, const TableSettings& table,
                                               const Clock& clock);
std::unique_ptr<AdminSession> make_admin_session(std::unique_ptr<Session> session, const TableSettings& table,
                                                 bool side_table);

}  // namespace sluice::queue::outbox::mysql
