#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "host/queue/source.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/ready_index.hpp"

/// Messages that can be claimed, as rows.
namespace sluice::queue::sqlite {

/// The version of a message that nobody has touched is 1, and that of its first lease one more.
inline constexpr std::int64_t kFirstLease = 2;

/// Of a half from its head on, as far as they are due at ?2: what `read_delivery` reads, and their places.
inline constexpr const char* kOldest =
    // CROSS JOIN keeps SQLite to this order of tables, whatever it thinks of their sizes.
    "SELECT r.seq, m.sent_at, m.id, m.content_type, m.message_group, m.attributes, m.body, d.version, d.receives, "
    "m.priority, r.sent_at FROM sluice_ready AS r CROSS JOIN sluice_messages AS m ON m.seq = r.seq LEFT JOIN "
    "sluice_deliveries AS d "
    "ON d.seq = r.seq WHERE r.half = ?1 AND r.sent_at <= ?2 ORDER BY r.sent_at, r.seq";

/// Whether rows say more than seq, sent_at, id, content type, group, attributes, body, version and receives, in this
/// order: the priority, which otherwise is the normal one.
enum class Row { plain, with_priority };

/// How it is handed out next, but for the lease. Nothing when its attributes cannot be read.
std::optional<Delivery> read_delivery(const Statement& row, Row kind);

}  // namespace sluice::queue::sqlite
