#include "host/cost/cost_book.hpp"

#include <algorithm>

#include "host/cost/spent.hpp"

namespace sluice::cost {
namespace {

std::int64_t minute_of(SteadyTime time) {
  return std::chrono::floor<std::chrono::minutes>(time.time_since_epoch()).count();
}

// So many are known for each that is shown.
constexpr std::size_t kKnownPerShown = 10;
// By so much a value must be dearer than the cheapest one shown before it takes its place, lest two of a kind change
// places all the time.
constexpr double kAhead = 1.25;

// So that among values that cost nothing, as on SQLite, those of most messages are told.
constexpr double kWeightOfMessage = 1e-9;

}  // namespace

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

CostBook::~CostBook() = default;

void CostBook::spent(const std::string& queue, const Spent& spent) {
  SpendScope* scope = SpendScope::current();
  const std::string& whose = scope == nullptr ? queue : scope->queue();
  // Counts and notices are not held against a budget: a long queue that is counted often would never be worked on.
  UnitBudget* limit = scope == nullptr ? nullptr : budget(whose);
  if (limit != nullptr) {
    limit->charge(spent, clock_.steady_now());
  }
  if (scope == nullptr || scope->shared()) {
    add({whose, std::string(kShared)}, {spent, 0, 0});
  } else {
    scope->add(spent);
  }
}

CostBook::Account& CostBook::account(const std::string& job, const std::string& queue) {
  const MutexLock lock(mutex_);
  auto& known = accounts_[{queue, job}];
  if (!known) {
    known = std::make_unique<Account>(*this, job, queue);
  }
  return *known;
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

}  // namespace sluice::cost
