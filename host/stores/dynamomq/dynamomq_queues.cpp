#include "host/stores/dynamomq/dynamomq_queues.hpp"

#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "host/stores/dynamomq/bell_items.hpp"
#include "host/stores/dynamomq/dynamomq_layout.hpp"
#include "host/stores/dynamomq/dynamomq_operator.hpp"
#include "host/stores/dynamomq/dynamomq_sender.hpp"
#include "host/stores/dynamomq/dynamomq_source.hpp"

namespace sluice::queue::dynamomq {
namespace {

table::QueueTable locate(const DynamoMqOptions& options, const std::string& queue) {
  const auto found = options.queues.find(queue);
  const TableLocation location = found == options.queues.end() ? TableLocation{} : found->second;
  return {queue, location.table.empty() ? queue : location.table,
          location.index.empty() ? std::string(kDefaultIndexName) : location.index, options.region};
}

/// An announcement costs a write unit for each KB that all of them take, which are one item of the table.
class DynamoMqQueues final : public table::TableQueues {
 public:
  DynamoMqQueues(DynamoMqOptions options, dynamo::Client& client, const Clock& clock, Random& random)
      : TableQueues({.host = options.host,
                     .locate = [options](const std::string& queue) { return locate(options, queue); },
                     .names = kLoneNames,
                     .bells = {.read = read_bells,
                               .bell = [](const table::QueueTable& place,
                                          Half half) { return wake::bell_name(place.table, half); }},
                     .warn = options.warn,
                     .ring = options.ring,
                     .other_layouts = options.other_layouts,
                     .ring_elsewhere = options.ring_elsewhere},
                    client, clock, random) {}

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

 private:
  std::unique_ptr<table::RecordLayout> own_layout(const std::string& queue) override {
    return make_dynamomq_layout(parts_, settings_.locate(queue));
  }

  Result<double> announce(const table::QueueTable& place, const wake::Announcement& announcement,
                          Deadline deadline) override {
    SLUICE_PASS_ON(clock_.be_sure(place, table::kTimeTolerance, deadline));
    leave_out(place, announcement.host);
    std::vector<std::string> outdated;
    {
      const MutexLock lock(mutex_);
      outdated = outdated_[place.table];
    }
    const auto done = parts_.client.update_item(announce_request(place.table, announcement, outdated), deadline);
    if (!done) {
      return table::store_error(place, done.error());
    }
    const MutexLock lock(mutex_);
    outdated_[place.table] = outdated_hosts(read_bell_item(done->item), clock_.wall_now());
    return done->capacity.write;
  }
  Result<void> withdraw(const table::QueueTable& place, const std::string& host, Deadline deadline) override {
    const auto done = parts_.client.update_item(withdraw_request(place.table, host), deadline);
    if (!done && done.error().kind != dynamo::ErrorKind::conditional_check_failed) {
      return table::store_error(place, done.error());
    }
    return {};
  }

  QueueState& state(const std::string& queue) {
    const MutexLock lock(mutex_);
    auto& known = states_[queue];
    if (!known) {
      known = std::make_unique<QueueState>(settings_.locate(queue), nonces_.tag(), random_);
    }
    return *known;
  }

  Mutex mutex_;
  // Guarded by mutex_. States are never removed, so that references to them live as long as the queues.
  std::map<std::string, std::unique_ptr<QueueState>> states_ SLUICE_GUARDED_BY(mutex_);
  /// By table: hosts whose announcements are worth nothing any more, as the last answer told.
  std::map<std::string, std::vector<std::string>> outdated_ SLUICE_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<table::TableQueues> make_dynamomq_queues(DynamoMqOptions options, dynamo::Client& client,
                                                         const Clock& clock, Random& random) {
  return std::make_unique<DynamoMqQueues>(std::move(options), client, clock, random);
}

}  // namespace sluice::queue::dynamomq
