#pragma once

#include <string>
#include <vector>

#include "host/queue/sender.hpp"
#include "host/stores/sqlite/shared_store.hpp"

namespace sluice::queue::sqlite {

/// Puts messages into one queue.
class SqliteSender final : public Sender {
 public:
  SqliteSender(SharedStore& store, std::string queue) : store_(store), queue_(std::move(queue)) {}

  std::vector<SendResult> send(std::span<const NewMessage> messages, Deadline deadline) override;
  std::vector<SendResult> send_fresh(std::vector<NewMessage> messages, Deadline deadline) override;

 private:
  void send_batch(std::vector<NewMessage> messages, std::span<SendResult> results, Deadline deadline);

  SharedStore& store_;
  const std::string queue_;
};

}  // namespace sluice::queue::sqlite
