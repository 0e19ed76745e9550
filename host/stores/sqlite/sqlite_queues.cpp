#include <utility>

#include "host/stores/sqlite/roles.hpp"
#include "host/stores/sqlite/shared_store.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"

namespace sluice::queue {

namespace sqlite {

namespace {

/// The queues of one SQLite file.
class SqliteQueues final : public Queues {
 public:
  explicit SqliteQueues(std::unique_ptr<SharedStore> store) : store_(std::move(store)) {}
  ~SqliteQueues() override { SharedStore::close(std::move(store_)); }

  Result<std::unique_ptr<Source>> open_source(const QueueAddress& address) override {
    SLUICE_PASS_ON(writable(address.queue));
    return make_source(*store_, address);
  }
  Result<std::unique_ptr<Sender>> open_sender(const std::string& queue) override {
    SLUICE_PASS_ON(writable(queue));
    return make_sender(*store_, queue);
  }
  Result<std::unique_ptr<Operator>> open_operator(const std::string& queue) override {
    SLUICE_PASS_ON(named(queue));
    return make_operator(*store_, queue);
  }
  Result<std::unique_ptr<NoticeBoard>> open_board(const std::string& queue) override {
    SLUICE_PASS_ON(named(queue));
    return make_board(*store_);
  }
  Result<std::unique_ptr<IdempotencyKeys>> open_keys(const std::string& queue) override {
    SLUICE_PASS_ON(named(queue));
    return make_keys(*store_, queue);
  }
  Result<std::vector<std::string>> made_by_messages(Deadline deadline) override {
    return store_->read<std::vector<std::string>>([](RecordReader& reader) { return reader.queues(); }, deadline);
  }

 private:
  static Result<void> named(const std::string& queue) {
    auto refused = refused_name(queue);
    return refused ? Result<void>(std::move(*refused)) : Result<void>();
  }
  Result<void> writable(const std::string& queue) {
    SLUICE_PASS_ON(named(queue));
    return store_->read_only() ? Result<void>(*store_->read_only()) : Result<void>();
  }

  std::unique_ptr<SharedStore> store_;
};

}  // namespace

}  // namespace sqlite

Result<std::unique_ptr<Queues>> open_sqlite_queues(const SqliteOptions& options, const Clock& clock, Random& random) {
  auto store = std::make_unique<sqlite::SharedStore>(options, clock, random);
  const auto opened = store->open();
  auto queues = std::make_unique<sqlite::SqliteQueues>(std::move(store));
  return opened ? Result<std::unique_ptr<Queues>>(std::move(queues)) : opened.error();
}

}  // namespace sluice::queue
