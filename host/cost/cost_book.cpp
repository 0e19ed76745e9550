#include "host/cost/cost_book.hpp"

#include <algorithm>

#include "host/cost/spend_scope.hpp"

namespace sluice::cost {
namespace {

// So that among values that cost nothing, as on SQLite, those of most messages are told.
constexpr double kWeightOfMessage = 1e-9;

}  // namespace

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
