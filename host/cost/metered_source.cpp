#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/text/utf8.hpp"
#include "host/cost/cost_book.hpp"
#include "host/cost/spent.hpp"

namespace sluice::cost {
namespace {

constexpr std::size_t kKib = 1024;
constexpr std::size_t kMostValueBytes = 128;
// What was claimed and is neither settled nor extended for so long will not be by this host.
constexpr Duration kForgotten = std::chrono::hours(12);
constexpr std::size_t kFirstTidying = 4096;
// What a record of DynamoMQ's table has beside id, body, attributes and group once it was claimed: names, times, nonce.
constexpr std::size_t kRecordBytes = 282;

std::size_t bytes_of(const queue::Message& message) {
  return message.id.size() + queue::content_bytes(message) - message.content_type.size();
}

double begun_kib(std::size_t bytes) { return static_cast<double>(std::max<std::size_t>(1, (bytes + kKib - 1) / kKib)); }

/// One message that was claimed at `now`. How long it waits after an attempt is not known here, and so not counted.
Usage usage_of(const queue::Message& message, WallTime now) {
  const std::size_t bytes = bytes_of(message);
  Usage usage{.spent = {},
              .messages = 1,
              .kib = begun_kib(bytes),
              .indexed_kib = begun_kib(bytes + kRecordBytes),
              .message_seconds = 0,
              .kib_seconds = 0};
  if (message.attempt <= 1) {
    usage.message_seconds = std::max(std::chrono::duration<double>(now - message.sent_at).count(), 0.0);
    usage.kib_seconds = usage.message_seconds * static_cast<double>(bytes) / kKib;
  }
  return usage;
}

/// Whose value a message has and its part of a call's cost.
struct Held {
  std::string value;
  double kib = 1;
  SteadyTime seen{};
};

class MeteredSource final : public queue::Source {
 public:
  MeteredSource(std::unique_ptr<queue::Source> source, CostBook::Account& account)
      : source_(std::move(source)), account_(account) {}

  const queue::SourceTraits& traits() const override { return source_->traits(); }
  void start(queue::SourceEvents events) override {
    const SpendScope scope(account_.queue());
    source_->start(std::move(events));
    account_.add({scope.spent(), 0, 0});
  }
  void stop() override { source_->stop(); }
  bool holds(std::uint32_t part) override { return source_->holds(part); }

  Result<queue::Claimed> claim(const queue::ClaimRequest& request, Deadline deadline) override {
    UnitBudget* budget = account_.budget();
    const SteadyTime now = account_.clock().steady_now();
    if (const SteadyTime at = budget == nullptr ? now : budget->claim_at(now); at > now) {
      return queue::Claimed{{}, at - now};
    }
    const SpendScope scope(account_.queue());
    queue::ClaimRequest affordable = request;
    if (budget != nullptr) {
      affordable.max = std::min(request.max, budget->claim_most(now));
    }
    auto claimed = source_->claim(affordable, deadline);
    Usage usage{scope.spent(), 0, 0};
    if (claimed) {
      const WallTime handed_out = account_.clock().wall_now();
      for (const queue::Delivery& delivery : claimed->deliveries) {
        usage += usage_of(delivery.message, handed_out);
      }
      if (budget != nullptr) {
        budget->claimed(claimed->deliveries.size(), usage.spent);
      }
    }
    account_.add(usage);
    if (!account_.attribute().empty()) {
      share_claim(claimed ? std::span<const queue::Delivery>(claimed->deliveries) : std::span<const queue::Delivery>(),
                  usage);
    }
    return claimed;
  }

  std::vector<queue::SettleResult> settle(std::span<const queue::Completion> completions, Deadline deadline) override {
    const SpendScope scope(account_.queue());
    auto results = source_->settle(completions, deadline);
    if (UnitBudget* budget = account_.budget()) {
      budget->settled(completions.size(), scope.spent());
    }
    account_.add({scope.spent(), 0, 0});
    if (!account_.attribute().empty()) {
      std::vector<const queue::Receipt*> receipts;
      for (const queue::Completion& completion : completions) {
        receipts.push_back(&completion.receipt);
      }
      share(receipts, scope.spent());
      forget(completions, results);
    }
    return results;
  }

