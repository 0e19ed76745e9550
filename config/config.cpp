#include "config/config.hpp"

#include <algorithm>
#include <cstdlib>

namespace sluice::config {

std::string ConfigError::text() const {
  if (place.line == 0) {
    return place.file + ": " + message;
  }
  return place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) + ": " + message;
}

QueueConfig HostConfig::queue(const std::string& queue_name) const {
  const auto found = queues.find(queue_name);
  QueueConfig result = found == queues.end() ? QueueConfig{} : found->second;
  if (result.table.empty()) {
    result.table = queue_name;
  }
  return result;
}

const StoreConfig& HostConfig::store_of(const std::string& queue_name) const {
  const auto named = stores.find(queue(queue_name).store);
  return named == stores.end() ? store : named->second;
}

bool HostConfig::leased(const std::string& queue_name) const {
  return store_of(queue_name).kind == StoreKind::dynamodb && queue(queue_name).layout == Layout::leased;
}

const OutboxConfig* HostConfig::outbox(const std::string& queue_name) const {
  const auto outbox_name = outbox_named(queue_name);
  const auto found = outbox_name ? outboxes.find(*outbox_name) : outboxes.end();
  return found == outboxes.end() ? nullptr : &found->second;
}

namespace {

bool same_pin(const std::optional<PluginPin>& one, const std::optional<PluginPin>& other) {
  return one && other ? one->same_bytes(*other) : one.has_value() == other.has_value();
}

}  // namespace

bool ScheduleConfig::same_schedule(const ScheduleConfig& other) const {
  return name == other.name && cron == other.cron && every == other.every && time_zone == other.time_zone &&
         catch_up == other.catch_up && queue == other.queue && body == other.body &&
         content_type == other.content_type && attributes == other.attributes && group == other.group &&
         priority == other.priority;
}

bool JobConfig::same_job(const JobConfig& other) const {
  if (options.size() != other.options.size()) {
    return false;
  }
  for (const auto& [option_name, option] : options) {
    const auto found = other.options.find(option_name);
    if (found == other.options.end() || found->second.value != option.value) {
      return false;
    }
  }
  return name == other.name && queue == other.queue && source == other.source && handler == other.handler &&
         concurrency == other.concurrency && timeout == other.timeout && rate_limit == other.rate_limit &&
         poll_interval == other.poll_interval && isolation == other.isolation && limits == other.limits &&
         retry == other.retry && dead_letter == other.dead_letter && queues == other.queues && order == other.order &&
         fair == other.fair && priorities == other.priorities && idempotency == other.idempotency &&
         on_dead_letter == other.on_dead_letter && outbox == other.outbox &&
         std::equal(schedules.begin(), schedules.end(), other.schedules.begin(), other.schedules.end(),
                    [](const auto& one, const auto& another) { return one.same_schedule(another); }) &&
         same_pin(plugin, other.plugin);
}

Environment process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

}  // namespace sluice::config
