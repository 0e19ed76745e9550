#include "host/stores/sqlite/ready_rows.hpp"

#include <utility>

#include "host/stores/sqlite/row_codec.hpp"
#include "host/stores/sqlite/times.hpp"

namespace sluice::queue::sqlite {

std::optional<Delivery> read_delivery(const Statement& row, Row kind) {
  auto attributes = decode_attributes(row.bytes(5));
  if (!attributes) {
    return std::nullopt;
  }
  Delivery delivery;
  Message& message = delivery.message;
  message.sent_at = loaded(row.integer(1));
  message.id = row.bytes(2);
  if (!row.is_null(3)) {
    message.content_type = row.bytes(3);
  }
  message.group = row.bytes(4);
  message.attributes = std::move(*attributes);
  message.body = row.bytes(6);
  if (kind == Row::with_priority) {
    message.priority = stored_priority(row.optional_integer(9));
  }
  const bool again = !row.is_null(7);
  message.attempt = again ? loaded_count(row.integer(8) + 1) : 1;
  delivery.receipt = {.id = message.id, .version = again ? row.integer(7) + 1 : kFirstLease, .locator = row.integer(0)};
  return delivery;
}

}  // namespace sluice::queue::sqlite
