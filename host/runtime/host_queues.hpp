#pragma once

#include <boost/core/noncopyable.hpp>

#include "dynamo/connection.hpp"
#include "host/cost/cost_book.hpp"
#include "host/observe/metrics.hpp"
#include "host/stores/outbox/outbox_queues.hpp"
#include "host/stores/table/table_queues.hpp"

namespace sluice::runtime {

/// A DynamoDB client with all it stands on, which counts what it spends.
///
/// Thread-safe as the client is. Destruction ends what is under way.
class DynamoDbConnection : boost::noncopyable {
 public:
  struct Options {
    std::string region{};                         ///< empty: from AWS's usual places
    std::string endpoint{};                       ///< empty: the same, else AWS's own
    std::string region_setting{};                 ///< how somebody names a region, for the message that none is named
    observe::Metrics* metrics = nullptr;          ///< told of every request; may be null
    cost::CostBook* book = nullptr;               ///< told of what every answer reports; may be null
    std::map<std::string, std::string> queues{};  ///< by table, where the queue's name is another than the table's
  };

  /// Where the host file says that a store is, and the tables of its queues. Empty: the default one.
  static Options options_of(const config::HostConfig& host, const std::string& store);

  /// Makes no request yet. `invalid` when neither region nor endpoint is named anywhere, or AWS's files cannot be read.
  /// The references, the metrics and the book outlive the connection.
  static Result<std::unique_ptr<DynamoDbConnection>> open(const Options& options, const Clock& clock, Random& random);

  dynamo::Client& client() { return connection_->client(); }
  /// As it was named; empty where an endpoint makes up for it.
  const std::string& region() const { return connection_->region(); }
  /// What all requests so far came to.
  cost::Spent cost() const {
    const MutexLock lock(mutex_);
    return cost_;
  }

 private:
  explicit DynamoDbConnection(const Options& options)
      : metrics_(options.metrics), book_(options.book), queues_(options.queues) {}

  void count(const dynamo::CallRecord& call);

  observe::Metrics* const metrics_;
  cost::CostBook* const book_;
  const std::map<std::string, std::string> queues_;
  mutable Mutex mutex_;
  cost::Spent cost_ SLUICE_GUARDED_BY(mutex_);

  // Last: its destruction ends the calls that `count` is told of.
  std::unique_ptr<dynamo::Connection> connection_;
};

/// This host's name in failures and among a table's writers: the host file's, else the machine's.
std::string host_name(const config::HostConfig& config);

/// Why one transaction cannot end a message and send to another queue: it lies in another store. Nothing: it can, or
/// none is needed, as of an outbox.
std::optional<Error> beyond_store(const config::HostConfig& config, const std::string& from, const std::string& to);

/// What an outbox is given, and what is told of it. The references, metrics and book outlive it.
struct OutboxSeams {
  const Clock& clock;
  Random& random;
  observe::Metrics* metrics = nullptr;  ///< of rows, and of requests to DynamoDB
  std::function<void(const std::string&)> report{};
  cost::CostBook* book = nullptr;         ///< of what those cost
  std::vector<config::JobConfig> jobs{};  ///< whose rows count, for whoever opens no source of theirs
};

/// An outbox with what it stands on.
struct OpenOutbox {
  std::unique_ptr<DynamoDbConnection> connection;  ///< of kind = "dynamodb"; otherwise null
  std::unique_ptr<queue::outbox::OutboxQueues> queues;
};

/// Connects to nothing yet. `queue_missing` for an unknown name, `invalid` for what the kind cannot do.
Result<OpenOutbox> open_outbox(const config::HostConfig& host, const std::string& name, OutboxSeams seams);

/// Which rows the job takes.
queue::Selection selection_of(const config::JobConfig& job);

/// The queues of a host file, each in its store; and its outboxes, as "outbox:NAME". A store is opened with the first
/// thing in it, DynamoDB without a request; where that fails the next call tries again. Thread-safe.
class HostQueues final : public queue::Queues, public queue::Owners {
 public:
  /// What a store has to say to people while it works, from any thread: one line each, seldom.
  using Report = std::function<void(const std::string& warning)>;

  /// The references, and `metrics` and `book` unless they are null, must outlive it.
  HostQueues(const config::HostConfig& config, const Clock& clock, Random& random, observe::Metrics* metrics,
             Report report = {}, cost::CostBook* book = nullptr);

  /// By the jobs' lists an outbox's rows count as pending, also where nobody opens sources of theirs. Before any queue
  /// is opened.
  void count_for(std::vector<config::JobConfig> jobs) { jobs_ = std::move(jobs); }

