#pragma once

#include <memory>

#include "base/error.hpp"
#include "config/config.hpp"
#include "host/queue/queues.hpp"
#include "host/queue/source.hpp"

namespace sluice::runtime {

/// What a job draws from: one queue's source, or those of several joined.
Result<std::unique_ptr<queue::Source>> open_source(queue::Queues& queues, const config::HostConfig& host,
                                                   const config::JobConfig& job);

}  // namespace sluice::runtime
