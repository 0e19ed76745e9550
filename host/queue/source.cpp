#include "host/queue/source.hpp"

#include <utility>

namespace sluice::queue {

SendOrder Source::send_order(std::span<const Receipt> receipts) {
  SendOrder order;
  for (std::size_t place = 0; place < receipts.size(); ++place) {
    order.now.push_back({place});
  }
  return order;
}

SettleResult Source::checkpoint(const Receipt& receipt, std::string bytes, std::shared_ptr<const Effects> effects,
                                Deadline deadline) {
  if (!traits().checkpoints) {
    return {SettleStatus::refused,
            Error(ErrorCode::invalid,
                  "its messages come from an outbox, whose rows have no room for one; keep progress in a table of your "
                  "own, or have the outbox publish to a queue and work there")};
  }
  if (bytes.size() > kMostCheckpointBytes) {
    return {SettleStatus::refused, too_long_checkpoint(bytes.size())};
  }
  const Completion kept{.receipt = receipt,
                        .action = CompletionAction::keep,
                        .effects = std::move(effects),
                        .checkpoint = std::move(bytes)};
  return std::move(settle(std::span(&kept, 1), deadline).at(0));
}

}  // namespace sluice::queue
