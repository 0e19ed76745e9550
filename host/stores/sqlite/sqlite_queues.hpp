#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/queue/queues.hpp"
#include "host/stores/sqlite/shared_store.hpp"

namespace sluice::queue::sqlite {

/// The queues of one SQLite file.
class SqliteQueues final : public Queues {
 public:
  SqliteQueues(SqliteOptions options, const Clock& clock, Random& random);

  /// Once, before anything else.
  Result<void> open() { return store_.open(); }

  Result<std::unique_ptr<Source>> open_source(const QueueAddress& address) override;
  Result<std::unique_ptr<Sender>> open_sender(const std::string& queue) override;
  Result<std::unique_ptr<Operator>> open_operator(const std::string& queue) override;
  Result<std::unique_ptr<NoticeBoard>> open_board(const std::string& queue) override;
  Result<std::unique_ptr<IdempotencyKeys>> open_keys(const std::string& queue) override;
  Result<std::vector<std::string>> made_by_messages(Deadline deadline) override;

 private:
  SharedStore store_;
};

}  // namespace sluice::queue::sqlite
