#pragma once

#include <memory>

#include "host/cost/cost_book.hpp"
#include "host/queue/source.hpp"

namespace sluice::cost {

/// The source of one job's queue, whose calls are put down to the job: each call's consumed capacity to its account
/// and, where an attribute is told apart, to the messages of the call by their size in begun KiB. A claim waits for the
/// queue's budget: it then finds nothing, and says when to ask again. `account` outlives the source.
std::unique_ptr<queue::Source> metered(std::unique_ptr<queue::Source> source, CostBook::Account& account);

/// The size by which a call's cost is shared among its messages: of id, body, attributes and group, in begun KiB.
double kib_of(const queue::Message& message);

}  // namespace sluice::cost
