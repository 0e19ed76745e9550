// How soon does a host feel what another process sends? One process sends at a given rate, one call a message; another
// waits to be woken, claims and settles. Measured from before the call of send to after the claim that brought the
// message, on one durable SQLite file. Nothing is polled.
//
//   wake_bench [--rates 1,10,100,1000,10000] [--seconds S] [--threads N] [--batch N] [--folder DIR]

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "base/random.hpp"
#include "host/stores/sqlite/sqlite_store.hpp"

namespace {

using namespace sluice;

struct Options {
  std::vector<double> rates{1, 10, 100, 1'000, 10'000};
  double seconds = 10;
  std::size_t threads = 64;
  std::size_t batch = 1;
  std::string folder = std::filesystem::temp_directory_path().string();
};

std::int64_t now(const Clock& clock) { return clock.steady_now().time_since_epoch().count(); }

std::unique_ptr<queue::Queues> open(const std::string& path, const Clock& clock, Random& random) {
  queue::SqliteOptions options;
  options.path = path;
  auto queues = queue::open_sqlite_queues(options, clock, random);
  if (!queues) {
    throw std::runtime_error(queues.error().message());
  }
  return std::move(*queues);
}

/// Waits for a time; nobody ever comes before.
void wait_until(SteadyTime time) {
  Mutex mutex;
  Condition never;
  const MutexLock lock(mutex);
  never.wait_until(mutex, time, [] { return false; });
}

/// The sending process: each message carries the time at which its call began.
void send_all(const std::string& path, const Options& options, double rate) {
  const SystemClock clock;
  SeededRandom random(static_cast<std::uint64_t>(::getpid()));
  const auto queues = open(path, clock, random);
  const auto calls = static_cast<std::size_t>(rate * options.seconds / static_cast<double>(options.batch));
  const std::size_t count = std::min(options.threads, std::max<std::size_t>(1, calls));
  const auto gap =
      std::chrono::duration_cast<Duration>(std::chrono::duration<double>(static_cast<double>(options.batch) / rate));
  const SteadyTime start = clock.steady_now() + std::chrono::milliseconds(200);
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < count; ++thread) {
    threads.emplace_back([&, thread] {
      const auto sender = *queues->open_sender("bench");
      for (std::size_t call = thread; call < calls; call += count) {
        wait_until(start + gap * static_cast<Duration::rep>(call));
        std::vector<queue::NewMessage> messages(options.batch);
        for (auto& message : messages) {
          message.body = std::to_string(now(clock));
        }
        for (const auto& result : sender->send(messages, Deadline::never())) {
          if (result.status != queue::SendStatus::sent) {
            std::cerr << result.error.message() << '\n';
            ::_exit(1);
          }
        }
      }
    });
  }
}

/// The working process: woken, claims until nothing is left, and settles beside that.
class Host {
 public:
  Host(queue::Queues& queues, const Clock& clock) : clock_(clock), source_(*queues.open_source({"bench"})) {
    source_->start({.on_ready = [this] { wake(); }, .lost = {}});
  }

  std::vector<double> work(std::size_t messages) {
    std::jthread settling([this](const std::stop_token& stop) { settle(stop); });
    std::vector<double> milliseconds;
    while (milliseconds.size() < messages) {
      const auto claimed = source_->claim({.max = 500, .visibility = std::chrono::seconds(60)}, Deadline::never());
      if (!claimed) {
        throw std::runtime_error(claimed.error().message());
      }
      const std::int64_t time = now(clock_);
      for (const auto& delivery : claimed->deliveries) {
        std::int64_t sent = 0;
        const std::string& body = delivery.message.body;
        std::from_chars(body.data(), body.data() + body.size(), sent);
        milliseconds.push_back(static_cast<double>(time - sent) / 1e6);
      }
      const MutexLock lock(mutex_);
      for (const auto& delivery : claimed->deliveries) {
        finished_.push_back({.receipt = delivery.receipt});
      }
      changed_.notify_all();
      if (claimed->deliveries.size() < 500 && milliseconds.size() < messages) {
        changed_.wait_until(mutex_, SteadyTime::max(), [this]() SLUICE_REQUIRES(mutex_) { return ready_; });
        ready_ = false;
      }
    }
    return milliseconds;
  }

 private:
  void wake() {
    const MutexLock lock(mutex_);
    ready_ = true;
    changed_.notify_all();
  }
  void settle(const std::stop_token& stop) {
    while (true) {
      std::vector<queue::Completion> batch;
      {
        const MutexLock lock(mutex_);
        changed_.wait(mutex_, stop, [this]() SLUICE_REQUIRES(mutex_) { return !finished_.empty(); });
        if (finished_.empty()) {
          return;
        }
        batch.swap(finished_);
      }
      source_->settle(batch, Deadline::never());
    }
  }

  const Clock& clock_;
  const std::unique_ptr<queue::Source> source_;
  Mutex mutex_;
  Condition changed_;
  bool ready_ SLUICE_GUARDED_BY(mutex_) = false;
  std::vector<queue::Completion> finished_ SLUICE_GUARDED_BY(mutex_);
};

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

void measure(const Options& options, const std::string& folder, double rate) {
  const std::string path = folder + "/" + std::to_string(static_cast<std::int64_t>(rate)) + ".db";
  const pid_t sender = ::fork();
  if (sender == 0) {
    try {
      send_all(path, options, rate);
      ::_exit(0);
    } catch (const std::exception& error) {
      std::cerr << "sender: " << error.what() << '\n';
      ::_exit(1);
    }
  }
  const SystemClock clock;
  SeededRandom random(1);
  const auto queues = open(path, clock, random);
  Host host(*queues, clock);
  const auto calls = static_cast<std::size_t>(rate * options.seconds / static_cast<double>(options.batch));
  const SteadyTime start = clock.steady_now();
  const double processor = processor_seconds();
  std::vector<double> taken = host.work(calls * options.batch);
  const double seconds = std::chrono::duration<double>(clock.steady_now() - start).count();
  const double used = processor_seconds() - processor;
  ::waitpid(sender, nullptr, 0);
  std::sort(taken.begin(), taken.end());
  const auto at = [&taken](double share) {
    return taken[static_cast<std::size_t>(share * static_cast<double>(taken.size() - 1))];
  };
  std::printf("%8.0f a second: p50 %7.3f ms, p99 %7.3f, worst %8.3f; reached %.0f a second, host %.1f %% of a core\n",
              rate, at(0.5), at(0.99), taken.back(), static_cast<double>(taken.size()) / seconds, 100 * used / seconds);
  std::fflush(stdout);
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
    } else if (name == "--folder") {
      options.folder = value;
    } else {
      throw std::runtime_error("unknown option " + name);
    }
  }
  return options;
}

}  // namespace

int main(int argc, char** argv) try {
  const Options options = parse(argc, argv);
  std::string folder = options.folder + "/sluice-wake-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    throw std::runtime_error("cannot make a folder in " + options.folder);
  }
  for (const double rate : options.rates) {
    measure(options, folder, rate);
  }
  std::filesystem::remove_all(folder);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "wake_bench: " << error.what() << '\n';
  return 1;
}
