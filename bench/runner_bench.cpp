// What does a handler in a process of its own cost a call? The same noop handler on a thread and in Runners, through
// the same interface that the engine calls. The budget is 20 microseconds more, and 60,000 a second on two processors
// with eight of them.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "host/isolation/runner.hpp"
#include "host/plugin/plugin_registry.hpp"

namespace sluice::isolation {
namespace {

RunnerSpawner* spawner = nullptr;

const sluice_handler& handler() {
  static const plugin::LibraryResult library = plugin::load_library(SLUICE_NOOP_PLUGIN);
  if (library.plugin == nullptr) {
    std::fprintf(stderr, "%s\n", library.why.c_str());
    std::exit(70);
  }
  return *library.plugin->handlers[0];
}

Result<std::unique_ptr<plugin::HandlerInstance>> in_process() {
  auto file = open_plugin(SLUICE_NOOP_PLUGIN);
  if (!file) {
    return file.error();
  }
  return RunnerInstance::create({{"bench", SLUICE_NOOP_PLUGIN, handler().name}, {}, {}, *file}, *spawner, {});
}

Result<std::unique_ptr<plugin::HandlerInstance>> on_thread() {
  return plugin::HandlerInstance::create({}, handler(), "bench", {});
}

template <typename Make>
void calls(benchmark::State& state, Make make) {
  const auto instance = make();
  if (!instance) {
    state.SkipWithError(instance.error().message().c_str());
    return;
  }
  queue::Message message;
  message.id = "0b5e8f0e-6b0a-4b6e-9a39-000000000000";
  message.body = std::string(static_cast<std::size_t>(state.range(0)), 'x');
  message.attributes["colour"] = "red";
  message.attempt = 1;
  const SystemClock clock;
  plugin::Attempt attempt(clock);
  std::size_t done = 0;
  for (auto _ : state) {
    attempt.arm(clock.steady_now() + std::chrono::seconds(60));
    done += (*instance)->handle({message, "bench", 5, attempt}).status == plugin::OutcomeStatus::done ? 1 : 0;
  }
  state.SetItemsProcessed(state.iterations());
  if (done != static_cast<std::size_t>(state.iterations())) {
    state.SkipWithError("a message was not done");
  }
}

void thread(benchmark::State& state) { calls(state, on_thread); }
void process(benchmark::State& state) { calls(state, in_process); }

BENCHMARK(thread)->ArgName("bytes")->Arg(600)->UseRealTime();
BENCHMARK(process)->ArgName("bytes")->Arg(600)->Arg(64 * 1024)->UseRealTime();
BENCHMARK(process)->ArgName("bytes")->Arg(600)->Threads(2)->Threads(8)->UseRealTime();

}  // namespace
}  // namespace sluice::isolation

int main(int argc, char** argv) {
  if (sluice::isolation::is_runner(argc, argv)) {
    return sluice::isolation::run_runner();
  }
  sluice::isolation::RunnerSpawner spawner;
  if (auto started = spawner.start(); !started) {
    std::fprintf(stderr, "%s\n", started.error().message().c_str());
    return 70;
  }
  sluice::isolation::spawner = &spawner;
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
