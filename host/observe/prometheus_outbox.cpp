#include "host/observe/prometheus_outbox.hpp"

#include <chrono>

namespace sluice::observe {
namespace {

constexpr std::size_t kMostTypes = 100;
constexpr std::size_t kMostReasons = 50;
constexpr const char* kOther = "other";

const prometheus::Histogram::BucketBoundaries kSeconds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
                                                       1,     2.5,    5,     10,   30,    60,   300, 1800, 3600};
const prometheus::Histogram::BucketBoundaries kRows{1, 2, 5, 10, 25, 50, 100, 250, 500, 1000};

prometheus::Family<prometheus::Counter>& counter(prometheus::Registry& registry, const char* name, const char* help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry);
}

prometheus::Histogram& histogram(prometheus::Registry& registry, const char* name, const char* help,
                                 const std::string& outbox, const prometheus::Histogram::BucketBoundaries& bounds) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({{"outbox", outbox}}, bounds);
}

}  // namespace

PrometheusOutbox::PrometheusOutbox(prometheus::Registry& registry, const std::string& outbox)
    : outbox_(outbox),
      published_(counter(registry, "sluice_outbox_published_total", "Rows marked as sent, by aggregate type")),
      failed_(counter(registry, "sluice_outbox_failed_total", "Rows marked as failed, by aggregate type and reason")),
      latency_(histogram(registry, "sluice_outbox_publish_seconds",
                         "From a row's created_at, or its first fetch, until it is marked as sent", outbox, kSeconds)),
      batches_(histogram(registry, "sluice_outbox_marked_rows", "Rows marked in one transaction", outbox, kRows)) {}

void PrometheusOutbox::published(const std::string& type, Duration latency) {
  prometheus::Counter* rows = nullptr;
  {
    const MutexLock lock(mutex_);
    const std::string name = by_type_.size() < kMostTypes || by_type_.contains(type) ? type : kOther;
    prometheus::Counter*& known = by_type_[name];
    if (known == nullptr) {
      known = &published_.Add({{"outbox", outbox_}, {"type", name}});
    }
    rows = known;
  }
  rows->Increment();
  latency_.Observe(std::chrono::duration<double>(latency).count());
}

void PrometheusOutbox::failed(const std::string& type, const std::string& reason) {
  std::string type_name = type;
  std::string reason_name = reason;
  {
    const MutexLock lock(mutex_);
    const auto bounded = [](std::set<std::string>& known, std::string& name, std::size_t most) {
      if (known.size() < most || known.contains(name)) {
        known.insert(name);
      } else {
        name = kOther;
      }
    };
    bounded(failed_types_, type_name, kMostTypes);
    bounded(reasons_, reason_name, kMostReasons);
  }
  failed_.Add({{"outbox", outbox_}, {"type", type_name}, {"reason", reason_name}}).Increment();
}

}  // namespace sluice::observe