  Result<std::unique_ptr<queue::Source>> open_source(const queue::QueueAddress& address) override;
  Result<std::unique_ptr<queue::Source>> open_selected(const queue::QueueAddress& address,
                                                       const queue::Selection& selection) override;
  Result<std::unique_ptr<queue::Sender>> open_sender(const std::string& queue) override;
  Result<std::unique_ptr<queue::Operator>> open_operator(const std::string& queue) override {
    const auto store = store_of(queue);
    return store ? (*store)->open_operator(queue) : store.error();
  }
  Result<std::unique_ptr<queue::NoticeBoard>> open_board(const std::string& queue) override;

  Result<std::unique_ptr<queue::IdempotencyKeys>> open_keys(const std::string& queue) override {
    const auto store = store_of(queue);
    return store ? (*store)->open_keys(queue) : store.error();
  }
  Result<std::unique_ptr<queue::wake::WakePlace>> open_wake_place(const std::string& queue) override {
    const auto store = store_of(queue);
    return store ? (*store)->open_wake_place(queue) : store.error();
  }

  const std::string& incarnation() const override { return incarnation_; }
  /// Opens the stores of those of the queues that hosts own shards of.
  Result<void> ended(const queue::EndedOwner& owner, Deadline deadline) override;

  /// A queue whose hosts own parts of it, to be carried elsewhere; null for any other, which needs no such thing.
  Result<std::unique_ptr<queue::MoveOwnership>> take_ownership(const std::string& queue,
                                                               const std::vector<queue::Half>& halves);

  /// Those that messages have made in one of the stores, "" being the default one. None in a file or table that is not
  /// there yet, and in a table that one may not read and has no queue in.
  Result<std::vector<std::string>> made_by_messages_in(const std::string& store, Deadline deadline);
  /// Those of all its files, each under the name by which it is opened. A table for such queues that was not there, or
  /// that one may not read and has no queue in, is looked for again after an hour: it may come, and whoever asks again
  /// and again would fail each time.
  Result<std::vector<std::string>> made_by_messages(Deadline deadline) override;
  /// Whether somebody knows the queue: the host file, a job's file (which says what it draws from and where its
  /// schedules send to), or its store, a file of ours or a leased table, by a message that was sent to it. A table of
  /// its own has to be there anyway, which its store tells by the first request. Otherwise `not_found`, with the name
  /// that was probably meant, and with `mend`.
  Result<void> check_known(const std::string& queue, const std::string& mend, Deadline deadline);
  /// Why a handler may not send to it: nobody knows it, and handlers do not make queues. Nothing: he may.
  std::optional<Error> unknown_to_handlers(const std::string& queue, Deadline deadline);

  /// What all its stores have spent at DynamoDB so far; nothing where none of those that are open is there.
  std::optional<cost::Spent> cost() const;

 private:
  /// A store with what it stands on.
  struct OpenStore {
    std::unique_ptr<DynamoDbConnection> connection{};  ///< null for SQLite
    std::unique_ptr<queue::Queues> queues{};
    queue::table::TableQueues* tables = nullptr;  ///< the same; null but for DynamoDB
  };
  /// `store` is null until it is open; then it stays.
  struct Slot {
    bool opening = false;
    std::unique_ptr<OpenStore> store;
  };

  Result<OpenStore*> open_store(const std::string& name);
  /// As made_by_messages_in; a table that one may not read is an error.
  Result<std::vector<std::string>> ask_for_made(const std::string& store, Deadline deadline);
  bool has_no_table_for_made(const std::string& store) const;
  /// It has none, and those who ask again and again need not look again soon.
  std::vector<std::string> none_made(const std::string& store);
  /// Of a queue that its own store does not know: another store that does, and how to say so; empty: none does.
  std::string known_elsewhere(const std::string& queue, Deadline deadline);
  /// What opens the queue, of the store that it lies in.
  Result<queue::Queues*> store_of(const std::string& queue) {
    const auto store = open_store(config::outbox_named(queue) ? queue : config_.queue(queue).store);
    if (!store) {
      return store.error();
    }
    return (*store)->queues.get();
  }
  Result<std::unique_ptr<OpenStore>> open(const std::string& name) const;
  Result<std::unique_ptr<OpenStore>> open_dynamodb(const std::string& name) const;

  const config::HostConfig& config_;
  const Clock& clock_;
  Random& random_;
  observe::Metrics* const metrics_;
  const Report report_;
  cost::CostBook* const book_;
  const std::string incarnation_;
  std::vector<config::JobConfig> jobs_;  ///< fixed before any queue is opened

  mutable Mutex mutex_;
  Condition changed_;
  /// By the store's name, which is empty for the default one; an outbox is a store of its own, under its queue's name.
  std::map<std::string, Slot> slots_ SLUICE_GUARDED_BY(mutex_);
  std::set<std::string> known_ SLUICE_GUARDED_BY(mutex_);  ///< queues that were found to be so
  /// By store: when its table for queues that messages make was found not to be there, or not to be ours.
  std::map<std::string, SteadyTime> absent_at_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace sluice::runtime
