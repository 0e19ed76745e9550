#include "host/runtime/job_source.hpp"

#include <utility>
#include <vector>

#include "host/queue/joined_source.hpp"
#include "host/runtime/outbox_stores.hpp"
#include "host/work/job_queues.hpp"

namespace sluice::runtime {

Result<std::unique_ptr<queue::Source>> open_source(queue::Queues& queues, const config::HostConfig& host,
                                                   const config::JobConfig& job) {
  const auto addresses = work::addresses_of(job);
  if (job.queues.empty()) {
    return queues.open_selected(addresses.front(), selection_of(job));
  }
  std::vector<queue::JoinedSource::Part> parts;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    auto opened = queues.open_source(addresses[i]);
    if (!opened) {
      return opened.error();
    }
    const config::QueueConfig settings = host.queue(addresses[i].queue);
    parts.push_back({std::move(*opened), job.queues[i].weight, settings.visibility_timeout, settings.max_in_flight});
  }
  return std::unique_ptr<queue::Source>(std::make_unique<queue::JoinedSource>(std::move(parts)));
}

}  // namespace sluice::runtime
