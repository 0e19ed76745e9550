#include "host/operate/cost_summary.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace sluice::operate {
namespace {

using Names = std::pair<std::string, std::string>;

// What is extrapolated from less would be chance.
constexpr Duration kShortest = std::chrono::minutes(1);

cost::Usage usage_of(const fleet::UsageRecord& record) {
  return {{record.requests, record.read_units, record.write_units},
          record.messages,
          record.kib,
          record.indexed_kib,
          record.message_seconds,
          record.kib_seconds};
}

double hours(Duration duration) {
  return std::chrono::duration<double, std::ratio<3600>>(std::max(duration, kShortest)).count();
}

bool held(const fleet::HostRecord& host, const std::string& job) {
  return std::any_of(host.jobs.begin(), host.jobs.end(),
                     [&](const fleet::JobRecord& one) { return one.name == job && one.held_by_budget; });
}

/// Gathers what hosts tell.
class Gathering {
 public:
  Gathering(const std::string& queue, const cost::Prices& prices) : queue_(queue), prices_(prices) {}

  void add(const fleet::HostRecord& host) {
    ++summary_.hosts;
    summary_.shortest = summary_.hosts == 1 ? host.spent_in : std::min(summary_.shortest, host.spent_in);
    summary_.covered = std::max(summary_.covered, host.spent_in);
    for (const fleet::SpentRecord& spent : host.spent) {
      if (!queue_.empty() && spent.queue != queue_) {
        continue;
      }
      CostSummary::Row& row = rows_[{spent.queue, spent.job}];
      ++row.hosts;
      row.held_hosts += held(host, spent.job) ? 1 : 0;
      row.hour += usage_of(spent.usage);
      row.per_hour += prices_.of(usage_of(spent.usage).spent) / hours(host.spent_in);
    }
    summary_.attribute = summary_.attribute.empty() ? host.attribute : summary_.attribute;
    for (const fleet::ValueRecord& value : host.values) {
      if (host.attribute == summary_.attribute) {
        values_[value.value] += usage_of(value.usage);
      }
    }
  }
  void add_silent() { ++summary_.silent; }

  CostSummary take() {
    for (auto& [names, row] : rows_) {
      row.queue = names.first;
      row.job = names.second;
      summary_.rows.push_back(std::move(row));
    }
    std::stable_sort(summary_.rows.begin(), summary_.rows.end(), [](const auto& a, const auto& b) {
      return a.queue != b.queue ? a.queue < b.queue : a.per_hour > b.per_hour;
    });
    for (auto& [value, usage] : values_) {
      summary_.values.push_back({value, usage});
    }
    std::stable_sort(summary_.values.begin(), summary_.values.end(), [this](const auto& a, const auto& b) {
      const double left = prices_.of(a.usage.spent);
      const double right = prices_.of(b.usage.spent);
      return left != right ? left > right : a.usage.messages > b.usage.messages;
    });
    return std::move(summary_);
  }

 private:
  const std::string& queue_;
  const cost::Prices& prices_;
  CostSummary summary_;
  std::map<Names, CostSummary::Row> rows_;
  std::map<std::string, cost::Usage> values_;
};

}  // namespace

cost::Usage CostSummary::total() const {
  cost::Usage sum;
  for (const Row& row : rows) {
    sum += row.hour;
  }
  return sum;
}

double CostSummary::per_hour() const {
  double sum = 0;
  for (const Row& row : rows) {
    sum += row.per_hour;
  }
  return sum;
}

CostSummary summarize_costs(const fleet::FleetView& view, const std::string& queue, const cost::Prices& prices) {
  Gathering gathering(queue, prices);
  for (const fleet::KnownHost& host : view.hosts) {
    if (host.pulse == fleet::Pulse::silent) {
      gathering.add_silent();
    } else {
      gathering.add(host.record);
    }
  }
  return gathering.take();
}

}  // namespace sluice::operate
