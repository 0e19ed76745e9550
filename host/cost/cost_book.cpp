#include "host/cost/cost_book.hpp"

#include <boost/core/noncopyable.hpp>
#include <cmath>
#include <unordered_map>

#include "base/text/utf8.hpp"

namespace sluice::cost {
namespace {

// So many are claimed or settled while nobody knows yet what a message costs.
constexpr std::size_t kFirstBatch = 10;
constexpr double kMostMessages = 1e6;
// Of a full bucket, what must be there for a claim.
constexpr double kClaimShare = 0.25;
// The weight of what is older in a mean.
constexpr double kOld = 0.8;

Duration seconds(double count) {
  return std::chrono::ceil<Duration>(std::chrono::duration<double>(std::min(count, 1e6)));
}

std::int64_t minute_of(SteadyTime time) {
  return std::chrono::floor<std::chrono::minutes>(time.time_since_epoch()).count();
}

// So many are known for each that is shown.
constexpr std::size_t kKnownPerShown = 10;
// By so much a value must be dearer than the cheapest shown to take its place, lest two change places all the time.
constexpr double kAhead = 1.25;

// So that among values that cost nothing, as on SQLite, those of most messages are told.
constexpr double kWeightOfMessage = 1e-9;

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

/// While it lives, what this thread spends is this queue's, whichever table it goes to, and adds up here. To be
/// destroyed by the thread that made it.
class SpendScope : boost::noncopyable {
 public:
  /// `queue` outlives the scope.
  explicit SpendScope(const std::string& queue) : queue_(queue), outer_(innermost_) { innermost_ = this; }
  ~SpendScope() { innermost_ = outer_; }

  const std::string& queue() const { return queue_; }
  const Spent& spent() const { return spent_; }
  void add(const Spent& spent) { spent_ += spent; }

  /// The innermost one of this thread; null: there is none.
  static SpendScope* current() { return innermost_; }

 private:
  const std::string& queue_;
  SpendScope* const outer_;
  inline static thread_local SpendScope* innermost_ = nullptr;
  Spent spent_;
};

class MeteredSource final : public queue::Source {
 public:
  MeteredSource(std::unique_ptr<queue::Source> source, CostBook& book, std::string job, std::string queue)
      : source_(std::move(source)),
        book_(book),
        names_(std::move(queue), std::move(job)),
        budget_(book.budget(names_.first)) {}

  const queue::SourceTraits& traits() const override { return source_->traits(); }
  void start(queue::SourceEvents events) override {
    const SpendScope scope(names_.first);
    source_->start(std::move(events));
    book_.add(names_, {scope.spent(), 0, 0});
  }
  void stop() override { source_->stop(); }
  void handled(std::span<const queue::Receipt> receipts) override { source_->handled(receipts); }
  bool holds(std::uint32_t part) override { return source_->holds(part); }

  Result<queue::Claimed> claim(const queue::ClaimRequest& request, Deadline deadline) override {
    const SteadyTime now = book_.clock().steady_now();
    if (const SteadyTime at = budget_ == nullptr ? now : budget_->ready_at(UnitBudget::Call::claim, now); at > now) {
      return queue::Claimed{{}, at - now};
    }
    const SpendScope scope(names_.first);
    queue::ClaimRequest affordable = request;
    if (budget_ != nullptr) {
      affordable.max = std::min(request.max, budget_->most(UnitBudget::Call::claim, now));
    }
    auto claimed = source_->claim(affordable, deadline);
    Usage usage{scope.spent(), 0, 0};
    if (claimed) {
      const WallTime handed_out = book_.clock().wall_now();
      for (const queue::Delivery& delivery : claimed->deliveries) {
        usage += usage_of(delivery.message, handed_out);
      }
      if (budget_ != nullptr) {
        budget_->learn(UnitBudget::Call::claim, claimed->deliveries.size(), usage.spent);
      }
    }
    book_.add(names_, usage);
    if (!book_.attribute().empty()) {
      share_claim(claimed ? std::span<const queue::Delivery>(claimed->deliveries) : std::span<const queue::Delivery>(),
                  usage.spent);
    }
    return claimed;
  }

