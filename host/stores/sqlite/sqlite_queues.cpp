#include "host/stores/sqlite/sqlite_queues.hpp"

#include <utility>

#include "host/stores/sqlite/record_reader.hpp"
#include "host/stores/sqlite/sqlite_board.hpp"
#include "host/stores/sqlite/sqlite_keys.hpp"
#include "host/stores/sqlite/sqlite_operator.hpp"
#include "host/stores/sqlite/sqlite_sender.hpp"
#include "host/stores/sqlite/sqlite_source.hpp"

namespace sluice::queue {

namespace sqlite {

SqliteQueues::SqliteQueues(SqliteOptions options, const Clock& clock, Random& random)
    : store_(std::move(options), clock, random) {}

Result<std::unique_ptr<Source>> SqliteQueues::open_source(const QueueAddress& address) {
  if (auto refused = SharedStore::refused_name(address.queue)) {
    return std::move(*refused);
  }
  if (store_.read_only()) {
    return *store_.read_only();
  }
  return std::unique_ptr<Source>(std::make_unique<SqliteSource>(store_, address));
}

Result<std::unique_ptr<Sender>> SqliteQueues::open_sender(const std::string& queue) {
  if (auto refused = SharedStore::refused_name(queue)) {
    return std::move(*refused);
  }
  if (store_.read_only()) {
    return *store_.read_only();
  }
  return std::unique_ptr<Sender>(std::make_unique<SqliteSender>(store_, queue));
}

Result<std::unique_ptr<Operator>> SqliteQueues::open_operator(const std::string& queue) {
  if (auto refused = SharedStore::refused_name(queue)) {
    return std::move(*refused);
  }
  return std::unique_ptr<Operator>(std::make_unique<SqliteOperator>(store_, queue));
}

Result<std::unique_ptr<NoticeBoard>> SqliteQueues::open_board(const std::string& queue) {
  if (auto refused = SharedStore::refused_name(queue)) {
    return std::move(*refused);
  }
  return std::unique_ptr<NoticeBoard>(std::make_unique<SqliteBoard>(store_));
}

Result<std::unique_ptr<IdempotencyKeys>> SqliteQueues::open_keys(const std::string& queue) {
  if (auto refused = SharedStore::refused_name(queue)) {
    return std::move(*refused);
  }
  return std::unique_ptr<IdempotencyKeys>(std::make_unique<SqliteKeys>(store_, queue));
}

Result<std::vector<std::string>> SqliteQueues::made_by_messages(Deadline deadline) {
  // The call's and the store's together, for the caller may leave before the disk answers.
  const auto names = std::make_shared<std::vector<std::string>>();
  auto done = store_.read([names](RecordReader& reader) { *names = reader.queues(); }, deadline);
  return done ? Result<std::vector<std::string>>(std::move(*names)) : done.error();
}

}  // namespace sqlite

Result<std::unique_ptr<Queues>> open_sqlite_queues(const SqliteOptions& options, const Clock& clock, Random& random) {
  auto queues = std::make_unique<sqlite::SqliteQueues>(options, clock, random);
  SLUICE_PASS_ON(queues->open());
  return std::unique_ptr<Queues>(std::move(queues));
}

}  // namespace sluice::queue
