#include "base/fnv1a.hpp"

#include <gtest/gtest.h>

namespace sluice {
namespace {

// What earlier versions have stored is found by these.
TEST(Fnv1a, GivesWhatItsAuthorsPublished) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
  EXPECT_EQ(fnv1a("bar", fnv1a("foo")), fnv1a("foobar"));
}

}  // namespace
}  // namespace sluice
