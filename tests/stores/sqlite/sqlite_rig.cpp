#include "tests/stores/sqlite/sqlite_rig.hpp"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

#include "host/stores/sqlite/tombstones.hpp"

namespace sluice::test {

TempFolder::TempFolder() {
  // In memory where there is such a place: a busy disk takes a tenth of a second for each flush.
  const bool memory = ::access("/dev/shm", W_OK | X_OK) == 0;
  const std::filesystem::path root = memory ? "/dev/shm" : std::filesystem::temp_directory_path();
  std::string name = (root / "sluice-sqlite-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make a temporary folder");
  }
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::vector<std::string> raw_sql(const std::string& file, const std::string& sql) {
  sqlite3* handle = nullptr;
  std::vector<std::string> rows;
  const auto collect = [](void* out, int columns, char** values, char**) {
    static_cast<std::vector<std::string>*>(out)->push_back(columns > 0 && values[0] != nullptr ? values[0] : "");
    return 0;
  };
  std::string error;
  if (sqlite3_open(file.c_str(), &handle) != SQLITE_OK ||
      sqlite3_exec(handle, sql.c_str(), collect, &rows, nullptr) != SQLITE_OK) {
    error = sqlite3_errmsg(handle);
  }
  sqlite3_close(handle);
  if (!error.empty()) {
    throw std::runtime_error(error);
  }
  return rows;
}

namespace {

// Messages that are not done, and those that wait behind the head of their lane.
const std::string kViews =
    "CREATE TEMP VIEW unburied AS SELECT * FROM messages AS m WHERE NOT " + queue::sqlite::Tombstones::buried() +
    "; CREATE TEMP VIEW waiting AS SELECT c.* FROM chains AS c WHERE c.seq IN (SELECT seq FROM unburied) AND c.seq NOT "
    "IN (SELECT head FROM lanes WHERE head IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.seq = "
    "c.seq AND d.until IS NOT NULL); ";

}  // namespace

std::vector<std::string> broken_invariants(const std::string& file) {
  const std::vector<std::pair<std::string, std::string>> checks{
      {"damage: ", "SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'"},
      // The halves of priorities in `ready` are 2^40 apart.
      {"in no place: ",
       "SELECT seq FROM unburied AS m WHERE NOT EXISTS (SELECT 1 FROM ready AS r WHERE r.half % 1099511627776 = m.half "
       "AND r.sent_at = m.sent_at AND r.seq = m.seq) AND NOT EXISTS (SELECT 1 FROM suspects AS r WHERE r.half = m.half "
       "AND r.sent_at = "
       "m.sent_at AND r.seq = m.seq) AND NOT EXISTS (SELECT 1 FROM deliveries AS d WHERE d.seq = m.seq AND d.until IS "
       "NOT NULL) AND NOT EXISTS (SELECT 1 FROM waiting AS l WHERE l.seq = m.seq AND l.half = m.half AND l.sent_at = "
       "m.sent_at) AND NOT EXISTS (SELECT 1 FROM lanes AS l JOIN ready AS r ON r.seq = l.head AND r.half = l.half AND "
       "r.sent_at = l.turn WHERE l.head = m.seq) AND NOT EXISTS (SELECT 1 FROM lanes AS l JOIN suspects AS s ON s.seq "
       "= "
       "l.head AND s.half = l.half AND s.sent_at = l.turn WHERE l.head = m.seq)"},
      {"in a chain and elsewhere: ",
       "SELECT seq FROM waiting WHERE seq IN (SELECT seq FROM ready UNION ALL SELECT seq FROM suspects)"},
      {"link that leads nowhere: ",
       "SELECT seq FROM waiting WHERE seq NOT IN (SELECT first FROM lanes WHERE first IS NOT NULL UNION ALL SELECT "
       "next "
       "FROM waiting WHERE next IS NOT NULL)"},
      {"link without message: ", "SELECT seq FROM chains WHERE seq NOT IN (SELECT seq FROM messages)"},
      {"buried and elsewhere: ",
       "SELECT seq FROM messages AS m WHERE seq NOT IN (SELECT seq FROM unburied) AND seq IN (SELECT seq FROM ready "
       "UNION ALL SELECT seq FROM suspects UNION ALL SELECT seq FROM deliveries UNION ALL SELECT head FROM lanes UNION "
       "ALL SELECT first FROM lanes UNION ALL SELECT last FROM lanes UNION ALL SELECT seq FROM holds)"},
      {"tombstones without messages: ",
       "SELECT block FROM tombstones AS t WHERE NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.seq >> 12 = t.block)"},
      {"end of a chain that is no message: ",
       "SELECT first FROM lanes WHERE first IS NOT NULL AND first NOT IN (SELECT seq FROM waiting) UNION ALL "
       "SELECT last FROM lanes WHERE last IS NOT NULL AND last NOT IN (SELECT seq FROM waiting)"},
      {"broken chain: ",
       "SELECT l.seq FROM waiting AS l WHERE l.next IS NOT NULL AND NOT EXISTS (SELECT 1 FROM waiting AS n WHERE n.seq "
       "= l.next "
       "AND n.before = l.seq)"},
      {"lane that nobody moves on: ", "SELECT lane FROM lanes WHERE first IS NOT NULL AND others = 0 AND head IS NULL"},
      {"lane without its number: ",
       "SELECT lane FROM lanes AS l WHERE NOT EXISTS (SELECT 1 FROM lane_numbers AS n WHERE n.lane = l.lane AND "
       "n.number = l.number) UNION ALL SELECT lane FROM lane_numbers AS n WHERE NOT EXISTS (SELECT 1 FROM lanes AS l "
       "WHERE l.number = n.number)"},
      {"lane without a reason: ", "SELECT lane FROM lanes WHERE first IS NULL AND others = 0 AND head IS NULL"},
      {"in two places: ", "SELECT r.seq FROM ready AS r JOIN deliveries AS d ON d.seq = r.seq AND d.until IS NOT NULL"},
      {"suspect and ready: ", "SELECT seq FROM suspects WHERE seq IN (SELECT seq FROM ready)"},
      {"suspect in flight: ",
       "SELECT s.seq FROM suspects AS s JOIN deliveries AS d ON d.seq = s.seq WHERE d.until IS NOT NULL"},
      {"suspect without a reason: ",
       "SELECT seq FROM suspects WHERE seq NOT IN (SELECT seq FROM deliveries WHERE received_at IS NOT NULL OR "
       "suspect)"},
      {"ready though suspected: ",
       "SELECT seq FROM ready WHERE seq IN (SELECT seq FROM deliveries WHERE received_at IS NOT NULL OR suspect)"},
      {"ready without message: ", "SELECT seq FROM ready WHERE seq NOT IN (SELECT seq FROM messages)"},
      {"delivery without message: ", "SELECT seq FROM deliveries WHERE seq NOT IN (SELECT seq FROM messages)"},
      {"delivery of another place: ",
       "SELECT d.seq FROM deliveries AS d JOIN messages AS m ON m.seq = d.seq WHERE d.half <> m.half OR d.sent_at <> "
       "m.sent_at"},
      {"wrong count of half: ",
       "SELECT half FROM halves AS h WHERE h.messages <> (SELECT count(*) FROM unburied AS m WHERE m.half = h.half)"},
      {"half without count: ", "SELECT DISTINCT half FROM unburied WHERE half NOT IN (SELECT half FROM halves)"},
      {"id not indexed: ",
       "SELECT seq FROM unburied WHERE seq NOT IN (SELECT seq FROM ids) AND seq NOT IN (SELECT seq FROM ids_fresh)"},
      {"id twice: ", "SELECT id FROM unburied GROUP BY half / 2, id HAVING count(*) > 1"},
      {"seq not reserved: ", "SELECT seq FROM messages WHERE seq >= (SELECT next_seq FROM counters)"},
      {"wrong count of ids: ",
       "SELECT 'new' FROM counters WHERE new_ids <> (SELECT count(*) FROM ids_fresh) UNION ALL SELECT 'old' FROM "
       "counters "
       "WHERE old_ids <> (SELECT count(*) FROM ids)"},
  };
  std::vector<std::string> broken;
  for (const auto& [what, sql] : checks) {
    for (const std::string& row : raw_sql(file, kViews + sql)) {
      broken.push_back(what + row);
    }
  }
  return broken;
}

std::unique_ptr<StoreDesk> open_store(const std::string& file, const Clock& clock, Random& random,
                                      queue::SqliteOptions options) {
  options.path = file;
  options.durable = false;
  auto queues = queue::open_sqlite_queues(options, clock, random);
  if (!queues) {
    throw std::runtime_error(queues.error().message());
  }
  return std::make_unique<StoreDesk>(std::move(*queues));
}

std::vector<std::string> all_ids(Desk& store, const std::string& queue) {
  std::vector<std::string> ids;
  for (const auto half : {queue::Half::standard, queue::Half::dlq}) {
    queue::ListRequest request{.half = half, .limit = 500, .cursor = {}};
    do {
      const auto page = store.list(queue, request, Deadline::never());
      if (!page) {
        throw std::runtime_error(page.error().message());
      }
      for (const auto& stored : page->messages) {
        ids.push_back(stored.message.id);
      }
      request.cursor = page->next;
    } while (!request.cursor.empty());
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

}  // namespace sluice::test
