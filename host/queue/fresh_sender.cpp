#include "host/queue/fresh_sender.hpp"

namespace sluice::queue {

Result<std::string> FreshSender::moment(Deadline /*deadline*/) { return std::string(); }

std::optional<std::string> FreshSender::id_at(std::string_view /*moment*/, std::string_view /*sending*/,
                                              std::uint64_t /*number*/, const NewMessage& /*message*/) const {
  return std::nullopt;
}

FreshSender* fresh_sender(Sender& sender) { return dynamic_cast<FreshSender*>(&sender); }

}  // namespace sluice::queue
