// The order of groups holds across transactions that were rolled back, beside another process that writes, and for a
// message that an operator has put into another group.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""ms;

class GroupOrderTest : public ::testing::Test {
 protected:
  std::unique_ptr<StoreDesk> open(queue::SqliteOptions options = {}) {
    return open_store(file_, clock_, random_, std::move(options));
  }
  queue::SendResult send(StoreDesk& store, const std::string& id, std::size_t body = 10) {
    clock_.advance(1ms);
    const queue::NewMessage message{.id = id, .body = std::string(body, 'x'), .group = id.substr(0, 1)};
    return store.send("orders", std::span(&message, 1), Deadline::never()).at(0);
  }
  static std::vector<queue::Delivery> claim(StoreDesk& store) {
    const auto claimed =
        store.source({"orders"}).claim({.max = 10, .rules = {.order = queue::Order::group}}, Deadline::never());
    return claimed ? claimed->deliveries : std::vector<queue::Delivery>();
  }
  static queue::SettleStatus settle(StoreDesk& store, const queue::Delivery& delivery) {
    const queue::Completion done{.receipt = delivery.receipt};
    return store.settle({"orders"}, std::span(&done, 1), Deadline::never()).at(0).status;
  }
  /// What is left, in the order in which it is handed out, by these in turn.
  static std::string work_off(const std::vector<StoreDesk*>& stores) {
    std::string order;
    bool any = true;
    while (any) {
      any = false;
      for (StoreDesk* const store : stores) {
        for (const auto& delivery : claim(*store)) {
          any = true;
          order += delivery.message.id + " ";
          EXPECT_EQ(settle(*store, delivery), queue::SettleStatus::applied);
        }
      }
    }
    return order;
  }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
};

TEST_F(GroupOrderTest, ForgetsWhatWasRolledBack) {
  auto store = open({.path = {}, .max_file_bytes = 600 * 1024});
  ASSERT_EQ(send(*store, "a0").status, queue::SendStatus::sent);
  EXPECT_EQ(work_off({store.get()}), "a0 ");
  for (const std::string id : {"a1", "a2"}) {
    ASSERT_EQ(send(*store, id).status, queue::SendStatus::sent);
  }
  // Its place behind a2 was found already when the file turns out to be full.
  ASSERT_EQ(send(*store, "a3", 2'000'000).status, queue::SendStatus::failed);
  ASSERT_EQ(send(*store, "b1", 2'000'000).status, queue::SendStatus::failed);
  for (const std::string id : {"a4", "b2", "b3"}) {
    ASSERT_EQ(send(*store, id).status, queue::SendStatus::sent);
  }
  EXPECT_EQ(work_off({store.get()}), "a1 b2 a2 b3 a4 ");
  store.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(GroupOrderTest, ForgetsWhatAnotherProcessHasChanged) {
  auto one = open();
  auto two = open();
  send(*one, "a0");
  EXPECT_EQ(work_off({one.get()}), "a0 ");
  // Each of them has seen the lane before the other one changes it.
  for (int i = 1; i <= 6; ++i) {
    send(i % 2 == 0 ? *one : *two, "a" + std::to_string(i));
  }
  EXPECT_EQ(work_off({two.get(), one.get()}), "a1 a2 a3 a4 a5 a6 ");
  // Emptied by the other one: the lane has another row from here on.
  for (const std::string id : {"a7", "a8"}) {
    send(*one, id);
  }
  EXPECT_EQ(work_off({one.get(), two.get()}), "a7 a8 ");
  one.reset();
  two.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

TEST_F(GroupOrderTest, AGroupThatAnOperatorChangedIsNotTheOldOnesEnd) {
  auto store = open();
  send(*store, "a0");
  EXPECT_EQ(work_off({store.get()}), "a0 ");
  for (const std::string id : {"a1", "a2", "b1", "b2"}) {
    send(*store, id);
  }
  const auto out = claim(*store);
  ASSERT_EQ(out.size(), 2U);
  const auto record = store->get("orders", "a1", Deadline::never());
  ASSERT_TRUE(record);
  const queue::ContentEdit edit{.path = {std::string("group")}, .json = R"("b")"};
  ASSERT_TRUE(store->edit("orders", "a1", record->version, std::span(&edit, 1), Deadline::never()));
  EXPECT_EQ(settle(*store, out[0]), queue::SettleStatus::lost);
  EXPECT_EQ(settle(*store, out[1]), queue::SettleStatus::applied);
  store.reset();
  EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
}

}  // namespace
}  // namespace sluice::test
