// How soon does a host feel what another process sends? The client library sends from one process, `sluice run` works
// in another, and measured is from the call of send to the start of the handler, as users have it.
//
//   wake_bench [--rates 1,10,100,1000,10000] [--batch N] [--threads N] [--seconds S] [--store sqlite|dynamodb]
//              [--only rates|fast|delayed|idle|bells] [--folder DIR]
//
// 1. rates: one call of send for each message. Budget on SQLite: p50 1.5 ms, p99 5 ms at each rate.
// 2. fast: 50,000 a second in calls of 50 messages. Budget: p99 20 ms.
// 3. delayed: how much later than due a delayed message starts. Budget: 5 ms.
// 4. idle: a host with ten jobs that have nothing to do. Budget: 0.2 % of a core.
// 5. bells: rates on a table of the DynamoDB emulator, without and with `[wake] listen`. Only when asked for.

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/wake_host.hpp"
#include "bench/wake_load.hpp"

namespace sluice::bench {
namespace {

constexpr std::size_t kFewest = 30;  // messages, however slow the rate is
constexpr double kPatience = 60;     // seconds beyond those that sending takes

struct Options {
  std::vector<double> rates{1, 10, 100, 1'000, 10'000};
  std::size_t batch = 1;
  std::size_t threads = 64;
  double seconds = 10;
  Store store = Store::sqlite;
  std::string only;  ///< one of the five; empty: all but the last
  std::string folder = std::filesystem::temp_directory_path().string();
};

double children_processor() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return processor_seconds(usage);
}

/// Sends in a process of its own, which has ended when this returns. This one has a single thread, so that it may fork.
void send_apart(const WakeHost& host, const Load& load) {
  const pid_t sender = ::fork();
  if (sender == 0) {
    try {
      send_all(host, load);
      ::_exit(0);
    } catch (const std::exception& error) {
      std::cerr << "wake_bench: " << error.what() << '\n';
      ::_exit(1);
    }
  }
  int status = 0;
  if (::waitpid(sender, &status, 0) != sender || status != 0) {
    throw std::runtime_error("the sending process has failed");
  }
}

void print(const WakeHost& host) {
  std::vector<double> late;
  for (const std::int64_t nanoseconds : host.notes()) {
    late.push_back(static_cast<double>(nanoseconds) / 1e6);
  }
  std::sort(late.begin(), late.end());
  const auto at = [&late](double share) {
    return late[static_cast<std::size_t>(share * static_cast<double>(late.size() - 1))];
  };
  std::printf("p50 %7.3f ms, p90 %7.3f, p99 %7.3f, p99.9 %7.3f, worst %7.3f", at(0.5), at(0.9), at(0.99), at(0.999),
              late.back());
}

void measure(const Options& options, const std::string& folder, const Load& load) {
  WakeHost host(folder, options.store, 1, load.messages);
  host.start();
  const double host_before = host.processor();
  const double sender_before = children_processor();
  const std::int64_t begin = monotonic_now();
  send_apart(host, load);
  const double sending = static_cast<double>(monotonic_now() - begin) / 1e9 - kBeginsInSeconds;
  host.wait_for(load.messages, kPatience);
  const double seconds = static_cast<double>(monotonic_now() - begin) / 1e9;
  print(host);
  std::printf("; sent %.0f a second; host %.1f %% of a core, sender %.1f %%\n",
              static_cast<double>(load.messages) / sending, 100 * (host.processor() - host_before) / seconds,
              100 * (children_processor() - sender_before) / seconds);
  std::fflush(stdout);
}

Load load_of(const Options& options, double rate, std::size_t batch) {
  return {.rate = rate,
          .messages = std::max(kFewest, static_cast<std::size_t>(rate * options.seconds)),
          .batch = batch,
          .threads = options.threads};
}

void rates(const Options& options, const std::string& folder) {
  for (const double rate : options.rates) {
    std::printf("%6.0f a second, %zu a call: ", rate, options.batch);
    measure(options, folder + "/" + std::to_string(static_cast<std::int64_t>(rate)),
            load_of(options, rate, options.batch));
  }
}

void bells(const Options& options, const std::string& folder) {
  for (const auto& [store, name] : {std::pair(Store::dynamodb, "looking"), std::pair(Store::dynamodb_bell, "rung")}) {
    Options one = options;
    one.store = store;
    for (const double rate : options.rates) {
      std::printf("%7s, %6.0f a second: ", name, rate);
      measure(one, folder + "/" + name + std::to_string(static_cast<std::int64_t>(rate)),
              load_of(options, rate, options.batch));
    }
  }
}

void fast(const Options& options, const std::string& folder) {
  constexpr double kRate = 50'000;
  constexpr std::size_t kBatch = 50;
  std::printf("%6.0f a second, %zu a call: ", kRate, kBatch);
  measure(options, folder + "/fast", load_of(options, kRate, kBatch));
}

void delayed(const Options& options, const std::string& folder) {
  constexpr double kRate = 50;
  constexpr std::int64_t kDelay = 1'500'000'000;
  Load load = load_of(options, kRate, 1);
  load.delay = kDelay;
  std::printf("delayed by 1.5 s, beyond that: ");
  measure(options, folder + "/delayed", load);
}

void idle(const Options& options, const std::string& folder) {
  constexpr std::int64_t kSettles = 3'000'000'000;  // until every job has backed off
  WakeHost host(folder + "/idle", options.store, 10, 1);
  host.start();
  wait_until(monotonic_now() + kSettles);
  const double before = host.processor();
  wait_until(monotonic_now() + static_cast<std::int64_t>(options.seconds * 1e9));
  std::printf("ten idle jobs: %.2f %% of a core\n", 100 * (host.processor() - before) / options.seconds);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--rates") {
      options.rates.clear();
      std::istringstream list(value);
      for (std::string rate; std::getline(list, rate, ',');) {
        options.rates.push_back(std::stod(rate));
      }
    } else if (name == "--seconds") {
      options.seconds = std::stod(value);
    } else if (name == "--threads") {
      options.threads = std::stoul(value);
    } else if (name == "--batch") {
      options.batch = std::stoul(value);
    } else if (name == "--store") {
      options.store = value == "dynamodb" ? Store::dynamodb : Store::sqlite;
    } else if (name == "--only") {
      options.only = value;
    } else if (name == "--folder") {
      options.folder = value;
    } else {
      throw std::runtime_error("unknown option " + name);
    }
  }
  return options;
}

void run(const Options& options) {
  std::string folder = options.folder + "/sluice-wake-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    throw std::runtime_error("cannot make a folder in " + options.folder);
  }
  const auto wanted = [&](const char* name) { return options.only.empty() || options.only == name; };
  if (wanted("rates")) {
    rates(options, folder);
  }
  if (wanted("fast")) {
    fast(options, folder);
  }
  if (wanted("delayed")) {
    delayed(options, folder);
  }
  if (wanted("idle")) {
    idle(options, folder);
  }
  if (options.only == "bells") {
    bells(options, folder);
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) try {
  sluice::bench::run(sluice::bench::parse(argc, argv));
  return 0;
} catch (const std::exception& error) {
  std::cerr << "wake_bench: " << error.what() << '\n';
  return 1;
}
