#include "tests/stores/sqlite/sqlite_rig.hpp"

#include <sqlite3.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

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

std::vector<std::string> broken_invariants(const std::string& file) {
  const std::vector<std::pair<std::string, std::string>> checks{
      {"damage: ", "SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'"},
      // The ranges of priorities and of suspects in `ready` are 2^40 apart.
      {"in no place: ",
       "SELECT seq FROM sluice_messages AS m WHERE NOT EXISTS (SELECT 1 FROM sluice_ready AS r WHERE r.half % "
       "1099511627776 = m.half AND r.sent_at = m.sent_at AND r.seq = m.seq) AND NOT EXISTS (SELECT 1 FROM "
       "sluice_deliveries AS d WHERE d.seq = m.seq AND d.until IS NOT NULL) AND NOT EXISTS (SELECT 1 FROM "
       "sluice_waiting AS w JOIN sluice_groups AS g ON g.number = w.group_number WHERE w.seq = m.seq AND g.half = "
       "m.half AND w.sent_at = m.sent_at) AND NOT EXISTS (SELECT 1 FROM sluice_groups AS g JOIN sluice_ready AS r ON "
       "r.seq = g.head AND r.half % 1099511627776 = g.half AND r.sent_at = g.turn WHERE g.head = m.seq)"},
      {"waiting and elsewhere: ",
       "SELECT seq FROM sluice_waiting WHERE seq IN (SELECT seq FROM sluice_ready UNION ALL SELECT head FROM "
       "sluice_groups WHERE head IS NOT NULL UNION ALL SELECT seq FROM sluice_deliveries WHERE until IS NOT NULL)"},
      {"waiting twice: ", "SELECT seq FROM sluice_waiting GROUP BY seq HAVING count(*) > 1"},
      {"waiting without message: ",
       "SELECT seq FROM sluice_waiting WHERE seq NOT IN (SELECT seq FROM sluice_messages)"},
      {"waiting for nobody: ",
       "SELECT seq FROM sluice_waiting AS w WHERE NOT EXISTS (SELECT 1 FROM sluice_groups AS g WHERE g.number = "
       "w.group_number "
       "AND (g.head IS "
       "NOT NULL OR g.others > 0))"},
      {"group without a reason: ", "SELECT id FROM sluice_groups WHERE others = 0 AND head IS NULL"},
      {"head without message: ",
       "SELECT id FROM sluice_groups WHERE head IS NOT NULL AND head NOT IN (SELECT seq FROM sluice_messages)"},
      {"in two places: ",
       "SELECT r.seq FROM sluice_ready AS r JOIN sluice_deliveries AS d ON d.seq = r.seq AND d.until IS NOT NULL"},
      {"ready twice: ", "SELECT seq FROM sluice_ready GROUP BY seq HAVING count(*) > 1"},
      {"suspect without a reason: ",
       "SELECT seq FROM sluice_ready WHERE half >= 4 * 1099511627776 AND seq NOT IN (SELECT seq FROM sluice_deliveries "
       "WHERE received_at IS NOT NULL OR marks & 1)"},
      {"ready though suspected: ",
       "SELECT seq FROM sluice_ready WHERE half < 4 * 1099511627776 AND seq IN (SELECT seq FROM sluice_deliveries "
       "WHERE received_at IS NOT NULL OR marks & 1)"},
      {"ready without message: ", "SELECT seq FROM sluice_ready WHERE seq NOT IN (SELECT seq FROM sluice_messages)"},
      {"delivery without message: ",
       "SELECT seq FROM sluice_deliveries WHERE seq NOT IN (SELECT seq FROM sluice_messages)"},
      {"delivery of another place: ",
       "SELECT d.seq FROM sluice_deliveries AS d JOIN sluice_messages AS m ON m.seq = d.seq WHERE d.half <> m.half OR "
       "d.sent_at <> "
       "m.sent_at"},
      {"wrong count of half: ",
       "SELECT half FROM sluice_halves AS h WHERE h.messages <> (SELECT count(*) FROM sluice_messages AS m WHERE "
       "m.half = h.half)"},
      {"half without count: ",
       "SELECT DISTINCT half FROM sluice_messages WHERE half NOT IN (SELECT half FROM sluice_halves)"},
      {"seq not reserved: ", "SELECT seq FROM sluice_messages WHERE seq >= (SELECT next_seq FROM sluice_counters)"},
  };
  std::vector<std::string> broken;
  for (const auto& [what, sql] : checks) {
    for (const std::string& row : raw_sql(file, sql)) {
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
