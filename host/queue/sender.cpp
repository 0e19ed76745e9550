#include "host/queue/sender.hpp"

namespace sluice::queue {

std::vector<SendResult> Sender::send_fresh(std::vector<NewMessage> messages, Deadline deadline) {
  return send(messages, deadline);
}

Result<std::string> Sender::moment(Deadline /*deadline*/) { return std::string(); }

std::optional<std::string> Sender::id_at(std::string_view /*moment*/, std::string_view /*sending*/,
                                         std::uint64_t /*number*/, const NewMessage& /*message*/) const {
  return std::nullopt;
}

}  // namespace sluice::queue
