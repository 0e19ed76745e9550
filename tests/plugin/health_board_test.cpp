#include <gmock/gmock.h>

#include "base/text/utf8.hpp"
#include "host/plugin/handler_instance.hpp"
#include "tests/plugin/plugin_fixture.hpp"

namespace sluice::plugin {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::vector<std::string> lines_of(const HealthBoard& board) {
  std::vector<std::string> lines;
  for (const PartHealth& part : board.parts()) {
    lines.push_back(part.part + (part.works ? " ok: " : " fails: ") + part.text);
  }
  return lines;
}

TEST(HealthBoard, ShowsWhatWasSaidLastUntilItIsTakenBack) {
  HealthBoard board;
  EXPECT_THAT(lines_of(board), IsEmpty());
  auto seat = board.seat();
  seat->report("broker", true, "connected");
  seat->report("broker", false, "gone\nfor good");
  seat->report("cache", true, "warm");
  EXPECT_THAT(lines_of(board), ElementsAre("broker fails: gone for good", "cache ok: warm"));
  seat->clear();
  EXPECT_THAT(lines_of(board), IsEmpty());
  seat->report("broker", true, "connected");
  seat.reset();
  EXPECT_THAT(lines_of(board), IsEmpty());
}

TEST(HealthBoard, APartFailsWhenOneWorkerSaysSo) {
  HealthBoard board;
  const auto one = board.seat();
  const auto two = board.seat();
  one->report("broker", true, "connected");
  two->report("broker", false, "refused");
  EXPECT_THAT(lines_of(board), ElementsAre("broker fails: refused (so say 1 of 2 workers)"));
  one->report("broker", false, "refused");
  EXPECT_THAT(lines_of(board), ElementsAre("broker fails: refused"));
}

TEST(HealthBoard, TakesNoMoreThanItMay) {
  HealthBoard board;
  const auto seat = board.seat();
  seat->report("", true, "nameless");
  seat->report(std::string(kHealthNameLimit + 1, 'x'), true, "long name");
  EXPECT_THAT(board.parts(), IsEmpty());
  for (std::size_t i = 0; i < kHealthParts + 1; ++i) {
    seat->report("part " + std::to_string(i), true, std::string(2 * kHealthTextLimit, 'x') + "\xff");
  }
  ASSERT_THAT(board.parts(), SizeIs(kHealthParts));
  EXPECT_EQ(board.parts().front().text.size(), kHealthTextLimit);
  seat->report("part 0", false, "\xff");
  EXPECT_EQ(board.parts().front().text, kReplacementCharacter) << "a part that is there may change";
}

TEST(HealthBoard, SeatsOutlastIt) {
  std::shared_ptr<HealthSeat> seat;
  {
    HealthBoard board;
    seat = board.seat();
  }
  seat->report("broker", true, "connected");
  seat->clear();
}

TEST(HandlerHealth, ReachesTheBoardAndGoesWithTheInstance) {
  const SystemClock clock;
  Attempt attempt(clock);
  HealthBoard board;
  auto created = HandlerInstance::create({.log = {}, .health = board.seat()}, fixture_handler("fares"), "orders", {});
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_THAT(lines_of(board), ElementsAre("broker ok: not asked yet"));
  queue::Message message;
  message.body = "down";
  EXPECT_EQ((*created)->handle({message, "q", 0, attempt}).status, OutcomeStatus::done);
  EXPECT_THAT(lines_of(board), ElementsAre("broker fails: down"));
  *created = nullptr;
  EXPECT_THAT(lines_of(board), IsEmpty());
}

TEST(HandlerHealth, IsSaidToNobodyWhereNobodyAsks) {
  const SystemClock clock;
  Attempt attempt(clock);
  auto created = HandlerInstance::create({}, fixture_handler("fares"), "orders", {});
  ASSERT_TRUE(created) << created.error().message();
  EXPECT_EQ((*created)->handle({{}, "q", 0, attempt}).status, OutcomeStatus::done);
}

}  // namespace
}  // namespace sluice::plugin
