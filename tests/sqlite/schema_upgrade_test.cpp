// A file that an older Sluice has made is brought up to today's tables in place, and loses nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using ::testing::HasSubstr;

/// Takes from a file what version 1 did not have.
void make_old(const std::string& path) {
  raw_sql(path, "ALTER TABLE messages DROP COLUMN native; PRAGMA user_version = 1");
}

class SchemaUpgrade : public ::testing::Test {
 protected:
  std::unique_ptr<queue::Store> open() { return open_store(file_, clock_, random_); }

  queue::StoredMessage get(queue::Store& store, const std::string& id) {
    auto found = store.get("orders", id, Deadline::never());
    EXPECT_TRUE(found) << (found ? "" : found.error().message());
    return found ? std::move(*found) : queue::StoredMessage();
  }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
};

TEST_F(SchemaUpgrade, KeepsMessagesAndTakesNativeRecordsFromThenOn) {
  const std::vector<queue::NewMessage> sent{{.id = "a", .body = "first", .attributes = {{"k", "v"}}},
                                            {.id = "b", .body = "second"}};
  {
    auto store = open();
    store->send("orders", sent, Deadline::never());
    ASSERT_TRUE(store->claim({"orders"}, 1, std::chrono::seconds(30), Deadline::never()));
  }
  make_old(file_);
  {
    auto store = open();
    ASSERT_NE(store, nullptr);
    EXPECT_EQ(get(*store, "a").message.body, "first");
    EXPECT_EQ(get(*store, "a").message.attributes, sent[0].attributes);
    EXPECT_EQ(get(*store, "a").message.attempt, 1U);
    queue::StoredMessage record = get(*store, "b");
    record.native = R"({"id":{"S":"b"}})";
    EXPECT_EQ(store->put("orders", std::span(&record, 1), queue::PutMode::replace, Deadline::never())[0].status,
              queue::PutStatus::written);
    const queue::NewMessage more{.id = "c", .body = "third"};
    EXPECT_EQ(store->send("orders", std::span(&more, 1), Deadline::never())[0].status, queue::SendStatus::sent);
    const auto page =
        store->list({.address = {"orders"}, .limit = 10, .cursor = {}, .native = true}, Deadline::never());
    ASSERT_TRUE(page) << page.error().message();
    ASSERT_EQ(page->messages.size(), 3U);
    EXPECT_EQ(page->messages[0].native, "");
    EXPECT_THAT(page->messages[1].native + page->messages[2].native, HasSubstr(R"("S":"b")"));
  }
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(SchemaUpgrade, HappensOnceForTwoThatOpenIt) {
  open();
  make_old(file_);
  auto first = open();
  auto second = open();
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  const queue::NewMessage message{.id = "a", .body = "x"};
  EXPECT_EQ(first->send("orders", std::span(&message, 1), Deadline::never())[0].status, queue::SendStatus::sent);
  EXPECT_EQ(get(*second, "a").message.body, "x");
}

}  // namespace
}  // namespace sluice::test
