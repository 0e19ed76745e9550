#include "tests/support/desk.hpp"

#include <utility>

#include "base/assert.hpp"

namespace sluice::test {

using namespace queue;

namespace {

template <typename Side>
std::unique_ptr<Side> taken(Result<std::unique_ptr<Side>> opened) {
  SLUICE_ASSERT(opened.has_value());
  return std::move(*opened);
}

}  // namespace

Source& Desk::source(const QueueAddress& address) {
  const MutexLock lock(mutex_);
  auto& source = sources_[address];
  if (!source) {
    source = taken(queues_.open_source(address));
  }
  return *source;
}

Sender& Desk::sender(const std::string& queue) {
  const MutexLock lock(mutex_);
  auto& sender = senders_[queue];
  if (!sender) {
    sender = taken(queues_.open_sender(queue));
  }
  return *sender;
}

Operator& Desk::oper(const std::string& queue) {
  const MutexLock lock(mutex_);
  auto& opened = operators_[queue];
  if (!opened) {
    opened = taken(queues_.open_operator(queue));
  }
  return *opened;
}

Result<std::vector<Delivery>> Desk::claim(const QueueAddress& address, std::size_t max, Duration visibility,
                                          Deadline deadline) {
  auto claimed = source(address).claim({.max = max, .visibility = visibility}, deadline);
  if (!claimed) {
    return claimed.error();
  }
  return std::move(claimed->deliveries);
}

std::vector<SettleResult> Desk::settle(const QueueAddress& address, std::span<const Completion> completions,
                                       Deadline deadline) {
  return source(address).settle(completions, deadline);
}

std::vector<ExtendResult> Desk::extend(const QueueAddress& address, std::span<const Receipt> receipts,
                                       Duration visibility, Deadline deadline) {
  return source(address).extend(receipts, visibility, deadline);
}

std::vector<SendResult> Desk::send(const std::string& queue, std::span<const NewMessage> messages, Deadline deadline) {
  return sender(queue).send(messages, deadline);
}

Result<StoredMessage> Desk::get(const std::string& queue, const std::string& id, Deadline deadline) {
  return oper(queue).get(id, deadline);
}

Result<ListPage> Desk::list(const std::string& queue, const ListRequest& request, Deadline deadline) {
  return oper(queue).list(request, deadline);
}

Result<QueueStats> Desk::stats(const QueueAddress& address, Deadline deadline) {
  return oper(address.queue).stats({.half = address.half}, deadline);
}

Result<QueueOverview> Desk::overview(const std::string& queue, const OverviewRequest& request, Deadline deadline) {
  return oper(queue).overview(request, deadline);
}

std::vector<ChangeResult> Desk::change(const std::string& queue, std::span<const Change> changes, Deadline deadline) {
  return oper(queue).change(changes, deadline);
}

Result<StoredMessage> Desk::edit(const std::string& queue, const std::string& id, std::int64_t version,
                                 std::span<const ContentEdit> edits, Deadline deadline) {
  return oper(queue).edit(id, version, edits, deadline);
}

std::vector<PutResult> Desk::put(const std::string& queue, std::span<const StoredMessage> records, PutMode mode,
                                 Deadline deadline) {
  return oper(queue).put(records, mode, deadline);
}

Result<void> Desk::change_one(const std::string& queue, Change change, Deadline deadline) {
  const auto results = oper(queue).change(std::span(&change, 1), deadline);
  if (results.front().status == ChangeStatus::applied) {
    return {};
  }
  return results.front().error;
}

Result<void> Desk::remove(const std::string& queue, const std::string& id, Deadline deadline) {
  return change_one(queue, {.id = id, .action = ChangeAction::remove}, deadline);
}

Result<void> Desk::dead_letter(const std::string& queue, const std::string& id, const Failure& failure,
                               Deadline deadline) {
  return change_one(queue, {.id = id, .action = ChangeAction::dead_letter, .failure = failure}, deadline);
}

Result<void> Desk::redrive(const std::string& queue, const std::string& id, Deadline deadline) {
  return change_one(queue, {.id = id, .action = ChangeAction::redrive}, deadline);
}

}  // namespace sluice::test
