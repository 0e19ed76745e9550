// Every service: started and stopped in any order, from many threads, any number of times.
#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "host/work/job_flow.hpp"
#include "host/work/job_threads.hpp"
#include "tests/work/job_rig.hpp"

namespace sluice::work {
namespace {

using std::chrono_literals::operator""s;

// Everything that a service may need, on a queue with work in it.
struct Surroundings {
  Surroundings()
      : rig({.handle = {}, .create = {}}),
        instance(*plugin::HandlerInstance::create({}, rig.table(), rig.spec().config.name, {})),
        flow(rig.spec().config, {.host = "worker-a"}, rig.random, none, rig.clock.steady_now()),
        shared("stress", flow, rig.clock, rig.log, rig.metrics) {
    rig.send_many(50);
  }
  JobRig rig;
  std::unique_ptr<queue::Source> source = rig.open_source();
  std::shared_ptr<plugin::HandlerInstance> instance;
  isolation::JobLedger none;
  JobFlow flow;
  SharedFlow shared;
};

using Make = std::function<std::unique_ptr<runtime::Service>(Surroundings&)>;
struct Kind {
  const char* name;
  Make make;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

class ServiceStress : public ::testing::TestWithParam<Kind> {};

TEST_P(ServiceStress, StopsBeforeItsStart) {
  Surroundings around;
  const auto service = GetParam().make(around);
  service->stop();
  service->start();
  service->stop();
}

TEST_P(ServiceStress, EndsWithItsDestruction) {
  for (int i = 0; i < 20; ++i) {
    Surroundings around;
    GetParam().make(around)->start();
  }
}

TEST_P(ServiceStress, IsStoppedByManyAtOnce) {
  for (int i = 0; i < 20; ++i) {
    Surroundings around;
    const auto service = GetParam().make(around);
    service->start();
    std::vector<std::jthread> stoppers;
    stoppers.reserve(4);
    for (int j = 0; j < 4; ++j) {
      stoppers.emplace_back([&] { service->stop(); });
    }
    stoppers.clear();
    service->stop();
  }
}

TEST_P(ServiceStress, IsStoppedWhileItStarts) {
  for (int i = 0; i < 20; ++i) {
    Surroundings around;
    const auto service = GetParam().make(around);
    std::jthread stopper([&] { service->stop(); });
    service->start();
    stopper.join();
    service->stop();
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ServiceStress,
    ::testing::Values(
        Kind{"Poller",
             [](Surroundings& a) -> std::unique_ptr<runtime::Service> {
               return std::make_unique<CallLoop<ClaimCall>>(a.shared, ClaimCall{*a.source, 30s, a.rig.clock});
             }},
        Kind{"Settler",
             [](Surroundings& a) -> std::unique_ptr<runtime::Service> {
               return std::make_unique<CallLoop<SettleCall>>(a.shared, SettleCall{*a.source});
             }},
        Kind{"LeaseKeeper",
             [](Surroundings& a) -> std::unique_ptr<runtime::Service> {
               return std::make_unique<CallLoop<ExtendCall>>(a.shared, ExtendCall{*a.source, 30s});
             }},
        Kind{"WorkerPool",
             [](Surroundings& a) -> std::unique_ptr<runtime::Service> {
               return std::make_unique<WorkerPool>(
                   a.shared, *a.source, WorkerPool::Settings{{"orders"}, 3, 1s},
                   std::vector<WorkerInstance>{{a.instance, false}},
                   [&a](SeatKind) {
                     return WorkerInstance{a.instance, false};
                   },
                   a.none);
             }},
        Kind{"Job",
             [](Surroundings& a) -> std::unique_ptr<runtime::Service> {
               const auto spec = a.rig.spec();
               return *Job::create(spec, a.rig.open_source(), {a.rig.clock, a.rig.random, a.rig.log, a.rig.metrics});
             }}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace sluice::work
