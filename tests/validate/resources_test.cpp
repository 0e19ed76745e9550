#include "host/validate/resources.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/descriptor.hpp"

namespace sluice::validate {
namespace {

TEST(Leaks, WhatGrowsWithEachRepetition) {
  const auto memory = leaks({{20, {4, 9, 1000}}, {60, {5, 9, 3000}}, {120, {6, 10, 6000}}, {520, {6, 10, 26'000}}});
  ASSERT_EQ(memory.size(), 1U);
  EXPECT_TRUE(memory[0].is_memory());
  EXPECT_EQ(memory[0].text(), "50 bytes of memory");
  const auto threads = leaks({{20, {4, 9, 1000}}, {60, {44, 9, 3000}}, {120, {104, 10, 6000}}});
  ASSERT_EQ(threads.size(), 1U) << "their memory is theirs";
  EXPECT_EQ(threads[0].text(), "1.0 threads");
}

TEST(Leaks, WhatIsTakenOnceIsNone) {
  EXPECT_TRUE(
      leaks({{20, {4, 9, 1000}}, {60, {20, 40, 900'000}}, {120, {20, 40, 900'000}}, {520, {20, 40, 900'000}}}).empty());
  EXPECT_TRUE(leaks({{20, {4, 9, 1000}}, {60, {5, 9, 1100}}, {120, {6, 9, 1200}}, {520, {7, 9, 1300}}}).empty())
      << "too little for each";
}

TEST(Leaks, AFewSamplesOrRepetitionsTellNothing) {
  EXPECT_TRUE(leaks({}).empty());
  EXPECT_TRUE(leaks({{20, {4, 9, 1000}}, {60, {44, 9, 90'000}}}).empty());
  EXPECT_TRUE(leaks({{1, {4, 9, 1000}}, {2, {5, 9, 90'000}}, {3, {6, 9, 190'000}}}).empty()) << "a pool that fills";
  EXPECT_TRUE(leaks({{20, {4, 9, 1000}}, {20, {4, 9, 1000}}}).empty()) << "nothing was repeated";
}

TEST(Resources, AreThoseOfThisProcess) {
  const Resources before = measure_resources();
  const Descriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Resources after = measure_resources();
  EXPECT_GE(before.threads, 1U);
  EXPECT_EQ(after.descriptors, before.descriptors + 1);
}

}  // namespace
}  // namespace sluice::validate
