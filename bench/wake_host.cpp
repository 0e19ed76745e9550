#include "bench/wake_host.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <utility>
#include <vector>

namespace sluice::bench {

namespace {

constexpr std::int64_t kLook = 5'000'000;
constexpr double kStartSeconds = 20;

std::unique_ptr<test::Emulator> emulator_for(Store store) {
  if (store == Store::sqlite) {
    return nullptr;
  }
  // The emulator takes any.
  ::setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  ::setenv("AWS_REGION", "us-east-1", 1);
  auto emulator = test::Emulator::start();
  if (emulator == nullptr) {
    throw std::runtime_error(test::Emulator::absence());
  }
  return emulator;
}

std::string queue_of(std::size_t job) { return job == 0 ? "bench" : "idle-" + std::to_string(job); }

}  // namespace

rusage run_to_end(const std::vector<std::string>& arguments, const std::string& input, const std::string& errors) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::vector<char*> argv;
    argv.reserve(arguments.size() + 1);
    for (const std::string& argument : arguments) {
      argv.push_back(const_cast<char*>(argument.c_str()));
    }
    argv.push_back(nullptr);
    ::dup2(::open(input.c_str(), O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    ::dup2(::open("/dev/null", O_WRONLY | O_CLOEXEC), STDOUT_FILENO);
    if (!errors.empty()) {
      ::dup2(::open(errors.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600), STDERR_FILENO);
    }
    ::execv(argv.front(), argv.data());
    ::_exit(127);
  }
  int status = 0;
  rusage usage{};
  if (::wait4(child, &status, 0, &usage) != child || status != 0) {
    throw std::runtime_error("it failed: " + arguments.front() + " " + arguments.at(1) +
                             (errors.empty() ? "" : "; see " + errors));
  }
  return usage;
}

double processor_seconds(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

WakeHost::WakeHost(std::string folder, Store store, std::size_t jobs, std::size_t messages)
    : folder_(std::move(folder)),
      store_(store),
      emulator_(emulator_for(store)),
      notes_((std::filesystem::create_directories(folder_), WakeNotes::make(folder_ + "/notes", messages + 1))) {
  write_files(jobs);
  for (std::size_t i = 0; emulator_ && i < jobs; ++i) {
    run_to_end({SLUICE_PROGRAM, "table", "create", "--queue", queue_of(i), "--config", folder_ + "/host.toml"});
  }
}

WakeHost::~WakeHost() = default;

void WakeHost::write_files(std::size_t jobs) const {
  std::ofstream host(folder_ + "/host.toml");
  host << "[host]\nplugin_dirs = [\"" << SLUICE_WAKE_PLUGINS << "\"]\n[log]\nlevel = \"warn\"\n[store]\n";
  if (emulator_) {
    host << "kind = \"dynamodb\"\n[dynamodb]\nregion = \"us-east-1\"\nendpoint = \"" << emulator_->endpoint() << "\"\n";
    for (std::size_t i = 0; i < jobs; ++i) {
      host << "[queues." << queue_of(i) << "]\nlayout = \"dynamomq\"\n";
    }
    host << (store_ == Store::dynamodb_bell ? "[wake]\nlisten = \"127.0.0.1:0\"\n" : "[wake]\nring = false\n");
  } else {
    host << "path = \"queue.db\"\n";
  }
  std::filesystem::create_directories(folder_ + "/jobs.d");
  for (std::size_t i = 0; i < jobs; ++i) {
    std::ofstream job(folder_ + "/jobs.d/" + queue_of(i) + ".toml");
    job << "[job]\nqueue = \"" << queue_of(i) << "\"\nhandler = \"wake_note\"\n[job.options]\nfile = \"" << folder_
        << "/notes\"\n";
  }
}

client::Result<client::QueueClient> WakeHost::open_queue() const {
  if (emulator_) {
    client::ClientOptions options;
    options.ring_hosts = store_ == Store::dynamodb_bell;
    return client::QueueClient::open(
        client::DynamoDbQueue{.table = "bench", .region = "us-east-1", .endpoint = emulator_->endpoint()}, options);
  }
  return client::QueueClient::open(client::SqliteQueue{.path = folder_ + "/queue.db", .queue = "bench"});
}

void WakeHost::start() {
  process_ = std::make_unique<test::ChildProcess>(
      std::vector<std::string>{SLUICE_PROGRAM, "run", "--config", folder_ + "/host.toml"});
  run_to_end({SLUICE_PROGRAM, "send", "--queue", "bench", "--data", "0", "--config", folder_ + "/host.toml"});
  wait_for(0, kStartSeconds);
}

void WakeHost::wait_for(std::size_t messages, double seconds) const {
  const std::int64_t limit = monotonic_now() + static_cast<std::int64_t>(seconds * 1e9);
  while (notes_.count() < messages + 1) {
    if (monotonic_now() > limit) {
      throw std::runtime_error("the host has handled " + std::to_string(notes_.count()) + " messages of " +
                               std::to_string(messages + 1) + " and goes on with none; see: sluice run --config " +
                               folder_ + "/host.toml");
    }
    wait_until(monotonic_now() + kLook);
  }
}

double WakeHost::processor() const {
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(process_->pid(), &clock) != 0 || ::clock_gettime(clock, &time) != 0) {
    throw std::runtime_error("the host is gone; see: sluice run --config " + folder_ + "/host.toml");
  }
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

void wait_until(std::int64_t monotonic) {
  const timespec time{monotonic / 1'000'000'000, monotonic % 1'000'000'000};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0) {
  }
}

}  // namespace sluice::bench
