#pragma once

#include <memory>
#include <vector>

#include "base/error.hpp"
#include "config/config.hpp"
#include "host/cost/cost_book.hpp"
#include "host/queue/queues.hpp"
#include "host/queue/source.hpp"

namespace sluice::runtime {

/// What a job draws from: one queue's source, or those of several joined. What they cost is written into `book`, which
/// outlives them.
Result<std::unique_ptr<queue::Source>> open_source(queue::Queues& queues, const config::HostConfig& host,
                                                   const config::JobConfig& job, cost::CostBook& book);
/// The budgets of those of its queues that have one.
std::vector<cost::UnitBudget*> budgets_of(const config::JobConfig& job, const cost::CostBook& book);

}  // namespace sluice::runtime
