#include "host/runtime/orphan_settlement.hpp"

#include <algorithm>
#include <utility>

namespace sluice::runtime {
namespace {

using queue::SettleStatus;

/// With the pauses below about four minutes; by then most leases have run out.
constexpr std::uint32_t kTries = 8;
constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::minutes(1);

std::uint32_t& column(isolation::LedgerSettlement& tally, Suspicion suspicion) {
  switch (suspicion) {
    case Suspicion::blamed:
      return tally.counted;
    case Suspicion::suspect:
      return tally.suspects;
    case Suspicion::finished:
      return tally.finished;
    case Suspicion::innocent:
      break;
  }
  return tally.released;
}

}  // namespace

OrphanSettlement::OrphanSettlement(std::unique_ptr<isolation::OrphanLedger> ledger, std::vector<RecoveryStep> steps)
    : ledger_(std::move(ledger)), open_(std::move(steps)) {}

bool OrphanSettlement::settle(queue::Queues& queues, queue::Owners* owners, SteadyTime now, Deadline deadline) {
  trouble_.clear();
  for (RecoveryStep& step : open_) {
    auto source = queues.open_source(step.address);
    if (source) {
      settle_step(step, **source, deadline);
    } else {
      trouble_ = source.error().message();
    }
  }
  open_.erase(
      std::remove_if(open_.begin(), open_.end(), [](const RecoveryStep& step) { return step.completions.empty(); }),
      open_.end());
  due_ = now + std::min(kFirstPause * (1U << std::min(tries_, 16U)), kLongestPause);
  ++tries_;
  const bool last = tries_ >= kTries;
  if (open_.empty() || last) {
    tell(owners, deadline);
  }
  return (open_.empty() && told_) || last;
}

// Not before its messages are settled: whoever takes its shards then knows what was at work by what their records say.
void OrphanSettlement::tell(queue::Owners* owners, Deadline deadline) {
  const isolation::LedgerContents& ledger = contents();
  if (told_ || owners == nullptr || ledger.incarnation.empty() || ledger.queues.empty()) {
    told_ = true;
    return;
  }
  auto told = owners->ended({ledger.incarnation, ledger.queues, open_.empty() && ledger.complete}, deadline);
  told_ = told.has_value();
  if (!told) {
    trouble_ = told.error().message();
  }
}

void OrphanSettlement::settle_step(RecoveryStep& step, queue::Source& source, Deadline deadline) {
  const std::vector<queue::SettleResult> results = source.settle(step.completions, deadline);
  RecoveryStep left{step.address, {}, {}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    switch (results[i].status) {
      case SettleStatus::applied:
        ++column(tally_, step.suspicions[i]);
        break;
      case SettleStatus::lost:
        ++tally_.gone;
        break;
      case SettleStatus::refused:
      case SettleStatus::failed:
        trouble_ = results[i].error.message();
        left.completions.push_back(std::move(step.completions[i]));
        left.suspicions.push_back(step.suspicions[i]);
        break;
    }
  }
  step = std::move(left);
}

Result<void> OrphanSettlement::close(WallTime now, std::string by) {
  for (const RecoveryStep& step : open_) {
    tally_.unsettled += static_cast<std::uint32_t>(step.completions.size());
  }
  if (ledger_->contents().held.empty() && !ledger_->contents().crash) {
    ledger_->remove();
    return {};
  }
  tally_.time = now;
  tally_.by = std::move(by);
  return ledger_->archive(tally_);
}

}  // namespace sluice::runtime
