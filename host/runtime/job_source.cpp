#include "host/runtime/job_source.hpp"

#include <utility>
#include <vector>

#include "host/cost/metered_source.hpp"
#include "host/queue/joined_source.hpp"
#include "host/runtime/outbox_stores.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::runtime {

Result<std::unique_ptr<queue::Source>> open_source(queue::Queues& queues, const config::HostConfig& host,
                                                   const config::JobConfig& job, cost::CostBook& book) {
  const auto addresses = work::addresses_of(job);
  const auto metered = [&](std::unique_ptr<queue::Source> source, const queue::QueueAddress& address) {
    return cost::metered(std::move(source), book.account(job.name, address.queue));
  };
  if (job.queues.empty()) {
    auto opened = queues.open_selected(addresses.front(), selection_of(job));
    return opened ? Result<std::unique_ptr<queue::Source>>(metered(std::move(*opened), addresses.front()))
                  : opened.error();
  }
  std::vector<queue::JoinedSource::Part> parts;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    SLUICE_TRY(opened, queues.open_source(addresses[i]));
    const config::QueueConfig settings = host.queue(addresses[i].queue);
    parts.push_back({metered(std::move(*opened), addresses[i]), job.queues[i].weight, settings.visibility_timeout,
                     settings.max_in_flight});
  }
  return std::unique_ptr<queue::Source>(std::make_unique<queue::JoinedSource>(std::move(parts)));
}

std::vector<cost::UnitBudget*> budgets_of(const config::JobConfig& job, const cost::CostBook& book) {
  std::vector<cost::UnitBudget*> budgets;
  for (const config::WeightedQueue& queue : work::queues_of(job)) {
    if (cost::UnitBudget* budget = book.budget(queue.name)) {
      budgets.push_back(budget);
    }
  }
  return budgets;
}

}  // namespace sluice::runtime
