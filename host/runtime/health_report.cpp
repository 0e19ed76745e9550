#include "host/runtime/health_report.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/work/job_queues.hpp"

namespace sluice::runtime {
namespace {

constexpr std::string_view kOutbox = "outbox:";

/// "store", "store archive" or "outbox orders": where a queue lies.
std::string place_of(const std::string& queue, const config::HostConfig& config) {
  if (queue.starts_with(kOutbox)) {
    return "outbox " + queue.substr(kOutbox.size());
  }
  const std::string store = config.queue(queue).store;
  return store.empty() ? "store" : "store " + store;
}

std::vector<observe::Component> components_of(const JobSet& jobs, const config::HostConfig& config,
                                              const Telemetry* telemetry) {
  std::map<std::string, observe::Component> places;
  for (const JobSet::Member& member : jobs.members()) {
    const std::optional<Error> trouble = member.job->activity().trouble;
    for (const config::WeightedQueue& queue : work::queues_of(member.plan.config)) {
      const std::string name = place_of(queue.name, config);
      observe::Component& place = places.try_emplace(name, observe::Component{name, true, "ok"}).first->second;
      if (trouble && place.ok) {
        place.ok = false;
        place.text = "job " + member.plan.config.name + " cannot work: " + trouble->message();
      }
    }
  }
  std::vector<observe::Component> all;
  all.reserve(places.size());
  for (auto& [name, place] : places) {
    all.push_back(std::move(place));
  }
  if (telemetry == nullptr) {
    return all;
  }
  for (const observe::SenderStatus& status : telemetry->statuses()) {
    const auto& figures = status.figures;
    std::string text = status.trouble.empty() ? "ok" : status.trouble;
    text += "; " + std::to_string(figures.sent) + " sent, " + std::to_string(figures.waiting) + " waiting, " +
            std::to_string(figures.dropped) + " dropped";
    all.push_back({"sender " + status.name, status.trouble.empty(), std::move(text)});
  }
  return all;
}

observe::ProbeResult judged(const JobSet& jobs) {
  const auto stuck = jobs.stuck();
  if (stuck.empty()) {
    return {true, "healthy", {}};
  }
  std::string text = "handler " + stuck.front().handler + " of job " + stuck.front().job +
                     " does not return from message " + stuck.front().message_id;
  if (stuck.size() > 1) {
    text += ", and " + std::to_string(stuck.size() - 1) + " more do not return";
  }
  // Each has its place taken by a new worker, so that a restart is not called for yet.
  return jobs.out_of_workers()
             ? observe::ProbeResult{false, text + "; no more workers take their place: restart the host", {}}
             : observe::ProbeResult{true, "healthy, but " + text, {}};
}

observe::ProbeResult readied(bool running, const JobSet& jobs) {
  if (!running) {
    return {false, "not ready: starting or draining", {}};
  }
  const auto denials = jobs.denials();
  if (denials.empty()) {
    return {true, "ready", {}};
  }
  const auto& [job, error] = *denials.begin();
  return {false, "not ready: job " + job + " may not do its work: " + error.message(), {}};
}

}  // namespace

observe::ProbeResult health_of(const JobSet& jobs, const config::HostConfig& config, const Telemetry* telemetry) {
  observe::ProbeResult result = judged(jobs);
  result.components = components_of(jobs, config, telemetry);
  return result;
}

observe::ProbeResult readiness_of(bool running, const JobSet& jobs, const config::HostConfig& config,
                                  const Telemetry* telemetry) {
  observe::ProbeResult result = readied(running, jobs);
  result.components = components_of(jobs, config, telemetry);
  return result;
}

}  // namespace sluice::runtime
