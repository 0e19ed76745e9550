#include "host/stores/outbox/outbox_queues.hpp"

#include <utility>

#include "host/stores/outbox/outbox_operator.hpp"

namespace sluice::queue::outbox {

Result<std::unique_ptr<Source>> OutboxQueues::open_selected(const QueueAddress& address, const Selection& selection) {
  if (address.half == Half::dlq) {
    return Error(ErrorCode::invalid, "the dead letters of an outbox are redriven, and not worked on by a job");
  }
  return std::unique_ptr<Source>(std::make_unique<OutboxSource>(options_, selection, *database_, clock_, random_));
}

Result<std::unique_ptr<Sender>> OutboxQueues::open_sender(const std::string& queue) {
  return Error(ErrorCode::invalid,
               queue + " is written by its application alone, in the transaction that made the event; INSERT a row");
}

Result<std::unique_ptr<Operator>> OutboxQueues::open_operator(const std::string& /*queue*/) {
  return std::unique_ptr<Operator>(std::make_unique<OutboxOperator>(options_, *database_, clock_));
}

Result<std::unique_ptr<NoticeBoard>> OutboxQueues::open_board(const std::string& queue) {
  return Error(ErrorCode::invalid, queue + " holds no notices of hosts");
}

}  // namespace sluice::queue::outbox
