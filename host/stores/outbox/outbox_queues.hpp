#pragma once

#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/queue/queues.hpp"
#include "host/stores/outbox/database.hpp"
#include "host/stores/outbox/outbox_source.hpp"

namespace sluice::queue::outbox {

/// The sides of one outbox, whatever the name says that they are asked for by. It has no sender, no board and no keys.
class OutboxQueues final : public Queues {
 public:
  /// The references outlive it.
  OutboxQueues(OutboxOptions options, std::unique_ptr<Database> database, const Clock& clock, Random& random)
      : options_(std::move(options)), database_(std::move(database)), clock_(clock), random_(random) {}

  Result<std::unique_ptr<Source>> open_source(const QueueAddress& address) override {
    return open_selected(address, {});
  }
  Result<std::unique_ptr<Source>> open_selected(const QueueAddress& address, const Selection& selection) override;
  Result<std::unique_ptr<Sender>> open_sender(const std::string& queue) override;
  Result<std::unique_ptr<Operator>> open_operator(const std::string& queue) override;
  Result<std::unique_ptr<NoticeBoard>> open_board(const std::string& queue) override;

  Database& database() { return *database_; }

 private:
  // Fixed after construction.
  const OutboxOptions options_;
  const std::unique_ptr<Database> database_;
  const Clock& clock_;
  Random& random_;
};

}  // namespace sluice::queue::outbox
