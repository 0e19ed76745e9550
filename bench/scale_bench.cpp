// How far does the leased layout go? 1 to 64 hosts on 1 to 1,024 shards, on the model of DynamoDB under virtual time:
// throughput, latency, hand-overs and cost, with hosts that die, join and lag.
//
//   scale_bench [--json FILE] [--quick] [--only SCENE]
//
// bench/scale_picture.py draws the picture in docs/understand/scale.md from the file.
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/simulated_fleet/world.hpp"

namespace sluice::bench {
namespace {

using namespace std::chrono_literals;
using test::sim::Report;
using test::sim::Scene;
using test::sim::World;

double ms(Duration span) { return std::chrono::duration<double, std::milli>(span).count(); }

/// One line of a table and of the file.
struct Row {
  std::string scene;
  std::uint32_t hosts = 0;
  std::uint32_t shards = 0;
  bool doorbell = false;
  Report report;
};

double per_message(double count, const Report& report) {
  return report.handled > 0 ? count / static_cast<double>(report.handled) : 0;
}

std::string json(const Row& row) {
  const Report& report = row.report;
  std::ostringstream out;
  out << "{\"scene\":\"" << row.scene << "\",\"hosts\":" << row.hosts << ",\"shards\":" << row.shards
      << ",\"doorbell\":" << (row.doorbell ? "true" : "false") << ",\"seconds\":" << report.seconds
      << ",\"handled\":" << report.handled << ",\"per_second\":" << report.per_second()
      << ",\"p50_ms\":" << ms(report.latency(0.5)) << ",\"p99_ms\":" << ms(report.latency(0.99))
      << ",\"hand_overs\":" << report.hand_overs << ",\"twice\":" << report.twice
      << ",\"unhandled\":" << report.unhandled << ",\"longest_pause_ms\":" << ms(report.longest_pause())
      << ",\"wcu\":" << per_message(report.write_units, report) << ",\"rcu\":" << per_message(report.read_units, report)
      << ",\"requests\":" << per_message(static_cast<double>(report.requests), report)
      << ",\"throttled\":" << report.throttled << ",\"per_tick\":[";
  for (std::size_t i = 0; i < report.per_tick.size(); ++i) {
    out << (i == 0 ? "" : ",") << report.per_tick[i];
  }
  out << "]}";
  return out.str();
}

class Bench {
 public:
  explicit Bench(bool quick) : quick_(quick) {}

  void by_hosts() {
    std::puts(
        "Messages a second that lie there already, 16 workers a host, handlers of 20 ms (800/s a host), 64 shards:");
    for (const std::uint32_t hosts : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
      drain("hosts", hosts, 64, 16);
    }
  }

