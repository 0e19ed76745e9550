#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/queues.hpp"
#include "tests/support/sim_accounts.hpp"
#include "tests/support/sim_faults.hpp"

namespace sluice::test {

/// Queues in memory, for unit tests and the simulation. Thread-safe. Never blocks and never sleeps; moves only with its
/// Clock. What is written rings its doorbell, which its sources listen to once they are started.
class SimQueues final : public queue::Queues, public SimFaults {
 public:
  SimQueues(const Clock& clock, Random& random);
  ~SimQueues() override;

  Result<std::unique_ptr<queue::Source>> open_source(const queue::QueueAddress& address) override;
  Result<std::unique_ptr<queue::Sender>> open_sender(const std::string& queue) override;
  Result<std::unique_ptr<queue::Operator>> open_operator(const std::string& queue) override;
  Result<std::unique_ptr<queue::NoticeBoard>> open_board(const std::string& queue) override;
  Result<std::unique_ptr<queue::IdempotencyKeys>> open_keys(const std::string& queue) override;

  queue::Doorbell& doorbell();
  /// The user's table as it stands.
  SimAccounts accounts();
  /// Voids every receipt of this half, as if another host had claimed these messages for `visibility`. Returns how
  /// many.
  std::size_t lose_receipts(const queue::QueueAddress& address, Duration visibility = std::chrono::seconds(30));

 private:
  class Shelf;
  class SimSource;
  class SimSender;
  class SimOperator;

  const std::unique_ptr<Shelf> shelf_;
};

}  // namespace sluice::test
