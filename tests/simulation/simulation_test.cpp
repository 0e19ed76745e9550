// Seeds from 1 to SLUICE_SIM_SEEDS (1,000); `--seed N` or SLUICE_SIM_SEED=N replays one and tells its story.
#include "tests/simulation/simulation.hpp"

#include <gtest/gtest.h>

#include <charconv>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

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

std::uint64_t all_seeds() { return read_number(std::getenv("SLUICE_SIM_SEEDS")).value_or(1000); }

void hold_invariants(Store store, Work work, std::uint64_t first, std::uint64_t last) {
  first = replayed_seed.value_or(first);
  last = replayed_seed.value_or(last);
  Report total;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const Report report = simulate(seed, Mutation::none, store, work);
    ASSERT_TRUE(report.violations.empty()) << tell(seed, report);
    total.messages += report.messages;
    total.handled += report.handled;
    total.settlements += report.settlements;
    total.disturbances += report.disturbances;
    total.events += report.events;
    total.effects += report.effects;
    total.duplicates += report.duplicates;
    if (replayed_seed) {
      std::cout << "seed " << seed << ": " << report.story << "\n";
    }
  }
  // A simulation in which nothing happens would hold everything.
  EXPECT_GE(total.settlements, total.messages);
  EXPECT_GT(total.handled, total.messages / 2);
  if (work == Work::trade && !replayed_seed) {
    EXPECT_GT(total.effects, total.messages / 4);
    EXPECT_GT(total.duplicates, 0U);
  }
  std::cout << last - first + 1 << " seeds: " << total.messages << " messages, " << total.handled << " attempts, "
            << total.settlements << " settlements, " << total.disturbances << " disturbances, " << total.events
            << " events, " << total.effects << " effects, " << total.duplicates << " duplicates\n";
}

TEST(Simulation, HoldsItsInvariantsForEverySeed) { hold_invariants(Store::memory, Work::plain, 1, all_seeds()); }

TEST(Simulation, HoldsItsInvariantsOnTablesOfDynamoMQ) {
  hold_invariants(Store::dynamomq, Work::plain, 1, all_seeds());
}

// In parts, which run side by side.
constexpr std::uint64_t kParts = 4;

struct Part {
  const char* name;
  Store store;
  std::uint64_t number;
};

void PrintTo(const Part& part, std::ostream* out) { *out << part.name << part.number; }

class TradeSimulation : public ::testing::TestWithParam<Part> {};

TEST_P(TradeSimulation, KeepsItsPromises) {
  const std::uint64_t number = GetParam().number;
  if (replayed_seed && number > 0) {
    GTEST_SKIP() << "the seed is replayed by the first part";
  }
  hold_invariants(GetParam().store, Work::trade, all_seeds() * number / kParts + 1,
                  all_seeds() * (number + 1) / kParts);
}

std::vector<Part> parts() {
  std::vector<Part> all;
  for (std::uint64_t number = 0; number < kParts; ++number) {
    all.push_back({"Sqlite", Store::sqlite, number});
    all.push_back({"DynamoMq", Store::dynamomq, number});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Seeds, TradeSimulation, ::testing::ValuesIn(parts()), [](const auto& param_info) {
  return param_info.param.name + std::to_string(param_info.param.number);
});

TEST(Simulation, ASeedRepeatsItself) {
  const std::pair<Store, Work> kinds[] = {{Store::memory, Work::plain},
                                          {Store::dynamomq, Work::plain},
                                          {Store::dynamomq, Work::trade},
                                          {Store::sqlite, Work::trade}};
  for (const auto& [store, work] : kinds) {
    for (const std::uint64_t seed : {3U, 17U, 99U}) {
      const Report first = simulate(seed, Mutation::none, store, work);
      const Report second = simulate(seed, Mutation::none, store, work);
      EXPECT_EQ(first.events, second.events);
      EXPECT_EQ(first.handled, second.handled);
      EXPECT_EQ(first.settlements, second.settlements);
      EXPECT_EQ(first.effects, second.effects);
    }
  }
}

// With a guard taken away some seed must find out, or the checker is blind.
struct Bite {
  const char* name;
  Mutation mutation;
  const char* complaint;
  Store store = Store::memory;
  Work work = Work::plain;
};

void PrintTo(const Bite& bite, std::ostream* out) { *out << bite.name; }

class SimulationBites : public ::testing::TestWithParam<Bite> {};

TEST_P(SimulationBites, WhenAGuardIsMissing) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    for (const std::string& violation :
         simulate(seed, GetParam().mutation, GetParam().store, GetParam().work).violations) {
      if (violation.find(GetParam().complaint) != std::string::npos) {
        std::cout << "seed " << seed << ": " << violation << "\n";
        return;
      }
    }
  }
  FAIL() << "200 seeds without \"" << GetParam().complaint << "\"";
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

INSTANTIATE_TEST_SUITE_P(
    Trade, SimulationBites,
    ::testing::Values(
        Bite{"TokenOnTables", Mutation::token_dropped, "its own transaction has removed", Store::dynamomq, Work::trade},
        Bite{"RecordOnTables", Mutation::record_apart, "is not done although its effects are", Store::dynamomq,
             Work::trade},
        Bite{"RecordInFiles", Mutation::record_apart, "is not done although its effects are", Store::sqlite,
             Work::trade},
        Bite{"OnceOnTables", Mutation::record_apart, "were applied 2 times", Store::dynamomq, Work::trade},
        Bite{"OnceInFiles", Mutation::record_apart, "were applied 2 times", Store::sqlite, Work::trade},
        Bite{"HeadOnTables", Mutation::head_skipped, "was started before", Store::dynamomq, Work::trade},
        Bite{"HeadInFiles", Mutation::head_skipped, "was started before", Store::sqlite, Work::trade},
        Bite{"MarkOnTables", Mutation::marks_without_expiry, "is still marked", Store::dynamomq, Work::trade},
        Bite{"MarkInFiles", Mutation::marks_without_expiry, "is still marked", Store::sqlite, Work::trade},
        Bite{"BlockedInFiles", Mutation::marks_without_expiry, "does not drain", Store::sqlite, Work::trade},
        Bite{"DedupOnTables", Mutation::dedup_mark_dropped, "was sent with its deduplication id", Store::dynamomq,
             Work::trade},
        Bite{"DedupInFiles", Mutation::dedup_mark_dropped, "was sent with its deduplication id", Store::sqlite,
             Work::trade}),
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
