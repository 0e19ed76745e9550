#include "host/observe/process_families.hpp"

#include <utility>

#include "host/observe/process_stats.hpp"

namespace sluice::observe {
namespace {

prometheus::MetricFamily process_family(const char* name, const char* help, prometheus::MetricType type, double value) {
  prometheus::ClientMetric metric;
  metric.gauge.value = value;
  metric.counter.value = value;
  return {name, help, type, {metric}};
}

}  // namespace

void append_process(std::vector<prometheus::MetricFamily>& families) {
  using prometheus::MetricType;
  const ProcessStats stats = read_process_stats();
  const auto add = [&families](const char* name, const char* help, MetricType type, double value) {
    families.push_back(process_family(name, help, type, value));
  };
  add("process_cpu_seconds_total", "User and system time", MetricType::Counter, stats.cpu_seconds);
  add("process_start_time_seconds", "Start, in seconds since 1970", MetricType::Gauge, stats.start_time);
  add("process_resident_memory_bytes", "Resident memory", MetricType::Gauge, static_cast<double>(stats.resident));
  add("process_threads", "Threads", MetricType::Gauge, static_cast<double>(stats.threads));
  add("process_open_fds", "Open file descriptors", MetricType::Gauge, static_cast<double>(stats.open_files));
  add("process_max_fds", "Limit of open file descriptors", MetricType::Gauge,
      static_cast<double>(stats.open_files_limit));
}

prometheus::MetricFamily family_of(const FigureFamily& family) {
  using prometheus::MetricType;
  prometheus::MetricFamily out{family.name, family.help, family.counter ? MetricType::Counter : MetricType::Gauge, {}};
  for (const Figure& figure : family.figures) {
    prometheus::ClientMetric metric;
    for (const auto& [name, value] : figure.labels) {
      metric.label.push_back({name, value});
    }
    (family.counter ? metric.counter.value : metric.gauge.value) = figure.value;
    out.metric.push_back(std::move(metric));
  }
  return out;
}

}  // namespace sluice::observe
