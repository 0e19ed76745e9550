#pragma once

#include <memory>
#include <string>

#include "host/stores/outbox/sql/sql_server.hpp"

namespace sluice::queue::outbox::postgres {

/// Advisory locks of the session. `server` outlives them.
std::unique_ptr<LockSession> make_locks(sql::SqlServer& server, std::unique_ptr<sql::SqlConnection> connection);

/// What is to be said where sessions are dealt out to several clients.
Error shared_sessions(ErrorCode code);
/// And where there is no table; `user`: as whom it was looked for.
Error no_table(const sql::SqlTable& table, const std::string& user = {});

}  // namespace sluice::queue::outbox::postgres
