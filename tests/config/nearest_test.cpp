#include "tests/config/support.hpp"

namespace sluice::config {
namespace {

const std::vector<std::string> kWords{"concurrency",  "timeout", "queue", "handler",
                                      "max_attempts", "max",     "base",  "id"};

TEST(Nearest, FindsASlipOfTheHand) {
  EXPECT_EQ(nearest("concurency", kWords), "concurrency");
  EXPECT_EQ(nearest("tiemout", kWords), "timeout");
  EXPECT_EQ(nearest("max-attempts", kWords), "max_attempts");
  EXPECT_EQ(nearest("Queue", kWords), "queue");
  EXPECT_EQ(nearest("queues", kWords), "queue");
  EXPECT_EQ(nearest("mx", kWords), "max");
}

TEST(Nearest, IsSilentAboutAnotherWord) {
  for (const char* word : {"", "x", "greeting", "zzz", "ix", "concurrently_so"}) {
    EXPECT_EQ(nearest(word, kWords), std::nullopt) << word;
  }
  EXPECT_EQ(nearest("queue", {}), std::nullopt);
}

TEST(Nearest, TakesTheNearestAndThenTheFirst) {
  EXPECT_EQ(nearest("orders", {"order_s", "borders", "orders"}), "orders");
  EXPECT_EQ(nearest("orderx", {"ordery", "orderz"}), "ordery");
}

TEST(Nearest, AnswersAMonstrousWordAtOnce) { EXPECT_EQ(nearest(std::string(10'000'000, 'q'), kWords), std::nullopt); }

}  // namespace
}  // namespace sluice::config
