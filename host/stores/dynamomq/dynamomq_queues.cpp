#include "host/stores/dynamomq/dynamomq_queues.hpp"

#include <utility>

#include "host/stores/dynamomq/dynamomq_layout.hpp"
#include "host/stores/dynamomq/dynamomq_operator.hpp"
#include "host/stores/dynamomq/dynamomq_sender.hpp"
#include "host/stores/dynamomq/dynamomq_source.hpp"
#include "host/stores/dynamomq/dynamomq_wake_place.hpp"
#include "host/stores/table/record_layout.hpp"
#include "host/stores/table/ringers.hpp"
#include "host/stores/table/table_board.hpp"
#include "host/stores/table/table_keys.hpp"

namespace sluice::queue::dynamomq {
namespace {

table::QueueTable locate(const DynamoMqOptions& options, const std::string& queue) {
  const auto found = options.queues.find(queue);
  const TableLocation location = found == options.queues.end() ? TableLocation{} : found->second;
  return {queue, location.table.empty() ? queue : location.table,
          location.index.empty() ? std::string(kDefaultIndexName) : location.index, options.region};
}

class AllDynamoMqQueues final : public DynamoMqQueues {
 public:
  AllDynamoMqQueues(DynamoMqOptions options, dynamo::Client& client, const Clock& clock, Random& random)
      : options_(std::move(options)),
        random_(random),
        nonces_(options_.host, random),
        clock_(client, clock, options_.warn),
        runner_(client, clock, random, options_.warn),
        locate_([this](const std::string& queue) { return locate(options_, queue); }),
        layouts_([this](const std::string& queue) { return layout_of(queue); }),
        parts_{client, clock_, runner_, nonces_, locate_, layouts_},
        ringers_({.read = [this](const table::QueueTable& place,
                                 Deadline deadline) { return read_bells(parts_, place, deadline); },
                  .bell = [](const table::QueueTable& place, Half half) { return wake::bell_name(place.table, half); }},
                 options_.ring, clock_, random),
        doorbell_([this](const QueueAddress& address) {
          // A handler here may have sent to a queue of another layout.
          if (!options_.ring_elsewhere || !options_.ring_elsewhere(address)) {
            ringers_.rang(locate(options_, address.queue), address.half);
          }
        }) {}

  void ring(const QueueAddress& address) override { doorbell_.ring(address); }

  Result<std::unique_ptr<Source>> open_source(const QueueAddress& address) override {
    return std::unique_ptr<Source>(
        std::make_unique<DynamoMqSource>(parts_, state(address.queue), address.half, doorbell_));
  }

  Result<std::unique_ptr<Sender>> open_sender(const std::string& queue) override {
    return std::unique_ptr<Sender>(std::make_unique<DynamoMqSender>(parts_, state(queue).place, random_, doorbell_));
  }

  Result<std::unique_ptr<Operator>> open_operator(const std::string& queue) override {
    return std::unique_ptr<Operator>(std::make_unique<DynamoMqOperator>(parts_, state(queue), doorbell_));
  }

  Result<std::unique_ptr<NoticeBoard>> open_board(const std::string& queue) override {
    return std::unique_ptr<NoticeBoard>(
        std::make_unique<table::TableBoard>(parts_, locate(options_, queue), kLoneNames));
  }

  Result<std::unique_ptr<IdempotencyKeys>> open_keys(const std::string& queue) override {
    return std::unique_ptr<IdempotencyKeys>(
        std::make_unique<table::TableKeys>(parts_, locate(options_, queue), table::KeyScope{kLoneNames}));
  }

  Result<std::unique_ptr<wake::WakePlace>> open_wake_place(const std::string& queue) override {
    table::QueueTable place = locate(options_, queue);
    wake::Ringer* const ringer = ringers_.of(place);
    return std::unique_ptr<wake::WakePlace>(
        std::make_unique<DynamoMqWakePlace>(parts_, std::move(place), doorbell_, ringer));
  }

 private:
  QueueState& state(const std::string& queue) {
    const MutexLock lock(mutex_);
    auto& known = states_[queue];
    if (!known) {
      known = std::make_unique<QueueState>(locate(options_, queue), nonces_.tag(), random_);
    }
    return *known;
  }

  std::unique_ptr<table::RecordLayout> layout_of(const std::string& queue) override {
    auto other = options_.other_layouts ? options_.other_layouts(queue) : nullptr;
    return other ? std::move(other) : make_dynamomq_layout(parts_, locate(options_, queue));
  }

  // Fixed after construction.
  const DynamoMqOptions options_;
  Random& random_;
  table::NonceSource nonces_;
  table::TableClock clock_;
  table::StatementRunner runner_;
  const table::QueueLocator locate_;
  const table::RecordLayouts layouts_;
  const table::StoreParts parts_;

  // Synchronise themselves.
  table::Ringers ringers_;
  Doorbell doorbell_;

  Mutex mutex_;
  // Guarded by mutex_. States are never removed, so that references to them live as long as the queues.
  std::map<std::string, std::unique_ptr<QueueState>> states_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<DynamoMqQueues> make_dynamomq_queues(DynamoMqOptions options, dynamo::Client& client,
                                                     const Clock& clock, Random& random) {
  return std::make_unique<AllDynamoMqQueues>(std::move(options), client, clock, random);
}

}  // namespace sluice::queue::dynamomq
