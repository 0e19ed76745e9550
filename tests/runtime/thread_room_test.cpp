#include "host/runtime/service.hpp"

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

TEST(DescriptorRoom, NamesTheLimitWhereThereAreTooFew) {
  ASSERT_TRUE(room_for_descriptors(64).has_value());
  struct rlimit before {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit limit { 20, before.rlim_max };
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const auto room = room_for_descriptors(64);
  const auto few = room_for_descriptors(2);
  ::setrlimit(RLIMIT_NOFILE, &before);
  ASSERT_FALSE(room.has_value());
  EXPECT_THAT(room.error().message(), testing::HasSubstr("raise the limit on open files (ulimit -n), which is 20"));
  EXPECT_TRUE(few.has_value()) << "those that were tried are closed again";
}

}  // namespace
}  // namespace sluice::runtime
