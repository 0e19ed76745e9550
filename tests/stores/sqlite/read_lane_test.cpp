#include <gtest/gtest.h>

#include <memory>

#include "host/stores/sqlite/record_reader.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

namespace sqlite = queue::sqlite;

TEST(ReadThread, OpensAgainWhereThatHasFailed) {
  TempFolder folder;
  const std::string path = folder.file("store.db");
  const FakeClock clock;
  SeededRandom random{1};
  const auto store = open_store(path, clock, random);
  const sqlite::StoreFile file({.path = path});
  int opened = 0;
  const auto open = [&opened, &path]() -> Result<std::unique_ptr<sqlite::Connection>> {
    auto connection = std::make_unique<sqlite::Connection>(path);
    if (++opened == 1) {
      return Error(ErrorCode::unavailable, "not yet");
    }
    const auto access = connection->open(sqlite::Connection::Access::read);
    return access ? Result<std::unique_ptr<sqlite::Connection>>(std::move(connection)) : access.error();
  };
  sqlite::ReadThread lane(clock, file, open);
  int read = 0;
  const auto work = [&read](sqlite::RecordReader&) { ++read; };
  const auto refused = lane.run(work, Deadline::never());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message(), "not yet");
  EXPECT_TRUE(lane.run(work, Deadline::never()));
  EXPECT_TRUE(lane.run(work, Deadline::never()));
  EXPECT_EQ(read, 2);
  EXPECT_EQ(opened, 2);
}

}  // namespace
}  // namespace sluice::test
