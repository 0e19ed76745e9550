#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "host/queue/doorbell.hpp"
#include "host/queue/notice_board.hpp"
#include "tests/support/sim_faults.hpp"

namespace sluice::test {

/// What lies on a board in memory, whoever has opened it. Thread-safe.
class SimNotices {
 public:
  std::vector<queue::Notice> list(queue::Topic topic) const;
  Result<std::int64_t> post(queue::Topic topic, const queue::Notice& notice, WallTime now);
  Result<void> take_down(queue::Topic topic, const std::string& key, std::int64_t version);

 private:
  mutable Mutex mutex_;
  std::map<std::pair<queue::Topic, std::string>, queue::Notice> notices_ SLUICE_GUARDED_BY(mutex_);
};

/// A board in memory, with the faults of its queues (StoreCall::board).
class SimBoard final : public queue::NoticeBoard {
 public:
  SimBoard(SimNotices& notices, queue::Doorbell& doorbell, SimFaults& faults, const Clock& clock);

  const queue::BoardTraits& traits() const override { return traits_; }
  WallTime now() const override { return clock_.wall_now(); }

  Result<queue::Notice> read(queue::Topic topic, const std::string& key, Deadline deadline) override;
  Result<std::vector<queue::Notice>> list(queue::Topic topic, Deadline deadline) override;
  Result<std::int64_t> post(queue::Topic topic, const queue::Notice& notice, Deadline deadline) override;
  Result<void> take_down(queue::Topic topic, const std::string& key, std::int64_t version, Deadline deadline) override;
  std::unique_ptr<Watch> watch(std::function<void()> changed) override;

 private:
  SimNotices& notices_;
  queue::Doorbell& doorbell_;
  SimFaults& faults_;
  const Clock& clock_;
  const queue::BoardTraits traits_;
};

}  // namespace sluice::test
