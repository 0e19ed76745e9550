#include "host/stores/dedup_sender.hpp"

#include <utility>
#include <vector>

#include "dynamo/signing/digest.hpp"

namespace sluice::queue {

namespace {

class DedupSender final : public Sender {
 public:
  DedupSender(std::unique_ptr<Sender> sender, const DedupRules& rules) : sender_(std::move(sender)), rules_(rules) {}

  std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline) override {
    return sender_->send(filled({messages.begin(), messages.end()}), deadline);
  }
  std::vector<SendResult> send_in_order(std::span<const NewMessage> messages, Deadline deadline) override {
    return sender_->send_in_order(filled({messages.begin(), messages.end()}), deadline);
  }
  std::vector<SendResult> send_fresh(std::vector<NewMessage> messages, Deadline deadline) override {
    return sender_->send_fresh(filled(std::move(messages)), deadline);
  }
  Result<std::string> moment(Deadline deadline) override { return sender_->moment(deadline); }
  std::optional<std::string> id_at(std::string_view moment, std::string_view sending, std::uint64_t number,
                                   const NewMessage& message) const override {
    return sender_->id_at(moment, sending, number, message);
  }

 private:
  std::vector<NewMessage> filled(std::vector<NewMessage> messages) const {
    for (NewMessage& message : messages) {
      fill_in(message, rules_);
    }
    return messages;
  }

  const std::unique_ptr<Sender> sender_;
  const DedupRules rules_;
};

}  // namespace

std::string content_dedup_id(std::string_view body) { return "sha256:" + dynamo::to_hex(dynamo::sha256(body)); }

void fill_in(NewMessage& message, const DedupRules& rules) {
  if (rules.by_content && message.dedup_id.empty()) {
    message.dedup_id = content_dedup_id(message.body);
  }
  if (message.dedup_window == kDedupWindow) {
    message.dedup_window = rules.window;
  }
}

std::unique_ptr<Sender> deduplicating(std::unique_ptr<Sender> sender, const DedupRules& rules) {
  return rules.any() ? std::make_unique<DedupSender>(std::move(sender), rules) : std::move(sender);
}

}  // namespace sluice::queue
