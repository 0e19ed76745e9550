#pragma once

#include <string>
#include <vector>

#include "host/stores/outbox/mysql/rows_sql.hpp"
#include "host/stores/outbox/mysql/session.hpp"

namespace sluice::queue::outbox::mysql {

/// What makes the table and the index that its pending rows are found by: MySQL has no partial one.
std::string ddl_of(const TableSettings& settings);

/// What is wrong with the table, and with its side table where there is to be one, or could be better. Fatal ones
/// first.
Result<std::vector<Finding>> inspect_table(Session& session, const RowsSql& sql, bool side_table, Deadline deadline);

}  // namespace sluice::queue::outbox::mysql
