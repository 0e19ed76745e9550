#include "base/ranges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace sluice {
namespace {

struct Job {
  std::string name;
  int workers = 1;
  std::string text() const { return name + " " + std::to_string(workers); }
};

TEST(Ranges, WhatIsFoundIsAnElementOfTheRange) {
  std::vector<Job> jobs{{"a", 1}, {"b", 2}, {"c", 2}};
  Job* const found = find_where(jobs, [](const Job& job) { return job.workers == 2; });
  EXPECT_EQ(found, &jobs[1]);
  EXPECT_EQ(find_where(jobs, [](const Job& job) { return job.workers == 3; }), nullptr);
}

TEST(Ranges, AValueIsInARangeOfOthersThatItIsComparedWith) {
  const std::vector<std::string> names{"a", "b"};
  EXPECT_TRUE(contains(names, "b"));
  EXPECT_FALSE(contains(names, std::string_view("c")));
}

TEST(Ranges, EachElementIsMappedInOrder) {
  const std::vector<Job> jobs{{"a", 1}, {"b", 2}};
  EXPECT_THAT(mapped(jobs, &Job::name), testing::ElementsAre("a", "b"));
  EXPECT_THAT(mapped(jobs, &Job::text), testing::ElementsAre("a 1", "b 2"));
  EXPECT_THAT(mapped(jobs, [](const Job& job) { return &job; }), testing::ElementsAre(&jobs[0], &jobs[1]));
  EXPECT_THAT(mapped(std::map<int, int>{{1, 10}}, [](const auto& entry) { return entry.second; }),
              testing::ElementsAre(10));
}

}  // namespace
}  // namespace sluice
