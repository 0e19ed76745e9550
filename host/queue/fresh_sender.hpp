#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "host/queue/sender.hpp"

namespace sluice::queue {

/// A sender that makes use of it when it is told that ids are new. Thread-safe.
class FreshSender : public Sender {
 public:
  /// As `send`, of messages whose ids were made up for them and are sent under for the first time: that nobody else has
  /// them is taken for granted. The messages are the sender's to keep.
  virtual std::vector<SendResult> send_fresh(std::vector<NewMessage> messages, Deadline deadline) = 0;

  /// Where ids that the store makes say where their messages lie, whoever makes up ids that he wants to make once more
  /// makes them of the moment too: what `id_at` takes, in letters and digits, as long as it is now. Empty: any id is as
  /// good as another.
  virtual Result<std::string> moment(Deadline deadline);
  /// The id of a message by the moment, the name of the sending that it is in, and its number there: the same each time
  /// for the same message. Nothing for a text that is no moment of this store.
  virtual std::optional<std::string> id_at(std::string_view moment, std::string_view sending, std::uint64_t number,
                                           const NewMessage& message) const;
};

/// That one, where the sender is such a one; null where it makes no use of it.
FreshSender* fresh_sender(Sender& sender);

}  // namespace sluice::queue
