// Seeds from 1 to SLUICE_SIM_SEEDS (1,000); `--seed N` or SLUICE_SIM_SEED=N replays one and tells its story.
#include "tests/simulation/simulation.hpp"

#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string_view>

namespace sluice::simulation {
namespace {

std::optional<std::uint64_t> replayed_seed;

std::optional<std::uint64_t> read_number(const char* text) {
  if (text == nullptr) {
    return std::nullopt;
  }
  const std::string_view digits(text);
  std::uint64_t number = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return read.ec == std::errc() && read.ptr == digits.data() + digits.size() ? std::optional(number) : std::nullopt;
}

std::string tell(std::uint64_t seed, const Report& report) {
  std::string text =
      "seed " + std::to_string(seed) + " (" + report.story + "), replay with --seed " + std::to_string(seed) + ":";
  for (std::size_t i = 0; i < report.violations.size() && i < 5; ++i) {
    text += "\n  " + report.violations[i];
  }
  return text;
}

void hold_invariants(Store store) {
  const std::uint64_t seeds = read_number(std::getenv("SLUICE_SIM_SEEDS")).value_or(1000);
  const std::uint64_t first = replayed_seed.value_or(1);
  const std::uint64_t last = replayed_seed ? *replayed_seed : seeds;
  Report total;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Report report = simulate(seed, Mutation::none, store);
    ASSERT_TRUE(report.violations.empty()) << tell(seed, report);
    total.messages += report.messages;
    total.handled += report.handled;
    total.settlements += report.settlements;
    total.disturbances += report.disturbances;
    total.events += report.events;
    if (replayed_seed) {
      std::cout << "seed " << seed << ": " << report.story << "\n";
    }
  }
  // A simulation in which nothing happens would hold everything.
  EXPECT_GE(total.settlements, total.messages);
  EXPECT_GT(total.handled, total.messages / 2);
  std::cout << last - first + 1 << " seeds: " << total.messages << " messages, " << total.handled << " attempts, "
            << total.settlements << " settlements, " << total.disturbances << " disturbances, " << total.events
            << " events\n";
}

TEST(Simulation, HoldsItsInvariantsForEverySeed) { hold_invariants(Store::memory); }

TEST(Simulation, HoldsItsInvariantsOnTablesOfDynamoMQ) { hold_invariants(Store::dynamomq); }

TEST(Simulation, ASeedRepeatsItself) {
  for (const Store store : {Store::memory, Store::dynamomq}) {
    for (const std::uint64_t seed : {3U, 17U, 99U}) {
      const Report first = simulate(seed, Mutation::none, store);
      const Report second = simulate(seed, Mutation::none, store);
      EXPECT_EQ(first.events, second.events);
      EXPECT_EQ(first.handled, second.handled);
      EXPECT_EQ(first.settlements, second.settlements);
    }
  }
}

// With a guard taken away some seed must find out, or the checker is blind.
struct Bite {
  const char* name;
  Mutation mutation;
  const char* complaint;
  Store store = Store::memory;
};

void PrintTo(const Bite& bite, std::ostream* out) { *out << bite.name; }

class SimulationBites : public ::testing::TestWithParam<Bite> {};

TEST_P(SimulationBites, WhenAGuardIsMissing) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    for (const std::string& violation : simulate(seed, GetParam().mutation, GetParam().store).violations) {
      if (violation.find(GetParam().complaint) != std::string::npos) {
        return;
      }
    }
  }
  FAIL() << "100 seeds without \"" << GetParam().complaint << "\"";
}

INSTANTIATE_TEST_SUITE_P(
    Guards, SimulationBites,
    ::testing::Values(Bite{"Version", Mutation::no_version_condition, "no longer holds"},
                      Bite{"Lease", Mutation::leases_seem_longer, "works on it"},
                      Bite{"Attempts", Mutation::attempts_without_end, "was started with attempt"},
                      Bite{"Drain", Mutation::drain_forgets, "has not stopped"},
                      Bite{"Blame", Mutation::blames_all_held, "lost an attempt"},
                      Bite{"VersionOnTables", Mutation::no_version_condition, "no longer holds", Store::dynamomq},
                      Bite{"LeaseOnTables", Mutation::leases_seem_longer, "works on it", Store::dynamomq},
                      Bite{"ClockOnTables", Mutation::tells_no_time, "whose lease had", Store::dynamomq},
                      Bite{"DrainOnTables", Mutation::drain_forgets, "has not stopped", Store::dynamomq},
                      Bite{"AttemptsOnTables", Mutation::attempts_without_end, "was started with attempt",
                           Store::dynamomq},
                      Bite{"BlameOnTables", Mutation::blames_all_held, "lost an attempt", Store::dynamomq}),
    [](const auto& param_info) { return std::string(param_info.param.name); });

}  // namespace
}  // namespace sluice::simulation

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  using sluice::simulation::read_number;
  sluice::simulation::replayed_seed = read_number(std::getenv("SLUICE_SIM_SEED"));
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--seed") {
      sluice::simulation::replayed_seed = read_number(argv[i + 1]);
    }
  }
  return RUN_ALL_TESTS();
}
