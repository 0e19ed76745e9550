#include "host/stores/dynamomq/dynamomq_source.hpp"

#include <algorithm>
#include <utility>

#include "host/stores/dynamomq/claimer.hpp"
#include "host/stores/dynamomq/completion_writer.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"

namespace sluice::queue::dynamomq {

const SourceTraits& DynamoMqSource::traits() const { return kDynamoMqTraits; }

void DynamoMqSource::start(SourceEvents events) {
  if (events.on_ready) {
    auto subscription = doorbell_.subscribe(address_, std::move(events.on_ready));
    const MutexLock lock(mutex_);
    std::swap(subscription_, subscription);
  }
}

void DynamoMqSource::stop() {
  Doorbell::Subscription ended;
  {
    const MutexLock lock(mutex_);
    std::swap(subscription_, ended);
  }
  // Here it ends, without the lock: that waits for a call of the listener, which may be about to claim.
}

Result<Claimed> DynamoMqSource::claim(const ClaimRequest& request, Deadline deadline) {
  if (request.rules.max_in_flight > 0) {
    return Error(ErrorCode::invalid, "queue " + address_.queue +
                                         " lies in a DynamoDB table, where nobody can count what is in flight without "
                                         "reading all of it; leave max_in_flight out, or have the queue on SQLite");
  }
  if (request.rules.order == Order::queue) {
    in_sequence_ = true;
  }
  return Claimer(parts_, queue_.place, address_.half, state()).claim(request, deadline);
}

std::vector<SettleResult> DynamoMqSource::settle(std::span<const Completion> completions, Deadline deadline) {
  auto results = CompletionWriter(parts_, queue_.place, address_.half, state()).settle(completions, deadline);
  const bool any = std::any_of(results.begin(), results.end(),
                               [](const SettleResult& result) { return result.status == SettleStatus::applied; });
  if (in_sequence_ && any) {
    doorbell_.ring_here(address_);  // the next one may go; other hosts see it when they look
  }
  doorbell_.ring_settled(address_, completions, results);
  return results;
}

std::vector<ExtendResult> DynamoMqSource::extend(std::span<const Receipt> receipts, Duration visibility,
                                                 Deadline deadline) {
  return CompletionWriter(parts_, queue_.place, address_.half, state()).extend(receipts, visibility, deadline);
}

}  // namespace sluice::queue::dynamomq
