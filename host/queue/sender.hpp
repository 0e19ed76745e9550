#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
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
  bool left = false;  ///< failed, and was not tried: one before it in its group is not there, or may not be
};

/// The places of messages in rounds that are to be sent one after the other: in each one of a group, and those without.
std::vector<std::vector<std::size_t>> rounds_of(std::span<const NewMessage> messages);

/// Of a message that was not sent because of the one before it in its group.
SendResult left_behind(std::string id);

/// Puts messages into one queue. Thread-safe.
class Sender : boost::noncopyable {
 public:
  virtual ~Sender() = default;

  /// Stores messages; one result each, in their order. Once `sent` is returned the message is durable, and the hosts
  /// that wait for it have been told. Blocks, and has returned by the deadline.
  virtual std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline) = 0;
  /// As `send`, and of a group none is stored behind one that was not, or may not have been: it is `left`.
  virtual std::vector<SendResult> send_in_order(std::span<const NewMessage> messages, Deadline deadline);
  /// As `send`, of messages whose ids were made up for them and are sent under for the first time: that nobody else has
  /// them may be taken for granted. The messages are the sender's to keep.
  virtual std::vector<SendResult> send_fresh(std::vector<NewMessage> messages, Deadline deadline) {
    return send(messages, deadline);
  }

  /// Where ids that the store makes say where their messages lie, whoever makes up ids that he wants to make once more
  /// makes them of the moment too: what `id_at` takes, in letters and digits, as long as it is now. Empty: any id is as
  /// good as another.
  virtual Result<std::string> moment(Deadline /*deadline*/) { return std::string(); }
  /// The id of a message by the moment, the name of the sending that it is in, and its number there: the same each time
  /// for the same message. Nothing for a text that is no moment of this store.
  virtual std::optional<std::string> id_at(std::string_view /*moment*/, std::string_view /*sending*/,
                                           std::uint64_t /*number*/, const NewMessage& /*message*/) const {
    return std::nullopt;
  }
};

}  // namespace sluice::queue
