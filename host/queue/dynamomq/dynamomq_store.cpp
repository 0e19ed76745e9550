#include "host/queue/dynamomq/dynamomq_store.hpp"

#include <utility>

#include "host/queue/dynamomq/claimer.hpp"
#include "host/queue/dynamomq/editor.hpp"
#include "host/queue/dynamomq/sender.hpp"
#include "host/queue/dynamomq/settlement_writer.hpp"

namespace sluice::queue::dynamomq {
namespace {

QueueTable locate(const DynamoMqOptions& options, const std::string& queue) {
  const auto found = options.queues.find(queue);
  const TableLocation location = found == options.queues.end() ? TableLocation{} : found->second;
  return {queue, location.table.empty() ? queue : location.table,
          location.index.empty() ? std::string(kDefaultIndexName) : location.index, options.region};
}

/// One queue: where it lies, and what is known about its two halves.
struct QueueState {
  QueueState(QueueTable table, const std::string& tag, Random& random)
      : place(std::move(table)), standard(tag, random), dlq(tag, random) {}

  Lane& lane(QueueType type) { return type == QueueType::dlq ? dlq : standard; }
  void forget(const std::string& id) {
    standard.forget(id);
    dlq.forget(id);
  }

  const QueueTable place;
  Lane standard;
  Lane dlq;
};

class DynamoMqStore final : public Store {
 public:
  DynamoMqStore(DynamoMqOptions options, dynamo::Client& client, const Clock& clock, Random& random)
      : options_(std::move(options)),
        random_(random),
        nonces_(options_.host, random),
        runner_(client, clock, random),
        parts_{client, clock, runner_, nonces_} {}

  Result<std::vector<Claim>> claim(const QueueAddress& address, std::size_t max, Duration visibility,
                                   Deadline deadline) override {
    QueueState& queue = state(address.queue);
    return Claimer(parts_, queue.place, address.type, queue.lane(address.type)).claim(max, visibility, deadline);
  }

  std::vector<SettleResult> settle(const QueueAddress& address, std::span<const Settlement> settlements,
                                   Deadline deadline) override {
    QueueState& queue = state(address.queue);
    return SettlementWriter(parts_, queue.place, address.type, queue.lane(address.type)).settle(settlements, deadline);
  }

  std::vector<ExtendResult> extend(const QueueAddress& address, std::span<const Receipt> receipts, Duration visibility,
                                   Deadline deadline) override {
    QueueState& queue = state(address.queue);
    return SettlementWriter(parts_, queue.place, address.type, queue.lane(address.type))
        .extend(receipts, visibility, deadline);
  }

  std::vector<SendResult> send(const std::string& queue, std::span<const NewMessage> messages,
                               Deadline deadline) override {
    return Sender(parts_, state(queue).place, random_).send(messages, deadline);
  }

  Result<StoredMessage> get(const std::string& queue, const std::string& id, Deadline deadline) override {
    return Inspector(parts_, state(queue).place).get(id, deadline);
  }

  Result<ListPage> list(const ListRequest& request, Deadline deadline) override {
    return Inspector(parts_, state(request.address.queue).place).list(request, deadline);
  }

  Result<QueueStats> stats(const QueueAddress& address, Deadline deadline) override {
    return Inspector(parts_, state(address.queue).place).stats(address.type, deadline);
  }

  Result<StoredMessage> edit(const std::string& queue, const StoredMessage& expected, const NewMessage& content,
                             Deadline deadline) override {
    QueueState& known = state(queue);
    auto edited = Editor(parts_, known.place).edit(expected, content, deadline);
    known.forget(expected.message.id);
    return edited;
  }

  Result<void> remove(const std::string& queue, const std::string& id, Deadline deadline) override {
    QueueState& known = state(queue);
    const auto removed = Editor(parts_, known.place).remove(id, deadline);
    known.forget(id);
    return removed;
  }

  Result<BulkResult> purge(const QueueAddress& address, const BulkProgress& progress, Deadline deadline) override {
    QueueState& known = state(address.queue);
    const auto purged = Editor(parts_, known.place).purge(address.type, progress, deadline);
    known.lane(address.type).restart();
    return purged;
  }

  Result<void> dead_letter(const std::string& queue, const std::string& id, const Failure& failure,
                           Deadline deadline) override {
    QueueState& known = state(queue);
    const auto moved = Editor(parts_, known.place).dead_letter(id, failure, deadline);
    known.forget(id);
    return moved;
  }

  Result<void> redrive(const std::string& queue, const std::string& id, Deadline deadline) override {
    QueueState& known = state(queue);
    const auto moved = Editor(parts_, known.place).redrive(id, deadline);
    known.forget(id);
    return moved;
  }

 private:
  QueueState& state(const std::string& queue) {
    const MutexLock lock(mutex_);
    auto& known = queues_[queue];
    if (!known) {
      known = std::make_unique<QueueState>(locate(options_, queue), nonces_.tag(), random_);
    }
    return *known;
  }

  // Fixed after construction.
  const DynamoMqOptions options_;
  Random& random_;
  NonceSource nonces_;
  StatementRunner runner_;
  const StoreParts parts_;

  Mutex mutex_;
  // Guarded by mutex_. States are never removed, so that references to them live as long as the store.
  std::map<std::string, std::unique_ptr<QueueState>> queues_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Store> make_dynamomq_store(DynamoMqOptions options, dynamo::Client& client, const Clock& clock,
                                           Random& random) {
  return std::make_unique<DynamoMqStore>(std::move(options), client, clock, random);
}

}  // namespace sluice::queue::dynamomq
