#include "host/runtime/thread_room.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace sluice::runtime {
namespace {

TEST(ThreadRoom, ThereIsRoomForAFew) {
  EXPECT_TRUE(room_for_threads(0).has_value());
  EXPECT_TRUE(room_for_threads(threads_of(8)).has_value());
}

TEST(ThreadRoom, NamesTheLimitsThatAreSet) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const struct rlimit limit { rlim_t{1} << 50, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &limit), 0);
  EXPECT_THAT(thread_limits(), testing::HasSubstr("address space 1073741824 MiB (ulimit -v)"));
  ::setrlimit(RLIMIT_AS, &before);
}

TEST(ThreadRoom, NamesTheLimitThatStacksCountAgainst) {
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_DATA, &before), 0);
  const struct rlimit limit { rlim_t{1} << 50, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_DATA, &limit), 0);
  EXPECT_THAT(thread_limits(), testing::HasSubstr("data 1073741824 MiB (ulimit -d)"));
  ::setrlimit(RLIMIT_DATA, &before);
}

}  // namespace
}  // namespace sluice::runtime
