// dynamodb_model_server: the model of DynamoDB as a process, for the real binaries. Ends with SIGTERM or SIGINT.

#include <signal.h>

#include <boost/program_options.hpp>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include "tests/support/dynamodb_model/server.hpp"

namespace {

namespace options = boost::program_options;
using sluice::Duration;
using sluice::test::model::ModelSettings;

Duration from_milliseconds(double value) { return Duration(static_cast<Duration::rep>(value * 1e6)); }

struct Flags {
  int port = 0;
  std::uint64_t seed = 1;
  double typical_lag = 0;
  double longest_lag = 0;
  double shortest_lag = 0;
  double shortest = 0;
  double longest = 0;
  double transaction_span = 0;
  ModelSettings settings;
  std::vector<std::string> denied;
};

options::options_description describe(Flags& flags) {
  options::options_description all("dynamodb_model_server: a model of DynamoDB on 127.0.0.1");
  const auto add = [&](const char* name, auto& value, const char* text) {
    all.add_options()(name, options::value(&value)->default_value(value), text);
  };
  auto& limits = flags.settings.limits;
  auto& faults = flags.settings.faults;
  all.add_options()("help", "this text");
  all.add_options()("deny", options::value(&flags.denied), "an action that nobody may do, such as dynamodb:PutItem");
  add("port", flags.port, "0: a free one; it is printed");
  add("seed", flags.seed, "of everything that chance decides");
  add("partition-write", limits.partition_write, "write units a second and partition; 0: no limit");
  add("partition-read", limits.partition_read, "read units a second and partition; 0: no limit");
  add("table-write", limits.table_write, "write units a second of a table; 0: no limit");
  add("table-read", limits.table_read, "read units a second of a table; 0: no limit");
  add("typical-lag", flags.typical_lag, "milliseconds until most writes show in an index");
  add("longest-lag", flags.longest_lag, "milliseconds until the slow ones do");
  add("shortest-lag", flags.shortest_lag, "milliseconds until the first ones do");
  add("slow-lag", flags.settings.lag.slow, "share of slow ones");
  add("shortest-latency", flags.shortest, "milliseconds of the fastest requests");
  add("longest-latency", flags.longest, "milliseconds of the slowest requests");
  add("transaction-span", flags.transaction_span, "milliseconds that a transaction is at work");
  add("throttle", faults.throttle, "share of requests throttled");
  add("part-throttle", faults.part_throttle, "share of statements, keys and items of batches throttled");
  add("error-500", faults.error_500, "share of requests answered with 500 and without effect");
  add("commit-then-500", faults.commit_then_500, "share of requests that take effect and are answered with 500");
  add("commit-then-lose", faults.commit_then_lose, "share of requests that take effect and get no answer");
  add("lose", faults.lose, "share of requests lost before they take effect");
  add("late", faults.late, "share of requests that take effect after their callers gave up");
  return all;
}

void run(Flags& flags) {
  flags.settings.lag.typical = from_milliseconds(flags.typical_lag);
  flags.settings.lag.longest = from_milliseconds(flags.longest_lag);
  flags.settings.lag.shortest = from_milliseconds(flags.shortest_lag);
  flags.settings.faults.shortest = from_milliseconds(flags.shortest);
  flags.settings.faults.longest = from_milliseconds(flags.longest);
  flags.settings.transaction_span = from_milliseconds(flags.transaction_span);
  // Blocked before there are threads, so that it is this one that hears them.
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  const sluice::SystemClock clock;
  sluice::test::model::Model model(clock, flags.seed, flags.settings);
  for (const std::string& action : flags.denied) {
    model.deny(action);
  }
  const sluice::test::model::ModelServer server(model, clock, flags.port);
  std::cout << server.endpoint() << '\n' << std::flush;
  int signal = 0;
  sigwait(&ends, &signal);
  const auto counters = model.counters();
  std::cout << "read units " << counters.read_units << ", write units " << counters.write_units << '\n';
  for (const auto& [operation, count] : counters.requests) {
    std::cout << operation << ' ' << count << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Flags flags;
    const options::options_description known = describe(flags);
    options::variables_map given;
    options::store(options::parse_command_line(argc, argv, known), given);
    options::notify(given);
    if (given.count("help") > 0) {
      std::cout << known;
      return 0;
    }
    run(flags);
    return 0;
  } catch (const std::exception& problem) {
    std::cerr << "dynamodb_model_server: " << problem.what() << '\n';
    return 1;
  }
}
