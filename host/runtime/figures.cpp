#include "host/runtime/figures.hpp"

#include <string>
#include <utility>

namespace sluice::runtime {
namespace {

using observe::Figure;
using observe::FigureFamily;
using Labels = std::vector<std::pair<std::string, std::string>>;

/// One family for each thing that is told of a usage.
class UsageFamilies {
 public:
  UsageFamilies(const std::string& prefix, const std::string& whose, const cost::Prices& prices) : prices_(prices) {
    const auto add = [&](const char* name, const std::string& help) {
      families_.push_back({prefix + name, help + whose, true, {}});
    };
    add("messages_total", "Messages claimed ");
    add("requests_total", "Requests to DynamoDB ");
    add("read_units_total", "Read capacity units used ");
    add("write_units_total", "Write capacity units used ");
    add("money_total", "What those units cost by the prices of [cost] ");
  }

  void add(const Labels& labels, const cost::Usage& usage) {
    Labels with_currency = labels;
    with_currency.emplace_back("currency", prices_.currency());
    const double values[]{usage.messages, usage.spent.requests, usage.spent.read_units, usage.spent.write_units};
    std::size_t index = 0;
    for (const double value : values) {
      families_[index++].figures.push_back({labels, value});
    }
    families_[index].figures.push_back({std::move(with_currency), prices_.of(usage.spent)});
  }

  void move_into(std::vector<FigureFamily>& all) {
    for (FigureFamily& family : families_) {
      all.push_back(std::move(family));
    }
  }

 private:
  const cost::Prices& prices_;
  std::vector<FigureFamily> families_;
};

double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

void add_budgets(const cost::CostView& view, std::vector<FigureFamily>& all) {
  FigureFamily limits{"sluice_budget_units_per_second", "What this host may spend on a queue a second", false, {}};
  FigureFamily held{"sluice_budget_held", "1 while work on the queue waits for its budget", false, {}};
  FigureFamily waited{
      "sluice_budget_wait_seconds_total", "How long work on the queue has waited for its budget", true, {}};
  for (const cost::CostView::Budget& budget : view.budgets) {
    for (const auto& [unit, limit] :
         {std::pair("write", budget.limits.write_units), std::pair("read", budget.limits.read_units)}) {
      if (limit > 0) {
        limits.figures.push_back({{{"queue", budget.queue}, {"unit", unit}}, limit});
      }
    }
    held.figures.push_back({{{"queue", budget.queue}}, budget.holds ? 1.0 : 0.0});
    waited.figures.push_back({{{"queue", budget.queue}}, seconds(budget.waited)});
  }
  for (FigureFamily* family : {&limits, &held, &waited}) {
    all.push_back(std::move(*family));
  }
}

}  // namespace

std::vector<FigureFamily> depth_figures(const DepthSampler& depths, SteadyTime now) {
  FigureFamily backlog{"sluice_queue_backlog", "Messages that are due or being worked on, sampled", false, {}};
  FigureFamily age{"sluice_queue_sample_age_seconds", "How old the sampled depth of a queue is", false, {}};
  FigureFamily estimated{"sluice_queue_depth_estimated",
                         "1 where a sampled depth is an estimate or a lower bound, 0 where it is exact",
                         false,
                         {}};
  for (const auto& [queue, depth] : depths.depths()) {
    for (const auto& [half, stats] : {std::pair("standard", &depth.standard), std::pair("dlq", &depth.dlq)}) {
      estimated.figures.push_back({{{"queue", queue}, {"half", half}}, stats->at_least ? 1.0 : 0.0});
    }
    backlog.figures.push_back({{{"queue", queue}}, static_cast<double>(depth.backlog())});
    age.figures.push_back({{{"queue", queue}}, seconds(depth.age(now))});
  }
  return {std::move(backlog), std::move(age), std::move(estimated)};
}

std::vector<observe::FigureFamily> ledger_figures(bool kept) {
  return {{"sluice_crash_ledger",
           "1 while this host keeps its crash ledger, 0 while it cannot",
           false,
           {{{}, kept ? 1.0 : 0.0}}}};
}

std::vector<FigureFamily> cost_figures(const cost::CostView& view, const cost::Prices& prices) {
  std::vector<FigureFamily> all;
  UsageFamilies jobs("sluice_cost_", "for a job's work on a queue", prices);
  for (const cost::CostView::Row& row : view.rows) {
    jobs.add({{"sluice_job", row.job}, {"queue", row.queue}}, row.total);
  }
  jobs.move_into(all);
  if (!view.attribute.empty()) {
    UsageFamilies values("sluice_attribute_", "for messages by a value of their attribute", prices);
    for (const cost::TopValues::Named& named : view.values.values) {
      values.add({{"attribute", view.attribute}, {"value", named.value}}, named.usage);
    }
    values.add({{"attribute", view.attribute}, {"value", std::string(cost::kOtherValues)}}, view.values.other);
    values.move_into(all);
  }
  if (!view.budgets.empty()) {
    add_budgets(view, all);
  }
  return all;
}

}  // namespace sluice::runtime
