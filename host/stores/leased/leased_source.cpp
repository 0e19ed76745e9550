#include "host/stores/leased/leased_source.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {
namespace {

const Receipt& receipt_of(const Completion& completion) { return completion.receipt; }
const Receipt& receipt_of(const Receipt& receipt) { return receipt; }

// What this process was handed by its own half is asked of it, everything else of what its record says.
template <typename Answer, typename Asked, typename AskHalf, typename AskBorrower>
std::vector<Answer> ask_each(const OwnedHalf& half, std::span<const Asked> all, const AskHalf& ask_half,
                             const AskBorrower& ask_borrower) {
  std::vector<Asked> own;
  std::vector<Asked> others;
  std::vector<bool> is_own;
  for (const Asked& one : all) {
    is_own.push_back(half.knows(receipt_of(one)));
    (is_own.back() ? own : others).push_back(one);
  }
  auto own_answers = own.empty() ? std::vector<Answer>() : ask_half(own);
  auto other_answers = others.empty() ? std::vector<Answer>() : ask_borrower(others);
  std::vector<Answer> answers;
  answers.reserve(all.size());
  auto from_own = own_answers.begin();
  auto from_others = other_answers.begin();
  for (const bool mine : is_own) {
    answers.push_back(std::move(mine ? *from_own++ : *from_others++));
  }
  return answers;
}

}  // namespace

OwnedTable::OwnedTable(OwnershipCoordinator::Settings settings, table::StoreParts parts, const Clock& machine,
                       Random& random)
    : parts_(parts),
      machine_(machine),
      random_(random),
      coordinator_(std::move(settings), parts.client, machine, parts.clock) {}

OwnedHalf& OwnedTable::half(const OwnedHalf::Settings& settings, const table::QueueTable& place,
                            const OwnerWriter& writer) {
  const MutexLock lock(mutex_);
  auto& half = halves_[settings.address];
  if (!half) {
    half = std::make_unique<OwnedHalf>(settings, parts_, place, coordinator_.lease(), writer, machine_, random_);
  }
  return *half;
}

std::uint32_t OwnedTable::start(OwnedHalf& half, SourceEvents events) {
  const std::uint32_t source = half.enter(std::move(events));
  coordinator_.join(half);
  return source;
}

void OwnedTable::stop(OwnedHalf& half, std::uint32_t source) {
  // What is still out keeps its shard until it is settled, or until this host's lease has ended.
  const auto some_out = [&] { return half.figures(machine_.steady_now()).in_flight > 0; };
  if (half.exit(source) && coordinator_.leave(half, some_out)) {
    coordinator_.forget(half);
  }
}

Result<Claimed> OwnedTable::claim(OwnedHalf& half, std::uint32_t source, const ClaimRequest& request,
                                  Deadline deadline) {
  coordinator_.tend(deadline);
  auto claimed = half.claim(
      source, request, [&](InFlightBound bound) { return coordinator_.announce(bound, deadline); }, deadline);
  if (claimed && claimed->deliveries.empty() && !half.works()) {
    if (const auto trouble = coordinator_.trouble()) {
      return table::store_error(half.place(), *trouble);
    }
  }
  if (const auto due = coordinator_.due_at(); claimed && due && claimed->deliveries.size() < request.max) {
    const Duration wait = std::max(Duration::zero(), Duration(*due - machine_.steady_now()));
    claimed->next_due = std::min(claimed->next_due.value_or(wait), wait);
  }
  return claimed;
}

std::optional<OwnWord> OwnedTable::word_of(const QueueAddress& address) {
  const OwnedHalf* half = nullptr;
  {
    const MutexLock lock(mutex_);
    const auto found = halves_.find(address);
    half = found == halves_.end() ? nullptr : found->second.get();
  }
  if (half == nullptr || !half->has_sources()) {
    return std::nullopt;
  }
  return OwnWord{.host = coordinator_.host(), .figures = half->figures(machine_.steady_now())};
}

void LeasedSource::start(SourceEvents events) {
  auto subscription = doorbell_.subscribe(half_.address(), [this, ready = events.on_ready] {
    half_.rung();
    if (ready) {
      ready();
    }
  });
  const std::uint32_t number = table_.start(half_, std::move(events));
  const MutexLock lock(mutex_);
  SLUICE_ASSERT(!number_);
  number_ = number;
  std::swap(subscription_, subscription);
}

void LeasedSource::stop() {
  Doorbell::Subscription ended;
  std::uint32_t number = 0;
  {
    const MutexLock lock(mutex_);
    if (!number_ || std::exchange(stopped_, true)) {
      return;
    }
    number = *number_;
    std::swap(subscription_, ended);
  }
  table_.stop(half_, number);
}

Result<Claimed> LeasedSource::claim(const ClaimRequest& request, Deadline deadline) {
  std::optional<std::uint32_t> number;
  {
    const MutexLock lock(mutex_);
    if (stopped_) {
      return Claimed{};
    }
    number = number_;
  }
  return number ? table_.claim(half_, *number, request, deadline) : borrower_->claim(request, deadline);
}

std::vector<SettleResult> LeasedSource::settle(std::span<const Completion> completions, Deadline deadline) {
  table_.coordinator().tend(deadline);
  auto results = ask_each<SettleResult>(
      half_, completions, [&](const auto& own) { return half_.settle(own, deadline); },
      [&](const auto& others) { return borrower_->settle(others, deadline); });
  doorbell_.ring_settled(half_.address(), completions, results);
  table_.coordinator().tend(deadline);  // a shard may be handed over now
  return results;
}

bool LeasedSource::holds(std::uint32_t /*part*/) {
  {
    const MutexLock lock(mutex_);
    if (!number_) {
      return true;  // it has borrowed them
    }
  }
  return half_.holds();
}

std::vector<ExtendResult> LeasedSource::extend(std::span<const Receipt> receipts, Duration visibility,
                                               Deadline deadline) {
  return ask_each<ExtendResult>(
      half_, receipts, [&](const auto& own) { return half_.extend(own); },
      [&](const auto& others) { return borrower_->extend(others, visibility, deadline); });
}

}  // namespace sluice::queue::leased
