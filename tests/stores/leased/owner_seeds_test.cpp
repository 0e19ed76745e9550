// Owners on the model of DynamoDB with everything that goes wrong, from seeds: nothing is lost, and what is promised of
// leases, order, suspects and edits holds. Seeds from 1 to SLUICE_SIM_SEEDS (4,000); SLUICE_SIM_SEED=N replays one.
//
// The product's files with this layout's guards are compiled into this test with switches, so that it can show what the
// simulation finds without each of them.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>
#include <string_view>

#include "tests/stores/leased/owner_story.hpp"

namespace sluice::test {
namespace {

constexpr std::uint64_t kParts = 8;
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr std::uint64_t kSeeds = 400;  // each takes many times as long
#else
constexpr std::uint64_t kSeeds = 4'000;
#endif
#else
constexpr std::uint64_t kSeeds = 4'000;
#endif

// What base/guard.hpp reads: the environment keeps this very text, so that a test can change it.
constexpr std::string_view kSwitches = "SLUICE_GUARDS_OFF=";
std::array<char, 128> switches{};

void switch_off(std::string_view guard) {
  switches.fill('\0');
  std::copy(kSwitches.begin(), kSwitches.end(), switches.begin());
  std::copy(guard.begin(), guard.end(), switches.begin() + kSwitches.size());
}

const bool prepared = [] {
  const char* const before = std::getenv("SLUICE_GUARDS_OFF");
  switch_off(before == nullptr ? std::string_view() : std::string_view(before));
  return putenv(switches.data()) == 0;
}();

std::uint64_t number_in(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

void hold(std::uint64_t first, std::uint64_t last) {
  int doubles = 0;
  int crashes = 0;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    OwnerStory story(seed);
    ASSERT_EQ(story.run(), "") << "seed " << seed;
    doubles += story.doubles();
    crashes += story.crashes_checked();
  }
  std::cout << "seeds " << first << " to " << last << ": " << doubles << " messages came again after they were done, "
            << crashes << " after they were at work in a host that crashed\n";
}

class OwnerSeeds : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(OwnerSeeds, HoldWhatIsPromised) {
  if (const std::uint64_t replayed = number_in("SLUICE_SIM_SEED", 0); replayed > 0) {
    hold(replayed, GetParam() == 0 ? replayed : 0);
    return;
  }
  const std::uint64_t seeds = number_in("SLUICE_SIM_SEEDS", kSeeds);
  hold(seeds * GetParam() / kParts + 1, seeds * (GetParam() + 1) / kParts);
}

INSTANTIATE_TEST_SUITE_P(Part, OwnerSeeds, ::testing::Range<std::uint64_t>(0, kParts));

// What the simulation says nothing of would otherwise look as what goes well.
TEST(OwnerSimulation, EverythingGoesWrongThatIsSaidToGoWrong) {
  std::map<std::string, std::uint64_t> happened;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    OwnerStory story(seed);
    ASSERT_EQ(story.run(), "") << "seed " << seed;
    for (const auto& [name, times] : story.happened()) {
      happened[name] += times;
    }
  }
  for (const char* name : {"deaths",
                           "restarts",
                           "hangs",
                           "sleeps",
                           "clock jumps",
                           "partitions",
                           "requests in vain",
                           "edits",
                           "slow writers",
                           "slow puts",
                           "streams",
                           "crowds",
                           "crash loops",
                           "shards of a host that loops",
                           "items that vanish",
                           "retries of a crowd",
                           "crashes checked",
                           "throttle",
                           "ThrottlingException",
                           "lose",
                           "error_500",
                           "commit_then_500",
                           "commit_then_lose",
                           "late",
                           "refuse",
                           "InternalServerError",
                           "Query",
                           "BatchExecuteStatement"}) {
    EXPECT_GT(happened[name], 0U) << name;
    std::cout << name << ": " << happened[name] << "\n";
  }
  EXPECT_FALSE(happened.contains("Scan")) << "nobody reads but by partition, of a table without an index";
}

// With a guard taken away some seed must find out, or the simulation is blind.
struct Bite {
  const char* guard;
  const char* complaint;
};

class OwnerBites : public ::testing::TestWithParam<Bite> {};

TEST_P(OwnerBites, WhenAGuardIsMissing) {
  ASSERT_TRUE(prepared);
  switch_off(GetParam().guard);
  std::string found;
  std::uint64_t seed = 0;
  while (found.find(GetParam().complaint) == std::string::npos && seed < 100) {
    found = OwnerStory(++seed).run();
  }
  switch_off({});
  ASSERT_NE(found.find(GetParam().complaint), std::string::npos)
      << "100 seeds without \"" << GetParam().complaint << '"';
  std::cout << "seed " << seed << ": " << found.substr(0, found.find('\n')) << "\n";
}

INSTANTIATE_TEST_SUITE_P(
    Guards, OwnerBites,
    ::testing::Values(Bite{"leased_epoch", "whose lease has not ended"}, Bite{"leased_sweep", "behind the cursor"},
                      Bite{"leased_probation", "crashes again and again"},
                      Bite{"leased_two_thirds", "in the last third"}, Bite{"leased_suspects", "as with any other"},
                      Bite{"leased_reach", "as with any other"}, Bite{"table_version_fence", "edited since"}),
    [](const auto& param_info) { return std::string(param_info.param.guard); });

}  // namespace
}  // namespace sluice::test