  std::vector<queue::SettleResult> settle(std::span<const queue::Completion> completions, Deadline deadline) override {
    const SpendScope scope(names_.first);
    auto results = source_->settle(completions, deadline);
    if (budget_ != nullptr) {
      budget_->learn(UnitBudget::Call::settlement, completions.size(), scope.spent());
    }
    book_.add(names_, {scope.spent(), 0, 0});
    if (!book_.attribute().empty()) {
      share(completions, scope.spent());
      forget(completions, results);
    }
    return results;
  }

  std::vector<queue::ExtendResult> extend(std::span<const queue::Receipt> receipts, Duration visibility,
                                          Deadline deadline) override {
    const SpendScope scope(names_.first);
    auto results = source_->extend(receipts, visibility, deadline);
    book_.add(names_, {scope.spent(), 0, 0});
    if (!book_.attribute().empty()) {
      share(receipts, scope.spent());
    }
    return results;
  }

 private:
  std::string value_of(const queue::Message& message) const {
    const auto found = message.attributes.find(book_.attribute());
    if (found == message.attributes.end()) {
      return std::string(kNoValue);
    }
    std::string value = clean_utf8(found->second, kMostValueBytes);
    // These names are taken.
    return value == kIdle || value == kOtherValues || value.empty() ? std::string(kNoValue) : value;
  }

  void share_claim(std::span<const queue::Delivery> deliveries, const Spent& spent) {
    if (deliveries.empty()) {
      book_.add_value(std::string(kIdle), {spent, 0, 0});
      return;
    }
    {
      const SteadyTime now = book_.clock().steady_now();
      const MutexLock lock(mutex_);
      for (const queue::Delivery& delivery : deliveries) {
        held_.insert_or_assign(delivery.receipt.id,
                               Held{value_of(delivery.message), begun_kib(bytes_of(delivery.message)), now});
      }
      tidy(now);
    }
    share(deliveries, spent, 1);
  }

  static const std::string& id_of(const queue::Delivery& delivery) { return delivery.receipt.id; }
  static const std::string& id_of(const queue::Completion& completion) { return completion.receipt.id; }
  static const std::string& id_of(const queue::Receipt& receipt) { return receipt.id; }

  /// Among the messages of these deliveries, completions or receipts; `each`: how many messages one of them counts for.
  template <typename Item>
  void share(std::span<const Item> items, const Spent& spent, double each = 0) {
    const SteadyTime now = book_.clock().steady_now();
    std::map<std::string, Usage> shares;
    {
      const MutexLock lock(mutex_);
      static const Held kUnknown{std::string(kNoValue), 1, {}};
      std::vector<const Held*> all;
      double kib = 0;
      for (const Item& item : items) {
        const auto found = held_.find(id_of(item));
        if (found != held_.end()) {
          found->second.seen = now;
        }
        all.push_back(found == held_.end() ? &kUnknown : &found->second);
        kib += all.back()->kib;
      }
      for (const Held* held : all) {
        shares[held->value] += {spent * (held->kib / kib), each, each * held->kib};
      }
    }
    for (const auto& [value, usage] : shares) {
      book_.add_value(value, usage);
    }
  }

