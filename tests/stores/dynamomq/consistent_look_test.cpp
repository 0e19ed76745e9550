// Looks that read the table itself, because the index lags behind it.

#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

class ConsistentLook : public StoreOnEmulator {};

TEST_F(ConsistentLook, SeesBothHalvesOfTheTableItself) {
  send(60);
  ASSERT_TRUE(desk().dead_letter("orders", "m7", {}, soon()));
  ASSERT_EQ(claim(5).size(), 5U);
  const auto stats = desk().oper("orders").stats({.half = standard().half, .consistent = true}, soon());
  ASSERT_TRUE(stats) << stats.error().message();
  EXPECT_EQ(stats->total(), 59U);
  EXPECT_EQ(stats->in_flight, 5U);
  std::set<std::string> seen;
  queue::ListRequest request{.half = standard().half, .limit = 7, .cursor = {}, .consistent = true};
  do {
    const auto page = desk().list("orders", request, soon());
    ASSERT_TRUE(page) << page.error().message();
    EXPECT_LE(page->messages.size(), 7U);
    for (const auto& found : page->messages) {
      EXPECT_TRUE(seen.insert(found.message.id).second) << found.message.id << " came twice";
    }
    request.cursor = page->next;
  } while (!request.cursor.empty());
  EXPECT_EQ(seen.size(), 59U);
  request = {.half = dlq().half, .limit = 7, .cursor = {}, .consistent = true};
  EXPECT_EQ(desk().list("orders", request, soon())->messages.size(), 1U);
  request.cursor = "zz";
  EXPECT_EQ(desk().list("orders", request, soon()).error().code(), ErrorCode::invalid);
  EXPECT_EQ(host().usage().requests("Scan"), 1U + 9U + 1U);
}

}  // namespace
}  // namespace sluice::test
