// A thousand cases of the test kit: options bound, the handler made, one message handled with a log line and an effect,
// the outcome read, the handler destroyed. The budget is a second.
#include <benchmark/benchmark.h>

#include <sluice/testing.hpp>

namespace {

struct Copies {
  static constexpr sluice::OptionSpec options[] = {
      sluice::option<std::string>("to", "copies", "Which queue gets a copy."),
      sluice::option<std::chrono::milliseconds>("pause", "1s", "How long to rest before."),
  };
  explicit Copies(const sluice::Options& values) : to(values.get<std::string>("to")), pause(values.duration("pause")) {}

  sluice::Outcome handle(const sluice::Message& message, sluice::Context& context) const {
    if (context.wait_for_stop(pause)) {
      return sluice::release();
    }
    context.send(to, message.body()).attribute("of", message.id());
    context.info("copied");
    return sluice::done();
  }

  std::string to;
  std::chrono::nanoseconds pause;
};

void thousand_cases(benchmark::State& state) {
  for (auto _ : state) {
    for (int i = 0; i < 1000; ++i) {
      sluice::testing::HandlerTest test(sluice::testing::handler<Copies>(), {{"to", "elsewhere"}, {"pause", "30s"}});
      const auto result = test.handle({.body = "a body of usual length", .attributes = {{"colour", "red"}}});
      if (!result.committed || result.effects.messages.size() != 1 || !test.logged("copied")) {
        state.SkipWithError("a case failed");
        return;
      }
    }
  }
}
BENCHMARK(thousand_cases)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
