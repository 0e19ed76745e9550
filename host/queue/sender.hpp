#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/queue/message.hpp"

namespace sluice::queue {

enum class SendStatus {
  sent,
  deduplicated,  ///< accepted and not stored: `id` is the message that was sent first with its deduplication id or key
  duplicate_id,  ///< a message of that id is there already
  failed,
};

struct SendResult {
  SendStatus status = SendStatus::sent;
  std::string id;
  Error error;
};

/// Puts messages into one queue. Thread-safe.
class Sender {
 public:
  Sender() = default;
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;
  virtual ~Sender() = default;

  /// Stores messages; one result each, in their order. Once `sent` is returned the message is durable, and the hosts
  /// that wait for it have been told. Blocks, and has returned by the deadline.
  virtual std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline) = 0;
};

}  // namespace sluice::queue
