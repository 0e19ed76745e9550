// How fast, and at what cost, does a DynamoMQ queue drain through store calls? Messages of 600 bytes are sent, then
// claimed and removed in lots, on the emulator; sent again, they go to the DLQ, are redriven and purged in bulk, which
// may take at most a tenth of a request a message. And once more under a role without PartiQL, where every write is a
// request of its own. Arguments: messages (10000), lot (100), threads (2).

#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "tests/stores/dynamomq/emulated_tables.hpp"

namespace {

using namespace sluice;
using namespace sluice::queue;

struct Setting {
  std::size_t messages = 10'000;
  std::size_t lot = 100;
  std::size_t threads = 2;
};

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// Prints what happened between its construction and its report.
class Meter {
 public:
  explicit Meter(test::UsageCount& usage) : usage_(usage) { usage_.reset(); }

  /// The requests a message.
  double report(const char* what, std::size_t messages) const {
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    const double cpu = cpu_seconds() - cpu_;
    const auto count = static_cast<double>(messages);
    const auto capacity = usage_.capacity();
    std::printf("%-14s %8zu messages %8.0f /s  %6.1f us CPU  %6.3f WCU  %6.4f RCU  %6.4f requests a message\n", what,
                messages, count / seconds, cpu * 1e6 / count, capacity.write / count, capacity.read / count,
                static_cast<double>(usage_.requests()) / count);
    return static_cast<double>(usage_.requests()) / count;
  }

 private:
  test::UsageCount& usage_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double cpu_ = cpu_seconds();
};

bool send_all(test::Desk& desk, const Setting& setting, Deadline deadline) {
  for (std::size_t sent = 0; sent < setting.messages; sent += setting.lot) {
    std::vector<NewMessage> lot(std::min(setting.lot, setting.messages - sent));
    for (auto& message : lot) {
      message.body.assign(600, 'x');
    }
    for (const auto& result : desk.send("bench", lot, deadline)) {
      if (result.status != SendStatus::sent) {
        std::fprintf(stderr, "send: %s\n", result.error.message().c_str());
        return false;
      }
    }
  }
  return true;
}

std::size_t drain(test::Desk& desk, const Setting& setting, Deadline deadline) {
  std::atomic<std::size_t> removed = 0;
  const auto work = [&] {
    while (removed < setting.messages) {
      auto claims = desk.claim({"bench"}, setting.lot, std::chrono::seconds(30), deadline);
      if (!claims) {
        std::fprintf(stderr, "claim: %s\n", claims.error().message().c_str());
        return;
      }
      std::vector<Completion> completions;
      for (const auto& claim : *claims) {
        completions.push_back(
            {.receipt = claim.receipt, .action = CompletionAction::remove, .delay = {}, .failure = {}});
      }
      for (const auto& result : desk.settle({"bench"}, completions, deadline)) {
        removed += result.status == SettleStatus::applied ? 1 : 0;
      }
    }
  };
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < setting.threads; ++i) {
    threads.emplace_back(work);
  }
  threads.clear();
  return removed;
}

// Applies one change to every message of a half, page by page, as a bulk command does. How many it was applied to.
std::size_t change_all(test::Desk& desk, const QueueAddress& address, ChangeAction action, Deadline deadline) {
  std::size_t applied = 0;
  ListRequest request{.half = address.half, .limit = 500, .cursor = {}, .content = false};
  do {
    const auto page = desk.list(address.queue, request, deadline);
    if (!page) {
      std::fprintf(stderr, "list: %s\n", page.error().message().c_str());
      return applied;
    }
    std::vector<Change> changes;
    for (const auto& found : page->messages) {
      changes.push_back({.id = found.message.id, .action = action, .version = found.version});
    }
    for (const auto& result : desk.change(address.queue, changes, deadline)) {
      applied += result.status == ChangeStatus::applied ? 1 : 0;
    }
    request.cursor = page->next;
  } while (!request.cursor.empty());
  return applied;
}

// True when every message was reached within the budget of requests.
bool bulk(test::EmulatedHost& host, const Setting& setting, Deadline deadline) {
  constexpr double kBudget = 0.1;
  test::Desk& desk = host.desk();
  if (!send_all(desk, setting, deadline)) {
    return false;
  }
  const Meter burying(host.usage());
  bool right = change_all(desk, {"bench"}, ChangeAction::dead_letter, deadline) == setting.messages;
  right = burying.report("dead-letter", setting.messages) <= kBudget && right;
  const Meter redriving(host.usage());
  right = change_all(desk, {"bench", Half::dlq}, ChangeAction::redrive, deadline) == setting.messages && right;
  right = redriving.report("redrive", setting.messages) <= kBudget && right;
  const Meter purging(host.usage());
  right = change_all(desk, {"bench"}, ChangeAction::remove, deadline) == setting.messages && right;
  return purging.report("purge", setting.messages) <= kBudget && right;
}

// Sends and drains under a role that may execute no statements. True when that stays within its budget of requests.
bool one_by_one(const Clock& clock, const Setting& setting, Deadline deadline) {
  constexpr double kBudget = 3.1;
  test::EmulatedHost host(clock, "alone", 2);
  host.faults().choose([](const std::string& operation, const std::string&) {
    return operation == "BatchExecuteStatement" ? test::HttpFault::deny : test::HttpFault::none;
  });
  const Meter living(host.usage());
  const bool all =
      send_all(host.desk(), setting, deadline) && drain(host.desk(), setting, deadline) == setting.messages;
  return living.report("one by one", setting.messages) <= kBudget && all;
}

}  // namespace

int main(int argc, char** argv) {
  Setting setting;
  const auto argument = [&](int place, std::size_t otherwise) {
    return argc > place ? std::strtoull(argv[place], nullptr, 10) : otherwise;
  };
  setting.messages = argument(1, setting.messages);
  setting.lot = argument(2, setting.lot);
  setting.threads = argument(3, setting.threads);
  if (setting.messages == 0 || setting.lot == 0 || setting.threads == 0) {
    std::fprintf(stderr, "usage: %s [messages] [lot] [threads], each at least 1\n", argv[0]);
    return 64;
  }
  if (test::shared_emulator() == nullptr) {
    std::fprintf(stderr, "%s\n", test::Emulator::absence().c_str());
    return 77;
  }
  const SystemClock clock;
  test::EmulatedHost host(clock, "bench", 1);
  test::make_table(host.client(), "bench", clock);
  const Deadline deadline = Deadline::after(clock, std::chrono::minutes(10));
  const Meter sending(host.usage());
  if (!send_all(host.desk(), setting, deadline)) {
    return 1;
  }
  sending.report("send", setting.messages);
  const Meter draining(host.usage());
  const std::size_t removed = drain(host.desk(), setting, deadline);
  draining.report("claim+remove", removed);
  const bool right = removed == setting.messages && bulk(host, setting, deadline);
  return one_by_one(clock, setting, deadline) && right ? 0 : 1;
}