  std::vector<queue::ExtendResult> extend(std::span<const queue::Receipt> receipts, Duration visibility,
                                          Deadline deadline) override {
    const SpendScope scope(account_.queue());
    auto results = source_->extend(receipts, visibility, deadline);
    account_.add({scope.spent(), 0, 0});
    if (!account_.attribute().empty()) {
      std::vector<const queue::Receipt*> all;
      for (const queue::Receipt& receipt : receipts) {
        all.push_back(&receipt);
      }
      share(all, scope.spent());
    }
    return results;
  }

 private:
  using Shares = std::map<std::string, Usage>;

  std::string value_of(const queue::Message& message) const {
    const auto found = message.attributes.find(account_.attribute());
    if (found == message.attributes.end()) {
      return std::string(kNoValue);
    }
    std::string value = clean_utf8(found->second, kMostValueBytes);
    // These names are taken.
    return value == kIdle || value == kOtherValues || value.empty() ? std::string(kNoValue) : value;
  }

  void share_claim(std::span<const queue::Delivery> deliveries, const Usage& usage) {
    if (deliveries.empty()) {
      account_.add_value(std::string(kIdle), {usage.spent, 0, 0});
      return;
    }
    const SteadyTime now = account_.clock().steady_now();
    Shares shares;
    {
      const MutexLock lock(mutex_);
      for (const queue::Delivery& delivery : deliveries) {
        const Held held{value_of(delivery.message), kib_of(delivery.message), now};
        shares[held.value] += {usage.spent * (held.kib / usage.kib), 1, held.kib};
        held_.insert_or_assign(delivery.receipt.id, held);
      }
      tidy(now);
    }
    add(shares);
  }

  void share(const std::vector<const queue::Receipt*>& receipts, const Spent& spent) {
    const SteadyTime now = account_.clock().steady_now();
    Shares shares;
    {
      const MutexLock lock(mutex_);
      static const Held kUnknown{std::string(kNoValue), 1, {}};
      std::vector<const Held*> all;
      double kib = 0;
      for (const queue::Receipt* receipt : receipts) {
        const auto found = held_.find(receipt->id);
        if (found != held_.end()) {
          found->second.seen = now;
        }
        all.push_back(found == held_.end() ? &kUnknown : &found->second);
        kib += all.back()->kib;
      }
      for (const Held* held : all) {
        shares[held->value] += {spent * (held->kib / kib), 0, 0};
      }
    }
    add(shares);
  }

  void add(const Shares& shares) {
    for (const auto& [value, usage] : shares) {
      account_.add_value(value, usage);
    }
  }

  void forget(std::span<const queue::Completion> completions, const std::vector<queue::SettleResult>& results) {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < std::min(completions.size(), results.size()); ++i) {
      if (results[i].status == queue::SettleStatus::applied || results[i].status == queue::SettleStatus::lost) {
        held_.erase(completions[i].receipt.id);
      }
    }
  }

  /// What was stranded is never settled; it must not be kept for ever.
  void tidy(SteadyTime now) SLUICE_REQUIRES(mutex_) {
    if (held_.size() < tidy_at_) {
      return;
    }
    std::erase_if(held_, [now](const auto& entry) { return entry.second.seen + kForgotten < now; });
    tidy_at_ = std::max(kFirstTidying, held_.size() * 2);
  }

  // Fixed after construction.
  const std::unique_ptr<queue::Source> source_;
  CostBook::Account& account_;

  Mutex mutex_;
  std::unordered_map<std::string, Held> held_ SLUICE_GUARDED_BY(mutex_);  ///< by message
  std::size_t tidy_at_ SLUICE_GUARDED_BY(mutex_) = kFirstTidying;
};

}  // namespace

std::unique_ptr<queue::Source> metered(std::unique_ptr<queue::Source> source, CostBook::Account& account) {
  return std::make_unique<MeteredSource>(std::move(source), account);
}

double kib_of(const queue::Message& message) { return begun_kib(bytes_of(message)); }

}  // namespace sluice::cost
