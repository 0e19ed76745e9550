#include "host/runtime/name_lists.hpp"

#include "host/work/job_queues.hpp"

namespace sluice::runtime {

std::vector<std::string> queues_of(const std::vector<JobPlan>& plans) {
  std::vector<std::string> names;
  names.reserve(plans.size());
  for (const JobPlan& plan : plans) {
    for (const config::WeightedQueue& queue : work::queues_of(plan.config)) {
      names.push_back(queue.name);
    }
  }
  return names;
}

std::vector<std::string> queues_of(const std::vector<queue::QueueAddress>& addresses) {
  std::vector<std::string> names;
  names.reserve(addresses.size());
  for (const queue::QueueAddress& address : addresses) {
    names.push_back(address.queue);
  }
  return names;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text.empty() ? "none" : text;
}

}  // namespace sluice::runtime
