#pragma once

#include <span>
#include <vector>

#include "host/stores/outbox/postgres/connection.hpp"
#include "host/stores/outbox/postgres/side_table.hpp"
#include "host/stores/outbox/postgres/table_sql.hpp"

namespace sluice::queue::outbox::postgres {

/// Writes marks as LockSession::mark says, in one transaction. `fence`: null, or the member in whose name they are
/// written; its heartbeat is part of the transaction, and where its name is gone nothing is written and
/// ErrorCode::unavailable says so.
Result<std::vector<MarkStatus>> write_marks(Connection& connection, const TableSql& sql, std::span<const Mark> marks,
                                            const Fence* fence, Deadline deadline);

}  // namespace sluice::queue::outbox::postgres
