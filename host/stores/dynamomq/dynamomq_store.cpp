#include "host/stores/dynamomq/dynamomq_store.hpp"

#include <algorithm>
#include <utility>

#include "base/shell_word.hpp"
#include "host/stores/dynamomq/changer.hpp"
#include "host/stores/dynamomq/claimer.hpp"
#include "host/stores/dynamomq/editor.hpp"
#include "host/stores/dynamomq/record_writer.hpp"
#include "host/stores/dynamomq/sender.hpp"
#include "host/stores/dynamomq/settlement_writer.hpp"

namespace sluice::queue::dynamomq {
namespace {

QueueTable locate(const DynamoMqOptions& options, const std::string& queue) {
  const auto found = options.queues.find(queue);
  const TableLocation location = found == options.queues.end() ? TableLocation{} : found->second;
  const std::string config = options.config.empty() ? "" : " --config " + shell_word(options.config);
  return {queue, location.table.empty() ? queue : location.table,
          location.index.empty() ? std::string(kDefaultIndexName) : location.index, options.region,
          location.options.empty() ? "--queue " + shell_word(queue) + config : location.options};
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
  void changed(const std::string& id, WallTime due) {
    forget(id);
    standard.expect(due);
    dlq.expect(due);
  }

  void put(const StoredMessage& record) {
    forget(record.message.id);
    lane(record.queue_type).expect(std::max(record.message.sent_at, record.invisible_until.value_or(WallTime{})));
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

  Result<QueueOverview> overview(const OverviewRequest& request, Deadline deadline) override {
    return Inspector(parts_, state(request.address.queue).place).overview(request, deadline);
  }

  std::vector<ChangeResult> change(const std::string& queue, std::span<const Change> changes,
                                   Deadline deadline) override {
    QueueState& known = state(queue);
    std::vector<Changer::Due> due;
    auto results = Changer(parts_, known.place).change(changes, deadline, due);
    for (const Change& change : changes) {
      if (change.action == ChangeAction::remove) {
        known.forget(change.id);
      } else {
        known.changed(change.id, later(parts_.clock.wall_now(), change.after));
      }
    }
    for (auto& [type, record] : due) {
      known.lane(type).keep(std::move(record));
    }
    return results;
  }

  Result<StoredMessage> edit(const std::string& queue, const std::string& id, std::int64_t version,
                             std::span<const ContentEdit> edits, Deadline deadline) override {
    QueueState& known = state(queue);
    auto edited = Editor(parts_, known.place).edit(id, version, edits, deadline);
    known.changed(id, parts_.clock.wall_now());
    return edited;
  }

  std::vector<PutResult> put(const std::string& queue, std::span<const StoredMessage> records, PutMode mode,
                             Deadline deadline) override {
    QueueState& known = state(queue);
    auto results = RecordWriter(parts_, known.place).put(records, mode, deadline);
    for (const StoredMessage& record : records) {
      known.put(record);
    }
    return results;
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
