#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/queue/queues.hpp"

namespace sluice::test {

/// Passes everything on to other queues, which outlive it; tests override what they bend. Without any beneath it opens
/// nothing but what is overridden.
class ForwardingQueues : public queue::Queues {
 public:
  ForwardingQueues() = default;
  explicit ForwardingQueues(queue::Queues& beneath) : beneath_(&beneath) {}

  Result<std::unique_ptr<queue::Source>> open_source(const queue::QueueAddress& address) override {
    return beneath_ ? beneath_->open_source(address) : none();
  }
  Result<std::unique_ptr<queue::Source>> open_selected(const queue::QueueAddress& address,
                                                       const queue::Selection& selection) override {
    return beneath_ ? beneath_->open_selected(address, selection) : open_source(address);
  }
  Result<std::unique_ptr<queue::Sender>> open_sender(const std::string& queue) override {
    return beneath_ ? beneath_->open_sender(queue) : none();
  }
  Result<std::unique_ptr<queue::Operator>> open_operator(const std::string& queue) override {
    return beneath_ ? beneath_->open_operator(queue) : none();
  }
  Result<std::unique_ptr<queue::NoticeBoard>> open_board(const std::string& queue) override {
    return beneath_ ? beneath_->open_board(queue) : none();
  }
  Result<std::unique_ptr<queue::IdempotencyKeys>> open_keys(const std::string& queue) override {
    return beneath_ ? beneath_->open_keys(queue) : none();
  }
  Result<std::unique_ptr<queue::wake::WakePlace>> open_wake_place(const std::string& queue) override {
    return beneath_ ? beneath_->open_wake_place(queue) : none();
  }
  Result<std::vector<std::string>> made_by_messages(Deadline deadline) override {
    return beneath_ ? beneath_->made_by_messages(deadline) : none();
  }

 private:
  static Error none() { return {ErrorCode::internal, "not asked for here"}; }

  queue::Queues* const beneath_ = nullptr;
};

}  // namespace sluice::test
