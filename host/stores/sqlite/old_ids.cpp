#include "host/stores/sqlite/old_ids.hpp"

#include <string>

#include "host/stores/sqlite/id_index.hpp"

namespace sluice::queue::sqlite {

void rehash_ids_with_time(Connection& connection) {
  Statement with_time(connection,
                      "SELECT seq, half / 2, id FROM messages WHERE length(id) = 36 AND substr(id, 15, 1) = '7'");
  Statement add(connection, "INSERT OR IGNORE INTO ids VALUES (?1, ?2)");
  Statement count(connection, "UPDATE counters SET old_ids = old_ids + ?1");
  std::int64_t added = 0;
  while (with_time.row()) {
    const std::string id(with_time.bytes(2));
    if (IdLookup::has_time(id)) {
      added += add.bind(IdLookup::hash(with_time.integer(1), id), with_time.integer(0)).run();
    }
  }
  with_time.reset();
  count.bind(added).run();
}

}  // namespace sluice::queue::sqlite
