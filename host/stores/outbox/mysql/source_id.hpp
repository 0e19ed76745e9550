#pragma once

#include <string>

#include "host/stores/outbox/mysql/session.hpp"
#include "host/stores/outbox/rows.hpp"

/// The id of an outbox's database. Neither MySQL nor MariaDB has one that a fail-over leaves alone, so that it is kept
/// in a table of one row beside the outbox, which is replicated with it.
namespace sluice::queue::outbox::mysql {

std::string source_table_ddl(const TableSettings& settings);
Result<SourceId> source_id_of(Session& session, const TableSettings& settings, Deadline deadline);

}  // namespace sluice::queue::outbox::mysql
