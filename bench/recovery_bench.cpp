// How long does a host need for what its dead predecessor held? A thousand messages on SQLite, from the ledger on the
// disk to the last settlement. The budget is 100 milliseconds.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "host/isolation/crash_ledger.hpp"
#include "host/runtime/host_queues.hpp"
#include "host/runtime/isolation_ward.hpp"

namespace sluice {
namespace {

constexpr std::size_t kMessages = 1000;
constexpr int kRounds = 7;
const queue::QueueAddress kAddress{"bench", queue::Half::standard};

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "recovery_bench: %s\n", why.c_str());
  std::_Exit(70);
}

void send(queue::Queues& queues, const Clock& clock) {
  auto sender = queues.open_sender("bench");
  if (!sender) {
    fail(sender.error().message());
  }
  std::vector<queue::NewMessage> messages(kMessages);
  for (queue::NewMessage& message : messages) {
    message.body = std::string(100, 'x');
  }
  static_cast<void>((*sender)->send(messages, Deadline::after(clock, std::chrono::seconds(30))));
}

/// Claims everything and is killed with eight at work.
void leave_ledger(queue::Queues& queues, const std::string& folder, const Clock& clock) {
  auto source = queues.open_source(kAddress);
  auto claimed = (*source)->claim({.max = kMessages, .visibility = std::chrono::minutes(10)},
                                  Deadline::after(clock, std::chrono::seconds(30)));
  if (!claimed || claimed->deliveries.size() != kMessages) {
    fail("not everything was claimed");
  }
  const pid_t child = ::fork();
  if (child == 0) {
    auto ledger = isolation::HostLedger::create(folder, {"dead", "host.toml"}, clock);
    const auto job = std::make_unique<isolation::JobSlots>(
        std::vector<isolation::LedgerJob>{{{"bench", "noop.so", "noop"}, kAddress}});
    job->attach(*ledger);
    for (std::size_t i = 0; i < kMessages; ++i) {
      const isolation::HeldSlot slot = job->hold(claimed->deliveries[i]);
      if (i < 8) {
        job->started(slot, claimed->deliveries[i].message.id);
      }
    }
    ::raise(SIGKILL);
  }
  ::waitpid(child, nullptr, 0);
}

/// SQLite has none.
class NoOwners final : public queue::Owners {
 public:
  const std::string& incarnation() const override { return none_; }
  Result<void> ended(const queue::EndedOwner& /*owner*/, Deadline /*deadline*/) override { return {}; }

 private:
  const std::string none_;
};

double recover(queue::Queues& queues, const std::string& folder, const Clock& clock, Random& random) {
  const SteadyTime begin = clock.steady_now();
  auto orphan = isolation::OrphanLedger::take(isolation::LedgerFolder(folder).open_ledgers().at(0));
  if (!orphan || !*orphan) {
    fail("there is no ledger");
  }
  auto steps = runtime::plan_recovery((*orphan)->contents(), {}, random, clock.wall_now());
  runtime::OrphanSettlement settlement(std::move(*orphan), std::move(steps));
  NoOwners owners;
  settlement.settle(queues, owners, clock.steady_now(), Deadline::after(clock, std::chrono::seconds(30)));
  if (auto closed = settlement.close(clock.wall_now(), "next"); !closed) {
    fail(closed.error().message());
  }
  const std::chrono::duration<double, std::milli> took = clock.steady_now() - begin;
  if (settlement.tally().suspects != 8 || settlement.tally().released != kMessages - 8) {
    fail("not everything was settled: " + settlement.trouble());
  }
  return took.count();
}

int run() {
  std::string folder = (std::filesystem::temp_directory_path() / "sluice-recovery-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    fail("no folder");
  }
  const SystemClock clock;
  SeededRandom random;
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    config::HostConfig config;
    config.store.path = folder + "/" + std::to_string(round) + ".db";
    observe::Metrics metrics;
    runtime::HostQueues queues(config, clock, random, &metrics);
    send(queues, clock);
    const std::string ledgers = folder + "/ledgers-" + std::to_string(round);
    leave_ledger(queues, ledgers, clock);
    rounds.push_back(recover(queues, ledgers, clock, random));
  }
  std::filesystem::remove_all(folder);
  std::sort(rounds.begin(), rounds.end());
  std::printf("recovery of %zu held messages on SQLite: median %.1f ms, worst of %d rounds %.1f ms\n", kMessages,
              rounds[rounds.size() / 2], kRounds, rounds.back());
  return 0;
}

}  // namespace
}  // namespace sluice

int main() { return sluice::run(); }
