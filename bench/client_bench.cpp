// What does a message cost that goes through the producer library, on the emulator and in a file? Messages of 600
// bytes, produced by some threads without waiting. Arguments: messages (10000), threads (2).

#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <vector>

#include "client/src/core.hpp"
#include "sluice/client.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"

namespace {

using namespace sluice;

struct Setting {
  std::size_t messages = 10'000;
  std::size_t threads = 2;
};

/// Messages that were stored.
std::size_t produce_all(client::QueueClient& client, const Setting& setting) {
  std::atomic<std::size_t> sent = 0;
  client::Producer producer(client);
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < setting.threads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < setting.messages; i += setting.threads) {
        producer.produce_async(std::string(600, 'x'), {},
                               [&](const client::ProduceResult& result) { sent += result ? 1 : 0; });
      }
    });
  }
  threads.clear();
  producer.close(std::chrono::minutes(10));
  return sent;
}

bool report(const char* what, client::QueueClient& client, const Setting& setting, test::UsageCount* usage) {
  const auto start = std::chrono::steady_clock::now();
  const std::size_t sent = produce_all(client, setting);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const auto count = static_cast<double>(setting.messages);
  std::printf("%-10s %8zu messages %8.0f /s", what, sent, count / seconds);
  if (usage != nullptr) {
    std::printf("  %6.4f requests a message  %6.3f WCU", static_cast<double>(usage->requests()) / count,
                usage->capacity().write / count);
  }
  std::printf("\n");
  return sent == setting.messages;
}

bool run_on_emulator(const Setting& setting) {
  if (test::shared_emulator() == nullptr) {
    std::fprintf(stderr, "%s\n", test::Emulator::absence().c_str());
    return true;
  }
  const SystemClock clock;
  test::EmulatedHost host(clock, "bench", 1);
  test::make_table(host.client(), "bench", clock);
  auto client = client::detail::Core::client({host.desk().queues(), clock, host.random()}, {.queue = "bench"}, nullptr);
  if (!client) {
    std::fprintf(stderr, "%s\n", client.error().message().c_str());
    return false;
  }
  host.usage().reset();
  return report("emulator", *client, setting, &host.usage());
}

bool run_on_file(const Setting& setting) {
  std::string name = (std::filesystem::temp_directory_path() / "sluice-bench-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(name.data());
  bool clean = false;
  {
    auto client = client::QueueClient::open(client::SqliteQueue{.path = folder / "bench.db", .queue = "bench"});
    if (client) {
      clean = report("SQLite", *client, setting, nullptr);
    } else {
      std::fprintf(stderr, "%s\n", client.error().message().c_str());
    }
  }
  std::filesystem::remove_all(folder);
  return clean;
}

}  // namespace

int main(int argc, char** argv) {
  Setting setting;
  const auto argument = [&](int place, std::size_t otherwise) {
    return argc > place ? std::strtoull(argv[place], nullptr, 10) : otherwise;
  };
  setting.messages = argument(1, setting.messages);
  setting.threads = argument(2, setting.threads);
  if (setting.messages == 0 || setting.threads == 0) {
    std::fprintf(stderr, "usage: %s [messages] [threads], each at least 1\n", argv[0]);
    return 64;
  }
  const bool emulated = run_on_emulator(setting);
  const bool filed = run_on_file(setting);
  return emulated && filed ? 0 : 1;
}
