// What does the crash ledger cost a message? The four notes that the engine makes of each, in a file on this machine's
// disk. The budget is 100 nanoseconds.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "host/isolation/crash_ledger.hpp"

namespace sluice::isolation {
namespace {

constexpr std::size_t kHeld = 1024;

void life_of_a_message(benchmark::State& state) {
  static const SystemClock clock;
  std::string folder = (std::filesystem::temp_directory_path() / "sluice-ledger-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    state.SkipWithError("no folder");
    return;
  }
  auto ledger = HostLedger::create(folder + "/ledgers", {"bench", "host.toml"}, clock);
  if (!ledger) {
    state.SkipWithError(ledger.error().message().c_str());
    return;
  }
  const auto job = std::make_unique<JobSlots>(
      std::vector<LedgerJob>{{{"bench", "/plugins/noop.so", "noop"}, {"bench", queue::Half::standard}}});
  job->attach(*ledger);
  // As in an engine at work: many are held, and one after the other starts, ends and goes.
  std::vector<queue::Delivery> deliveries(kHeld);
  for (std::size_t i = 0; i < kHeld; ++i) {
    deliveries[i].receipt = {"0b5e8f0e-6b0a-4b6e-9a39-" + std::to_string(100'000'000'000 + i), 1, 7};
    deliveries[i].message.attempt = 1;
  }
  std::vector<HeldSlot> slots(kHeld);
  std::transform(deliveries.begin(), deliveries.end(), slots.begin(),
                 [&job](const queue::Delivery& delivery) { return job->hold(delivery); });
  std::size_t next = 0;
  for (auto _ : state) {
    job->drop(slots[next]);
    slots[next] = job->hold(deliveries[next]);
    job->started(slots[next], deliveries[next].receipt.id);
    job->ended(slots[next], false);
    next = (next + 1) % kHeld;
  }
  state.SetItemsProcessed(state.iterations());
  ledger->reset();
  std::filesystem::remove_all(folder);
}
BENCHMARK(life_of_a_message);

}  // namespace
}  // namespace sluice::isolation

BENCHMARK_MAIN();
