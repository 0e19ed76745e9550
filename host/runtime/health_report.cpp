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

std::string seconds_of(Duration span) {
  return std::to_string(std::chrono::duration_cast<std::chrono::seconds>(span).count()) + " s";
}

// "lag orders" for "outbox:orders".
observe::Component lag_component(const std::string& queue, const DepthSampler::Lag& lag) {
  std::string text = "the oldest row has waited " + seconds_of(lag.age);
  if (lag.limit > Duration::zero()) {
    text += ", lag_limit is " + seconds_of(lag.limit);
  }
  return {"lag " + queue.substr(kOutbox.size()), !lag.beyond(), std::move(text)};
}

void add_places(const HealthSources& sources, std::vector<observe::Component>& all) {
  std::map<std::string, observe::Component> places;
  for (const JobSet::Member& member : sources.jobs.members()) {
    const std::optional<Error> trouble = member.job->activity().trouble;
    for (const config::WeightedQueue& queue : work::queues_of(member.plan.config)) {
      const std::string name = place_of(queue.name, sources.config);
      observe::Component& place = places.try_emplace(name, observe::Component{name, true, "ok"}).first->second;
      if (trouble && place.ok) {
        place.ok = false;
        place.text = "job " + member.plan.config.name + " cannot work: " + trouble->message();
      }
    }
  }
  for (auto& [name, place] : places) {
    all.push_back(std::move(place));
  }
}

std::vector<observe::Component> components_of(const HealthSources& sources) {
  std::vector<observe::Component> all;
  add_places(sources, all);
  const std::string& trouble = sources.ledger_trouble;
  all.push_back({"crash ledger", trouble.empty(), trouble.empty() ? "ok" : trouble});
  for (const JobSet::Member& member : sources.jobs.members()) {
    // "broker relay": what the job's handlers say of their broker.
    for (plugin::PartHealth& part : member.job->parts()) {
      all.push_back({part.part + " " + member.plan.config.name, part.works, std::move(part.text)});
    }
  }
  for (const auto& [queue, lag] : sources.lags) {
    if (queue.starts_with(kOutbox)) {
      all.push_back(lag_component(queue, lag));
    }
  }
  if (sources.telemetry == nullptr) {
    return all;
  }
  for (const observe::SenderStatus& status : sources.telemetry->statuses()) {
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

observe::ProbeResult readied(bool running, const JobSet& jobs, const Lags& lags) {
  if (!running) {
    return {false, "not ready: starting or draining", {}};
  }
  const auto denials = jobs.denials();
  if (!denials.empty()) {
    const auto& [job, error] = *denials.begin();
    return {false, "not ready: job " + job + " may not do its work: " + error.message(), {}};
  }
  for (const JobSet::Member& member : jobs.members()) {
    const work::JobActivity activity = member.job->activity();
    if (activity.cut_off && activity.trouble) {
      return {false, "not ready: job " + member.plan.config.name + " cannot work: " + activity.trouble->message(), {}};
    }
  }
  for (const auto& [queue, lag] : lags) {
    if (lag.beyond()) {
      return {false, "not ready: " + queue + " lags: " + lag_component(queue, lag).text, {}};
    }
  }
  return {true, "ready", {}};
}

}  // namespace

observe::ProbeResult health_of(const HealthSources& sources) {
  observe::ProbeResult result = judged(sources.jobs);
  result.components = components_of(sources);
  return result;
}

observe::ProbeResult readiness_of(bool running, const HealthSources& sources) {
  observe::ProbeResult result = readied(running, sources.jobs, sources.lags);
  result.components = components_of(sources);
  return result;
}

DepthSampler::Limits lag_limits_of(const config::HostConfig& config) {
  DepthSampler::Limits limits;
  for (const auto& [name, outbox] : config.outboxes) {
    if (outbox.lag_limit > Duration::zero()) {
      limits.emplace(std::string(kOutbox) + name, outbox.lag_limit);
    }
  }
  return limits;
}

}  // namespace sluice::runtime
