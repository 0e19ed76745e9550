// How fast does `sluice run` drain a DynamoDB queue on the leased layout, beside the same messages on DynamoMQ's?
//
//   drain_bench [--messages N] [--bytes N] [--rounds N] [--concurrency N] [--shards N] [--only leased|dynamomq]
//               [--under "PROGRAM ARGUMENT..."]: runs the host under it, such as a profiler
//
// In each round both layouts in turn, and in the other order in the next one: an emulator of its own, the messages sent
// by the library, then `sluice run --until-empty` with a handler that counts, in a process of its own. Timed is all of
// that process, from its start to its end; its processor time is what the kernel says of it (wait4), of all its threads
// and with loading, start and end. The emulator's is not in it, but the emulator works on the same cores. Budgets: 1.8
// times as fast, 40 microseconds of processor a message; and what is counted: 2.0 write units a message with its put,
// 0.2 read units and 0.1 requests for the draining, all within 5 %, whose excess is a failure.

#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <boost/json/value_to.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "bench/wake_host.hpp"
#include "dynamo/connection.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/leased/leased_queues.hpp"

namespace sluice::bench {
namespace {

constexpr const char* kQueue = "bench";
constexpr double kLeastRatio = 1.8;
constexpr double kMostMicroseconds = 40;
constexpr double kTolerance = 1.05;

struct Options {
  std::size_t messages = 20'000;
  std::size_t bytes = 960;
  std::size_t rounds = 3;
  std::size_t concurrency = 8;
  std::size_t shards = 8;
  std::string only;
  std::string under;
  std::string folder = std::filesystem::temp_directory_path().string();
};

/// What one drain took, a message.
struct Drained {
  double rate = 0;          ///< messages a second
  double microseconds = 0;  ///< of processor, of the host's process
  double put_units = 0;     ///< write units of the send
  double write_units = 0;
  double read_units = 0;
  double requests = 0;
};

std::string write_files(const Options& options, const std::string& folder, const std::string& layout,
                        const std::string& endpoint) {
  std::filesystem::create_directories(folder + "/jobs.d");
  std::ofstream host(folder + "/host.toml");
  host << "[host]\nplugin_dirs = [\"" << SLUICE_WAKE_PLUGINS << "\"]\n[log]\nlevel = \"warn\"\n"
       << "[store]\nkind = \"dynamodb\"\n[dynamodb]\nregion = \"us-east-1\"\nendpoint = \"" << endpoint << "\"\n"
       << "[wake]\nring = false\n[queues." << kQueue << "]\nlayout = \"" << layout << "\"\n";
  if (layout == "leased") {
    host << "shards = " << options.shards << "\n";
  }
  std::ofstream job(folder + "/jobs.d/" + kQueue + ".toml");
  job << "[job]\nqueue = \"" << kQueue << "\"\nhandler = \"wake_note\"\nconcurrency = " << options.concurrency
      << "\n[job.options]\nfile = \"" << folder << "/notes\"\n";
  return folder + "/host.toml";
}

/// Puts the messages into the queue, with made ids, 25 at a time; the write units of one.
double send_all(const Options& options, const std::string& layout, const std::string& endpoint) {
  const SystemClock clock;
  SeededRandom random;
  std::atomic<double> units = 0;
  const auto observe = [&units](const dynamo::CallRecord& record) { units += record.capacity.write; };
  auto connection = dynamo::Connection::open({.region = "us-east-1", .endpoint = endpoint, .observer = observe},
                                             "no region", clock, random);
  if (!connection) {
    throw std::runtime_error(connection.error().message);
  }
  queue::leased::LeasedOptions leased{{.host = "sender", .region = "us-east-1"}};
  leased.queues[kQueue].shards = static_cast<std::uint32_t>(options.shards);
  const queue::dynamomq::DynamoMqOptions plain{{.host = "sender", .region = "us-east-1"}};
  dynamo::Client& client = (*connection)->client();
  std::unique_ptr<queue::Queues> queues;
  if (layout == "leased") {
    queues = queue::leased::make_leased_queues(leased, client, clock, random);
  } else {
    queues = queue::dynamomq::make_dynamomq_queues(plain, client, clock, random);
  }
  const auto sender = queues->open_sender(kQueue);
  if (!sender) {
    throw std::runtime_error(sender.error().message());
  }
  std::vector<queue::NewMessage> lot(200);
  for (std::size_t sent = 0; sent < options.messages; sent += lot.size()) {
    lot.resize(std::min(lot.size(), options.messages - sent));
    for (std::size_t i = 0; i < lot.size(); ++i) {
      lot[i].body = std::to_string(sent + i);
      lot[i].body.resize(options.bytes, 'x');
    }
    for (const auto& result : (*sender)->send(lot, Deadline::after(clock, std::chrono::minutes(1)))) {
      if (result.status != queue::SendStatus::sent) {
        throw std::runtime_error("not sent: " + result.error.message());
      }
    }
  }
  return units / static_cast<double>(options.messages);
}

std::vector<std::string> host_command(const Options& options, const std::string& report, const std::string& config) {
  std::istringstream words(options.under);
  std::vector<std::string> command{std::istream_iterator<std::string>(words), {}};
  command.insert(command.end(), {SLUICE_PROGRAM, "run", "--until-empty", "--drain-report", report, "--config", config});
  return command;
}

Drained drain(const Options& options, const std::string& folder, const std::string& layout) {
  const auto emulator = test::Emulator::start();
  if (emulator == nullptr) {
    throw std::runtime_error(test::Emulator::absence());
  }
  const std::string config = write_files(options, folder, layout, emulator->endpoint());
  const WakeNotes notes = WakeNotes::make(folder + "/notes", 1);
  run_to_end({SLUICE_PROGRAM, "table", "create", "--queue", kQueue, "--config", config});
  const auto count = static_cast<double>(options.messages);
  Drained drained{.put_units = send_all(options, layout, emulator->endpoint())};
  const std::string report = folder + "/report";
  const std::int64_t begin = monotonic_now();
  const rusage usage = run_to_end(host_command(options, report, config), "/dev/null", folder + "/errors");
  drained.rate = count * 1e9 / static_cast<double>(monotonic_now() - begin);
  drained.microseconds = processor_seconds(usage) * 1e6 / count;
  if (notes.count() != options.messages) {
    throw std::runtime_error("not every message was handled once");
  }
  std::ifstream file(report);
  const auto figures = boost::json::parse(std::string(std::istreambuf_iterator<char>(file), {})).at("dynamodb");
  const auto figure = [&](const char* name) { return figures.at(name).to_number<double>() / count; };
  drained.write_units = figure("write_units");
  drained.read_units = figure("read_units");
  drained.requests = figure("requests");
  std::printf(
      "%-9s %8.0f a second, %5.1f us of processor each; %.2f WCU to put it, then %.3f WCU, %.3f RCU, %.3f "
      "requests\n",
      layout.c_str(), drained.rate, drained.microseconds, drained.put_units, drained.write_units, drained.read_units,
      drained.requests);
  std::fflush(stdout);
  return drained;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

bool within_counts(const Drained& drained) {
  return drained.put_units + drained.write_units <= 2.0 * kTolerance && drained.read_units <= 0.2 * kTolerance &&
         drained.requests <= 0.1 * kTolerance;
}

/// Whether what is counted stays within its budgets.
bool run(const Options& options) {
  std::string folder = options.folder + "/sluice-drain-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    throw std::runtime_error("cannot make a folder in " + options.folder);
  }
  // The emulator takes any.
  ::setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
  ::setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
  std::vector<double> ratios;
  std::vector<double> processor;
  bool right = true;
  for (std::size_t round = 0; round < options.rounds; ++round) {
    std::vector<std::string> layouts{"dynamomq", "leased"};
    if (round % 2 == 1) {
      std::swap(layouts.front(), layouts.back());
    }
    double rate = 0;
    double other = 0;
    for (const std::string& layout : layouts) {
      if (!options.only.empty() && options.only != layout) {
        continue;
      }
      const Drained drained = drain(options, folder + "/" + layout + std::to_string(round), layout);
      (layout == "leased" ? rate : other) = drained.rate;
      if (layout == "leased") {
        processor.push_back(drained.microseconds);
        right = within_counts(drained) && right;
      }
    }
    if (rate > 0 && other > 0) {
      ratios.push_back(rate / other);
      std::printf("round %zu: %.2f times as fast\n", round + 1, ratios.back());
    }
  }
  if (!ratios.empty()) {
    std::printf(
        "leased, median of %zu rounds, %zu messages of %zu bytes: %.2f times as fast (budget %.1f), %.1f us of "
        "processor a message (budget %.0f); counted %s\n",
        ratios.size(), options.messages, options.bytes, median(ratios), kLeastRatio, median(processor),
        kMostMicroseconds, right ? "within budget" : "BEYOND BUDGET");
  }
  std::filesystem::remove_all(folder);
  return right;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--messages") {
      options.messages = std::stoul(value);
    } else if (name == "--bytes") {
      options.bytes = std::stoul(value);
    } else if (name == "--rounds") {
      options.rounds = std::stoul(value);
    } else if (name == "--concurrency") {
      options.concurrency = std::stoul(value);
    } else if (name == "--shards") {
      options.shards = std::stoul(value);
    } else if (name == "--only") {
      options.only = value;
    } else if (name == "--under") {
      options.under = value;
    } else if (name == "--folder") {
      options.folder = value;
    } else {
      throw std::runtime_error("unknown option " + name);
    }
  }
  return options;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) try {
  return sluice::bench::run(sluice::bench::parse(argc, argv)) ? 0 : 1;
} catch (const std::exception& error) {
  std::cerr << "drain_bench: " << error.what() << '\n';
  return 1;
}
