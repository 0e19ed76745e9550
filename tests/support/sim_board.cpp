#include "tests/support/sim_board.hpp"

namespace sluice::test {

using queue::Notice;
using queue::Topic;

namespace {

constexpr std::size_t kMostBytes = std::size_t{64} * 1024;

Error changed_meanwhile() { return {ErrorCode::conflict, "somebody else changed the notice meanwhile; read it again"}; }

class SimWatch final : public queue::NoticeBoard::Watch {
 public:
  explicit SimWatch(queue::Doorbell::Subscription subscription) : subscription_(std::move(subscription)) {}

 private:
  queue::Doorbell::Subscription subscription_;
};

}  // namespace

std::vector<Notice> SimNotices::list(Topic topic) const {
  std::vector<Notice> all;
  const MutexLock lock(mutex_);
  for (const auto& [place, notice] : notices_) {
    if (place.first == topic) {
      all.push_back(notice);
    }
  }
  return all;
}

Result<std::int64_t> SimNotices::post(Topic topic, const Notice& notice, WallTime now) {
  const MutexLock lock(mutex_);
  const auto found = notices_.find({topic, notice.key});
  if ((found == notices_.end() ? 0 : found->second.version) != notice.version) {
    return changed_meanwhile();
  }
  notices_[{topic, notice.key}] = {
      .key = notice.key, .text = notice.text, .version = notice.version + 1, .posted_at = now};
  return notice.version + 1;
}

Result<void> SimNotices::take_down(Topic topic, const std::string& key, std::int64_t version) {
  const MutexLock lock(mutex_);
  const auto found = notices_.find({topic, key});
  if (found != notices_.end() && found->second.version != version) {
    return changed_meanwhile();
  }
  notices_.erase({topic, key});
  return {};
}

SimBoard::SimBoard(SimNotices& notices, queue::Doorbell& doorbell, SimFaults& faults, const Clock& clock)
    : notices_(notices),
      doorbell_(doorbell),
      faults_(faults),
      clock_(clock),
      traits_{.place = "memory", .tells = true, .billed = false, .most_bytes = kMostBytes} {}

Result<Notice> SimBoard::read(Topic topic, const std::string& key, Deadline deadline) {
  if (const auto fault = faults_.begin(StoreCall::board, {}, 1, deadline)) {
    return fault->error;
  }
  for (const Notice& notice : notices_.list(topic)) {
    if (notice.key == key) {
      return notice;
    }
  }
  return Notice{.key = key};
}

Result<std::vector<Notice>> SimBoard::list(Topic topic, Deadline deadline) {
  if (const auto fault = faults_.begin(StoreCall::board, {}, 1, deadline)) {
    return fault->error;
  }
  std::vector<Notice> all = notices_.list(topic);
  std::erase_if(all, [topic](const Notice& notice) { return topic == Topic::audit && !notice.key.empty(); });
  return all;
}

Result<std::int64_t> SimBoard::post(Topic topic, const Notice& notice, Deadline deadline) {
  const auto fault = faults_.begin(StoreCall::board, {}, 1, deadline);
  if (fault && !fault->applied) {
    return fault->error;
  }
  if (notice.text.size() > kMostBytes) {
    return Error(ErrorCode::invalid, "a notice has at most " + std::to_string(kMostBytes) + " bytes");
  }
  auto posted = notices_.post(topic, notice, now());
  if (posted && topic == Topic::steering) {
    doorbell_.ring({});
  }
  return fault ? fault->error : std::move(posted);
}

Result<void> SimBoard::take_down(Topic topic, const std::string& key, std::int64_t version, Deadline deadline) {
  const auto fault = faults_.begin(StoreCall::board, {}, 1, deadline);
  if (fault && !fault->applied) {
    return fault->error;
  }
  auto taken = notices_.take_down(topic, key, version);
  return fault ? fault->error : std::move(taken);
}

std::unique_ptr<queue::NoticeBoard::Watch> SimBoard::watch(std::function<void()> changed) {
  return std::make_unique<SimWatch>(doorbell_.subscribe({}, std::move(changed)));
}

}  // namespace sluice::test