  void forget(std::span<const queue::Completion> completions, const std::vector<queue::SettleResult>& results) {
    const MutexLock lock(mutex_);
    for (std::size_t i = 0; i < std::min(completions.size(), results.size()); ++i) {
      if (has_ended(completions[i], results[i]) || results[i].status == queue::SettleStatus::lost) {
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
  CostBook& book_;
  const CostBook::Names names_;
  UnitBudget* const budget_;  ///< null: nothing holds it back

  Mutex mutex_;
  std::unordered_map<std::string, Held> held_ SLUICE_GUARDED_BY(mutex_);  ///< by message
  std::size_t tidy_at_ SLUICE_GUARDED_BY(mutex_) = kFirstTidying;
};

}  // namespace

UnitBudget::Bucket::Bucket(double rate, SteadyTime now)
    : rate_(rate), capacity_(std::max(rate, 1.0)), tokens_(capacity_), filled_at_(now) {}

double UnitBudget::Bucket::tokens(SteadyTime now) const {
  const double passed = std::chrono::duration<double>(std::max(now - filled_at_, Duration::zero())).count();
  return std::min(capacity_, tokens_ + passed * rate_);
}

void UnitBudget::Bucket::take(double units, SteadyTime now) {
  tokens_ = tokens(now) - units;
  filled_at_ = std::max(now, filled_at_);
}

SteadyTime UnitBudget::Bucket::ready_at(double share, SteadyTime now) const {
  const double missing = rate_ > 0 ? share * capacity_ - tokens(now) : 0;
  return missing > 0 ? now + seconds(missing / rate_) : now;
}

double UnitBudget::Bucket::room(double per_message, SteadyTime now) const {
  const double most = rate_ > 0 && per_message > 0 ? tokens(now) / per_message : kMostMessages;
  return std::clamp(std::floor(most), 1.0, kMostMessages);
}

void UnitBudget::learn(Call call, std::size_t messages, const Spent& spent) {
  if (messages == 0) {
    return;
  }
  const MutexLock lock(mutex_);
  PerMessage& cost = costs_.at(static_cast<std::size_t>(call));
  Spent next = spent * ((cost ? 1 - kOld : 1) / static_cast<double>(messages));
  next += cost.value_or(Spent()) * kOld;
  cost = next;
}

UnitBudget::UnitBudget(const Limits& limits, SteadyTime now)
    : limits_(limits), writes_(limits.write_units, now), reads_(limits.read_units, now) {}

void UnitBudget::charge(const Spent& spent, SteadyTime now) {
  const MutexLock lock(mutex_);
  writes_.take(spent.write_units, now);
  reads_.take(spent.read_units, now);
}

SteadyTime UnitBudget::ready_at(Call call, SteadyTime now) {
  const double share = call == Call::claim ? kClaimShare : 0;
  const MutexLock lock(mutex_);
  const SteadyTime at = std::max(writes_.ready_at(share, now), reads_.ready_at(share, now));
  if (at > now) {
    waited_ += std::max(at - std::max(now, held_until_), Duration::zero());
    held_until_ = std::max(held_until_, at);
  }
  return at;
}

std::size_t UnitBudget::most(Call call, SteadyTime now) const {
  const MutexLock lock(mutex_);
  const PerMessage& cost = costs_.at(static_cast<std::size_t>(call));
  if (!cost) {
    return kFirstBatch;
  }
  return static_cast<std::size_t>(std::min(writes_.room(cost->write_units, now), reads_.room(cost->read_units, now)));
}

void HourRing::add(const Usage& usage, SteadyTime now) {
  const std::int64_t number = minute_of(now);
  Minute& minute = minutes_[static_cast<std::size_t>(number) % kMinutes];
  if (minute.number != number) {
    minute = {number, {}};
  }
  minute.usage += usage;
}

Usage HourRing::sum(SteadyTime now) const {
  const std::int64_t last = minute_of(now);
  Usage sum;
  for (const Minute& minute : minutes_) {
    if (minute.number >= 0 && minute.number <= last && minute.number > last - static_cast<std::int64_t>(kMinutes)) {
      sum += minute.usage;
    }
  }
  return sum;
}

void TopValues::add(const std::string& value, const Usage& usage, double weight) {
  Entry& entry = entry_of(value);
  entry.rank += weight;
  if (entry.shown || takes_a_place(entry)) {
    entry.usage += usage;
  } else {
    other_ += usage;
  }
}

TopValues::Entry& TopValues::entry_of(const std::string& value) {
  if (const auto known = entries_.find(value); known != entries_.end()) {
    return known->second;
  }
  Entry fresh;
  if (entries_.size() >= shown_ * kKnownPerShown) {
    const auto cheapest = lowest(false);
    fresh.rank = cheapest->second.rank;  // it may have been as dear as this while nobody knew it
    entries_.erase(cheapest);
  }
  return entries_.emplace(value, fresh).first->second;
}

bool TopValues::takes_a_place(Entry& entry) {
  if (shown_now_ < shown_) {
    ++shown_now_;
  } else {
    Entry& cheapest = lowest(true)->second;
    if (entry.rank <= cheapest.rank * kAhead) {
      return false;
    }
    gone_ += cheapest.usage;
    cheapest.usage = {};
    cheapest.shown = false;
  }
  entry.shown = true;
  return true;
}

TopValues::Entries::iterator TopValues::lowest(bool shown) {
  auto found = entries_.end();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    if (entry->second.shown == shown && (found == entries_.end() || entry->second.rank < found->second.rank)) {
      found = entry;
    }
  }
  return found;
}

TopValues::View TopValues::view() const {
  View view{{}, other_, gone_};
  std::vector<std::pair<double, Named>> shown;
  for (const auto& [value, entry] : entries_) {
    if (entry.shown) {
      shown.push_back({entry.rank, {value, entry.usage}});
    }
  }
  std::stable_sort(shown.begin(), shown.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [rank, named] : shown) {
    view.values.push_back(std::move(named));
  }
  return view;
}

CostBook::CostBook(const config::HostConfig& host, const Clock& clock)
    : prices_(host.cost),
      attribute_(host.cost.attribute),
      clock_(clock),
      begun_(clock.steady_now()),
      values_(host.cost.top) {
  for (const auto& [name, queue] : host.queues) {
    if (queue.max_write_units > 0 || queue.max_read_units > 0) {
      budgets_.emplace(
          name, std::make_unique<UnitBudget>(UnitBudget::Limits{queue.max_write_units, queue.max_read_units}, begun_));
    }
  }
}

void CostBook::spent(const std::string& queue, const Spent& spent) {
  SpendScope* const scope = SpendScope::current();
  if (scope == nullptr) {
    // Not held against a budget: a long queue that is counted often would never be worked on.
    return add({queue, std::string(kShared)}, {spent, 0, 0});
  }
  if (UnitBudget* const limit = budget(scope->queue())) {
    limit->charge(spent, clock_.steady_now());
  }
  scope->add(spent);
}

UnitBudget* CostBook::budget(const std::string& queue) const {
  const auto found = budgets_.find(queue);
  return found == budgets_.end() ? nullptr : found->second.get();
}

void CostBook::add(const Names& names, const Usage& usage) {
  const SteadyTime now = clock_.steady_now();
  const MutexLock lock(mutex_);
  Entry& entry = entries_[names];
  entry.total += usage;
  entry.hour.add(usage, now);
}

void CostBook::add_value(const std::string& value, const Usage& usage) {
  const double weight = prices_.of(usage.spent) + usage.messages * kWeightOfMessage;
  const MutexLock lock(mutex_);
  values_.add(value, usage, weight);
}

CostView CostBook::view() const {
  const SteadyTime now = clock_.steady_now();
  CostView view;
  view.attribute = attribute_;
  view.covered = std::min<Duration>(now - begun_, std::chrono::hours(1));
  for (const auto& [queue, budget] : budgets_) {
    view.budgets.push_back({queue, budget->limits(), budget->holds(now), budget->waited(now)});
  }
  const MutexLock lock(mutex_);
  for (const auto& [names, entry] : entries_) {
    view.rows.push_back({names.first, names.second, entry.total, entry.hour.sum(now)});
  }
  view.values = values_.view();
  return view;
}

std::unique_ptr<queue::Source> metered(std::unique_ptr<queue::Source> source, CostBook& book, std::string job,
                                       std::string queue) {
  return std::make_unique<MeteredSource>(std::move(source), book, std::move(job), std::move(queue));
}

}  // namespace sluice::cost
