// Nanoseconds a message from the worker's call to the outcome in its hands: arming the attempt, the C table both ways,
// and the C++ layer on the plugin's side. The budget is one microsecond.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "host/plugin/handler_instance.hpp"
#include "host/plugin/plugin_registry.hpp"

namespace sluice {
namespace {

const sluice_handler& handler(std::size_t index) {
  const plugin::LibraryResult library = plugin::load_library(SLUICE_NOOP_PLUGIN);
  if (library.plugin == nullptr) {
    std::fprintf(stderr, "%s\n", library.why.c_str());
    std::exit(70);
  }
  return *library.plugin->handlers[index];
}

queue::Message message(std::int64_t attributes) {
  queue::Message message;
  message.id = "0b5e8f0e-6b0a-4b6e-9a39-000000000000";
  message.body = std::string(600, 'x');
  message.attempt = 1;
  for (std::int64_t i = 1; i < attributes; ++i) {
    message.attributes["attribute-" + std::to_string(i)] = "value";
  }
  if (attributes > 0) {
    message.attributes["colour"] = "red";
  }
  return message;
}

void dispatch(benchmark::State& state, std::size_t index) {
  const auto instance = plugin::HandlerInstance::create({}, handler(index), "bench", {});
  if (!instance) {
    state.SkipWithError(instance.error().message().c_str());
    return;
  }
  const SystemClock clock;
  plugin::Attempt attempt(clock);
  const queue::Message given = message(state.range(0));
  std::size_t done = 0;
  for (auto _ : state) {
    attempt.arm(clock.steady_now() + std::chrono::seconds(60));
    done += (*instance)->handle({given, "bench", 5, attempt}).status == plugin::OutcomeStatus::done ? 1 : 0;
  }
  state.SetItemsProcessed(state.iterations());
  if (done != static_cast<std::size_t>(state.iterations())) {
    state.SkipWithError("a message was not done");
  }
}

void noop(benchmark::State& state) { dispatch(state, 0); }
void reader(benchmark::State& state) { dispatch(state, 1); }

BENCHMARK(noop)->ArgName("attributes")->Arg(0)->Arg(4)->Arg(32);
BENCHMARK(noop)->ArgName("attributes")->Arg(4)->Threads(2);
BENCHMARK(reader)->ArgName("attributes")->Arg(1)->Arg(4);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
