#include "tests/support/sim_send_marks.hpp"

#include <algorithm>

namespace sluice::test {

std::optional<std::string> SimSendMarks::first_of(const queue::NewMessage& message, WallTime now, const Find& find) {
  ahead_ = std::max(ahead_, Duration(now_ - now));
  now_ = now + ahead_;
  std::erase_if(sent_, [this](const auto& entry) { return entry.second.until <= now_; });
  if (const auto found = sent_.find(message.dedup_id); !message.dedup_id.empty() && found != sent_.end()) {
    return found->second.id;
  }
  const auto holder = holders_.find(message.unique_key);
  if (message.unique_key.empty() || holder == holders_.end()) {
    return std::nullopt;
  }
  const queue::StoredMessage* stored = find(holder->second.id);
  const bool there =
      stored != nullptr && stored->created_at == holder->second.created_at && stored->half == queue::Half::standard;
  const bool queued = there && stored->message.attempt == 0 && !stored->received_at;
  const bool holds = holder->second.until == queue::UniqueUntil::done ? there : queued;
  return holds ? std::optional<std::string>(holder->second.id) : std::nullopt;
}

void SimSendMarks::note(const queue::NewMessage& message, const queue::StoredMessage& stored) {
  if (!message.dedup_id.empty()) {
    sent_[message.dedup_id] = {stored.message.id, now_ + message.dedup_window};
  }
  if (!message.unique_key.empty()) {
    holders_[message.unique_key] = {stored.message.id, stored.created_at, message.unique_until};
  }
}

}  // namespace sluice::test