  void by_shards() {
    std::puts("Sent to and worked off at once, 480/s a shard and at most 25,600/s, 8 hosts of 128 workers:");
    for (const std::uint32_t shards : {1U, 4U, 16U, 64U, 256U, 1024U}) {
      const double rate = std::min(shards * 480.0, 25'600.0);
      Scene scene{.hosts = 8, .shards = shards, .workers = 128, .rate = rate, .producers = 32, .doorbell = true};
      World world(scene);
      world.settle_down();
      world.measure();
      world.run_for(quick_ ? 1s : 2s);
      add({"shards", 8, shards, true, world.report()});
    }
  }

  void one_shard() {
    std::puts("One shard, one host, sent to and worked off at once:");
    for (const double rate : {400.0, 480.0, 495.0}) {
      Scene scene{.hosts = 1, .shards = 1, .workers = 64, .rate = rate, .producers = 1, .doorbell = true};
      World world(scene);
      world.run_for(5s);
      world.measure();
      world.run_for(quick_ ? 5s : 20s);
      add({"one_shard", 1, 1, true, world.report()});
    }
  }

  void latency() {
    std::puts("Send to handler at half load (8 hosts of 800/s, 64 shards, 3,200/s):");
    for (const bool doorbell : {false, true}) {
      Scene scene{.hosts = 8, .shards = 64, .rate = 3200, .producers = 8, .doorbell = doorbell};
      World world(scene);
      world.settle_down();
      world.measure();
      world.run_for(quick_ ? 2s : 5s);
      add({"latency", 8, 64, doorbell, world.report()});
    }
  }

  void lives() {
    std::puts(
        "8 hosts, 64 shards, 2,000/s sent: a death after 5 s, a newcomer after 20 s, a freeze of 5 s after 30 s:");
    Scene scene{.hosts = 8, .shards = 64, .rate = 2000, .producers = 4, .doorbell = true};
    World world(scene);
    world.run_for(5s);
    world.measure();
    world.run_for(5s);
    world.kill(0);
    world.run_for(15s);
    world.add_host();
    world.run_for(10s);
    world.freeze(1, 5s);
    world.run_for(15s);
    add({"lives", 8, 64, true, world.report()});
  }

  void rolling() {
    std::puts("4 hosts are replaced one after the other, 1,000/s sent:");
    Scene rolling{.hosts = 4, .shards = 16, .rate = 1000, .producers = 2, .doorbell = true};
    World fleet(rolling);
    fleet.run_for(5s);
    fleet.measure();
    for (std::size_t i = 0; i < 4; ++i) {
      fleet.add_host();
      fleet.run_for(2s);
      fleet.leave(i);
      fleet.run_for(4s);
      std::printf("    after %zu: %zu shards without a living owner\n", i + 1, fleet.orphans());
    }
    add({"rolling", 4, 16, true, fleet.report()});
  }

  const std::vector<Row>& rows() const { return rows_; }

 private:
  // The hosts have come to an agreement before anything is measured; then there is work for all that time.
  void drain(const std::string& name, std::uint32_t hosts, std::uint32_t shards, std::size_t workers) {
    const Duration span = quick_ ? 1s : 2s;
    const double most = std::min(static_cast<double>(hosts) * static_cast<double>(workers) * 50, shards * 1000.0);
    const auto backlog = static_cast<std::size_t>(most * (std::chrono::duration<double>(span).count() + 6));
    Scene scene{.hosts = hosts, .shards = shards, .workers = workers, .backlog = backlog};
    World world(scene);
    world.settle_down();
    world.measure();
    world.run_for(span);
    add({name, hosts, shards, false, world.report()});
  }

  void add(Row row) {
    const Report& report = row.report;
    std::printf(
        "  %2u hosts %4u shards%s  %8.0f/s  p50 %6.1f ms  p99 %6.1f ms  %4llu hand-overs  twice %llu  unhandled %zu  "
        "pause %.0f ms  %.2f WCU %.2f RCU %.3f requests a message  throttled %llu\n",
        row.hosts, row.shards, row.doorbell ? " bell" : "     ", report.per_second(), ms(report.latency(0.5)),
        ms(report.latency(0.99)), static_cast<unsigned long long>(report.hand_overs),
        static_cast<unsigned long long>(report.twice), report.unhandled, ms(report.longest_pause()),
        per_message(report.write_units, report), per_message(report.read_units, report),
        per_message(static_cast<double>(report.requests), report), static_cast<unsigned long long>(report.throttled));
    std::fflush(stdout);
    rows_.push_back(std::move(row));
  }

  const bool quick_;
  std::vector<Row> rows_;
};

int run(int count, char** words) {
  std::string file;
  std::string only;
  bool quick = false;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(words[i], "--json") == 0 && i + 1 < count) {
      file = words[++i];
    } else if (std::strcmp(words[i], "--only") == 0 && i + 1 < count) {
      only = words[++i];
    } else if (std::strcmp(words[i], "--quick") == 0) {
      quick = true;
    } else {
      std::cerr << "scale_bench: '" << words[i] << "' is no option; it knows --json FILE, --quick and --only SCENE\n";
      return 64;
    }
  }
  Bench bench(quick);
  const std::vector<std::pair<std::string, void (Bench::*)()>> scenes = {
      {"one_shard", &Bench::one_shard}, {"latency", &Bench::latency}, {"lives", &Bench::lives},
      {"rolling", &Bench::rolling},     {"hosts", &Bench::by_hosts},  {"shards", &Bench::by_shards}};
  for (const auto& [name, scene] : scenes) {
    if (only.empty() || only == name) {
      (bench.*scene)();
    }
  }
  if (!file.empty()) {
    std::ofstream out(file);
    out << "[";
    for (std::size_t i = 0; i < bench.rows().size(); ++i) {
      out << (i == 0 ? "\n" : ",\n") << json(bench.rows()[i]);
    }
    out << "\n]\n";
  }
  return 0;
}

}  // namespace
}  // namespace sluice::bench

int main(int count, char** words) { return sluice::bench::run(count, words); }
