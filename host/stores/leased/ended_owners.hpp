#pragma once

#include <string>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/stores/table/table_errors.hpp"

namespace sluice::queue::leased {

/// What a process calls itself as an owner: the host's name, a slash and 8 characters of chance.
std::string make_incarnation(const std::string& host, Random& random);

/// Marks the heartbeat of a process that has ended, as its machine knows for certain, so that what it owned is taken at
/// once; `settled`: and nothing of it is in doubt. Costs a read and a write; where there is no heartbeat, the read.
/// One that moves meanwhile is an error: whoever wrote it lives.
Result<void> mark_ended(dynamo::Client& client, const table::QueueTable& place, const std::string& incarnation,
                        bool settled, Deadline deadline);

}  // namespace sluice::queue::leased
