#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/cost/cost_book.hpp"
#include "host/observe/metrics.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/queues.hpp"
#include "host/runtime/dynamodb_connection.hpp"
#include "host/stores/outbox/outbox_queues.hpp"

namespace sluice::runtime {

/// What this host is called in failures and among the writers of a table: the host file's name for it, else the
/// machine's.
std::string host_name(const config::HostConfig& config);

/// Why a message cannot be sent to a queue in one transaction with the end of another queue's message: it lies in
/// another store. Nothing: it can.
std::optional<Error> beyond_store(const config::HostConfig& config, const std::string& from, const std::string& to);

/// From [outbox.NAME] of a host file to the store that it describes.
/// What is told of an outbox and what it is given. The references, and `metrics` and `book` unless they are null,
/// outlive it.
struct OutboxSeams {
  const Clock& clock;
  Random& random;
  observe::Metrics* metrics = nullptr;  ///< of rows, and of requests to DynamoDB
  std::function<void(const std::string&)> report{};
  cost::CostBook* book = nullptr;  ///< of what those cost
};

/// An outbox with what it stands on.
struct OpenOutbox {
  std::unique_ptr<DynamoDbConnection> connection;  ///< of kind = "dynamodb"; otherwise null
  std::unique_ptr<queue::outbox::OutboxQueues> queues;
};

/// Connects to nothing yet. ErrorCode::queue_missing where the host file has none of that name, `invalid` for what the
/// kind cannot do.
Result<OpenOutbox> open_outbox(const config::HostConfig& host, const std::string& name, OutboxSeams seams);

/// Which rows the job takes.
queue::Selection selection_of(const config::JobConfig& job);

/// The queues of a host file, each in the store that the file names for it; and its outboxes, as "outbox:NAME".
///
/// A store is opened when something of it is opened for the first time: SQLite's file is then opened or made, while
/// DynamoDB gets no request yet. Where that fails the next call tries again. Thread-safe.
class HostQueues final : public queue::Queues, public queue::Owners {
 public:
  /// What a store has to say to people while it works, from any thread: one line each, seldom.
  using Report = std::function<void(const std::string& warning)>;

  /// The references, and `metrics` and `book` unless they are null, must outlive it.
  HostQueues(const config::HostConfig& config, const Clock& clock, Random& random, observe::Metrics* metrics,
             Report report = {}, cost::CostBook* book = nullptr);
  ~HostQueues() override;

  Result<std::unique_ptr<queue::Source>> open_source(const queue::QueueAddress& address) override;
  Result<std::unique_ptr<queue::Source>> open_selected(const queue::QueueAddress& address,
                                                       const queue::Selection& selection) override;
  Result<std::unique_ptr<queue::Sender>> open_sender(const std::string& queue) override;
  Result<std::unique_ptr<queue::Operator>> open_operator(const std::string& queue) override;
  Result<std::unique_ptr<queue::NoticeBoard>> open_board(const std::string& queue) override;

  Result<std::unique_ptr<queue::IdempotencyKeys>> open_keys(const std::string& queue) override;
  Result<std::unique_ptr<queue::wake::WakePlace>> open_wake_place(const std::string& queue) override;

  const std::string& incarnation() const override { return incarnation_; }
  /// Opens the stores of those of the queues that hosts own shards of.
  Result<void> ended(const queue::EndedOwner& owner, Deadline deadline) override;

  /// A queue whose hosts own parts of it, to be carried elsewhere; null for any other, which needs no such thing.
  Result<std::unique_ptr<queue::MoveOwnership>> take_custody(const std::string& queue,
                                                             const std::vector<queue::Half>& halves);

  /// The queues that messages have made in one store; "" is the default one.
  Result<std::vector<std::string>> made_by_messages_in(const std::string& store, Deadline deadline);

  /// What all its stores have spent at DynamoDB so far; nothing where none of those that are open is there.
  std::optional<DynamoDbCost> cost() const;

 private:
  /// A store with what it stands on.
  class OpenStore;
  /// `store` is null until it is open; then it stays.
  struct Slot {
    bool opening = false;
    std::unique_ptr<OpenStore> store;
  };

  Result<OpenStore*> open_store(const std::string& name);
  /// The open store that the queue lies in, and the one of that name.
  Result<queue::Queues*> store_of(const std::string& queue);
  Result<queue::Queues*> store_named(const std::string& name);
  Result<std::unique_ptr<OpenStore>> open(const std::string& name) const;
  Result<std::unique_ptr<OpenStore>> open_outbox_named(const std::string& name) const;
  Result<std::unique_ptr<OpenStore>> open_sqlite(const config::StoreConfig& store) const;
  Result<std::unique_ptr<OpenStore>> open_dynamodb(const std::string& name) const;

  // Fixed after construction.
  const config::HostConfig& config_;
  const Clock& clock_;
  Random& random_;
  observe::Metrics* const metrics_;
  const Report report_;
  cost::CostBook* const book_;
  const std::string incarnation_;

  mutable Mutex mutex_;
  Condition changed_;
  /// By the store's name, which is empty for the default one; an outbox is a store of its own, under its queue's name.
  std::map<std::string, Slot> slots_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::runtime
