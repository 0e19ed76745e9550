#include "host/fleet/audit.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_clock.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::fleet {
namespace {

using queue::Topic;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class AuditTest : public ::testing::Test {
 protected:
  AuditTest() : board_(*queues_.open_board("mails")) {}

  static AuditEntry deed(const std::string& id, const std::string& queue = "mails") {
    return {.id = id, .who = "ann@ops", .what = "purge queue " + queue, .queue = queue};
  }
  void note(AuditEntry deed) { ASSERT_TRUE(note_deed(*board_, std::move(deed), soon())); }
  std::vector<AuditEntry> read(const AuditQuery& query = {.limit = 100'000}) {
    auto found = read_deeds(*board_, query, soon());
    EXPECT_TRUE(found) << found.error().message();
    kept_since_ = found ? found->kept_since : std::nullopt;
    return found ? merge_audits(std::move(found->deeds), query) : std::vector<AuditEntry>();
  }
  static std::vector<std::string> ids_of(const std::vector<AuditEntry>& deeds) {
    std::vector<std::string> ids;
    ids.reserve(deeds.size());
    for (const AuditEntry& deed : deeds) {
      ids.push_back(deed.id);
    }
    return ids;
  }
  Deadline soon() { return Deadline::after(clock_, 10s); }

  test::FakeClock clock_;
  SeededRandom random_{1};
  test::SimQueues queues_{clock_, random_};
  std::unique_ptr<queue::NoticeBoard> board_;
  std::optional<WallTime> kept_since_;  ///< as the last `read` said
};

TEST_F(AuditTest, ADeedIsBegunAndThenFinished) {
  AuditEntry purge = deed("a");
  purge.state = DeedState::begun;
  purge.filter = "--where 'x'";
  purge.reason = "wrong feed";
  note(purge);
  ASSERT_THAT(read(), SizeIs(1));
  EXPECT_EQ(read().front().state, DeedState::begun);
  purge.at = read().front().at;
  clock_.advance(5s);
  purge.state = DeedState::done;
  purge.ended_at = board_->now();
  purge.changed = 20'000;
  note(purge);
  note(purge);
  ASSERT_THAT(read(), SizeIs(1));
  const AuditEntry ended = read().front();
  EXPECT_EQ(ended.state, DeedState::done);
  EXPECT_EQ(ended.changed, 20'000U);
  EXPECT_EQ(*ended.ended_at - ended.at, 5s);
  EXPECT_EQ(ended.who, "ann@ops");
  EXPECT_EQ(ended.queue, "mails");
  EXPECT_EQ(ended.filter, "--where 'x'");
  EXPECT_EQ(ended.reason, "wrong feed");
}

TEST_F(AuditTest, NoNoticeOutgrowsAChapterAndTheOldestGo) {
  constexpr int kDeeds = 2'500;
  for (int i = 0; i < kDeeds; ++i) {
    clock_.advance(1s);
    AuditEntry long_one = deed(std::to_string(i));
    long_one.reason = std::string(kMostTyped, 'x');
    note(long_one);
  }
  const auto all = read();
  EXPECT_GT(all.size(), 1'000U);
  EXPECT_LT(all.size(), 2'000U);
  EXPECT_EQ(all.front().id, std::to_string(kDeeds - 1));
  EXPECT_EQ(all.back().id, std::to_string(kDeeds - all.size())) << "none is missing in between";
  const WallTime oldest = all.back().at;
  EXPECT_EQ(kept_since_, oldest);
  EXPECT_THAT(read({.names = {"orders"}}), IsEmpty());
  EXPECT_EQ(kept_since_, oldest) << "nobody knows whether there was one before";
  EXPECT_THAT(read({.names = {"orders"}, .since = oldest + 300s}), IsEmpty());
  EXPECT_EQ(kept_since_, std::nullopt) << "what was asked for is there whole";
  EXPECT_LE(board_->list(Topic::audit, soon())->front().text.size(), kChapterBytes);
  for (std::int64_t slot = 0; slot < kChapters; ++slot) {
    EXPECT_LE(board_->read(Topic::audit, std::to_string(slot), soon())->text.size(), kChapterBytes);
  }
}

TEST_F(AuditTest, AnOlderCopyOfAChapterDoesNotTakeTheNewerOnesPlace) {
  std::string text;
  for (int i = 0; text.size() < kChapterBytes - 500; ++i) {
    note(deed("d" + std::to_string(i)));
    text = board_->read(Topic::audit, {}, soon())->text;
  }
  // As one leaves it who has turned the page, with a deed more.
  text.insert(text.rfind(']'), R"(,{"id":"late"})");
  ASSERT_TRUE(board_->post(Topic::audit, {.key = "0", .text = text}, soon()));
  AuditEntry last = deed("last");
  last.reason = std::string(kMostTyped, 'x');
  last.filter = last.reason;
  const auto noted = note_deed(*board_, last, soon());
  ASSERT_FALSE(noted);
  EXPECT_EQ(noted.error().code(), ErrorCode::conflict);
  EXPECT_EQ(board_->read(Topic::audit, "0", soon())->text, text);
}

TEST_F(AuditTest, ADeedThatEndsInALaterChapterIsOne) {
  AuditEntry purge = deed("long");
  purge.state = DeedState::begun;
  note(purge);
  for (int i = 0; i < 200; ++i) {
    note(deed(std::to_string(i)));
  }
  purge.state = DeedState::stopped;
  purge.ended_at = board_->now();
  note(purge);
  const auto all = read();
  EXPECT_THAT(all, SizeIs(201));
  EXPECT_EQ(std::count_if(all.begin(), all.end(), [](const AuditEntry& one) { return one.id == "long"; }), 1);
  EXPECT_TRUE(
      std::none_of(all.begin(), all.end(), [](const AuditEntry& one) { return one.state == DeedState::begun; }));
}

TEST_F(AuditTest, TextsThatPeopleTypeAreCut) {
  AuditEntry edit = deed("a");
  edit.reason = std::string(100'000, '\x01');
  edit.filter = std::string(100'000, '"');
  note(edit);
  EXPECT_THAT(read().front().reason, AllOf(SizeIs(kMostTyped), EndsWith("\x01…")));
  EXPECT_LE(board_->list(Topic::audit, soon())->front().text.size(), 2 * kChapterBytes);
}

TEST_F(AuditTest, NoMoreIsReadThanIsWanted) {
  for (int i = 0; i < 500; ++i) {
    clock_.advance(60s);
    note(deed(std::to_string(i), i % 2 == 0 ? "mails" : "orders"));
  }
  EXPECT_THAT(ids_of(read({.limit = 100'000, .names = {"orders"}, .since = clock_.wall_now() - 300s})),
              ElementsAre("499", "497", "495"));
  const auto some = read({.limit = 3});
  EXPECT_LT(some.size(), 100U) << "one chapter is enough";
  EXPECT_EQ(some.front().id, "499");
  EXPECT_THAT(read({.limit = 10, .names = {"nobody"}}), IsEmpty());
  EXPECT_EQ(kept_since_, std::nullopt) << "all that ever was is there";
}

TEST_F(AuditTest, WhatBeganBeforeATimeAndGoesOnIsUnderWayThen) {
  AuditEntry purge = deed("long");
  purge.state = DeedState::begun;
  note(purge);
  clock_.advance(1h);
  note(deed("short"));
  EXPECT_THAT(ids_of(read({.limit = 10, .since = clock_.wall_now() - 60s})), ElementsAre("short", "long"));
  for (int i = 0; i < 60; ++i) {
    note(deed(std::to_string(i)));
  }
  purge.state = DeedState::done;
  purge.ended_at = board_->now();
  note(purge);
  clock_.advance(1h);
  EXPECT_THAT(read({.limit = 10, .since = clock_.wall_now() - 60s}), IsEmpty()) << "its end stands in a later chapter";
}

TEST_F(AuditTest, AQueueHasWhatWasMovedToItAndWhatIsNotedUnderItsTablesName) {
  AuditEntry move = deed("move", "limited");
  move.to = "quick";
  note(move);
  note(deed("drop-in", "d-limited"));
  note(deed("other", "orders"));
  EXPECT_THAT(ids_of(read({.names = {"quick"}})), ElementsAre("move"));
  EXPECT_THAT(ids_of(read({.names = {"limited", "d-limited"}})), UnorderedElementsAre("move", "drop-in"));
}

TEST_F(AuditTest, WhatNobodyCanReadIsLeftBehind) {
  ASSERT_TRUE(board_->post(Topic::audit, {.text = "\x01{"}, soon()));
  EXPECT_FALSE(read_deeds(*board_, {}, soon()));
  note(deed("a"));
  EXPECT_THAT(ids_of(read()), ElementsAre("a"));
}

TEST_F(AuditTest, ADeedOnSeveralBoardsAppearsOnce) {
  AuditEntry here = deed("a");
  here.place = "table 'x'";
  here.at = WallTime(101s);
  AuditEntry there = here;
  there.place = "table 'y'";
  there.at = WallTime(100s);
  AuditEntry later = deed("b");
  later.at = WallTime(200s);
  const auto merged = merge_audits({here, later, there});
  EXPECT_THAT(ids_of(merged), ElementsAre("b", "a"));
  EXPECT_EQ(merged.back().place, "table 'x', table 'y'");
  EXPECT_EQ(merged.back().at, WallTime(100s));
}

TEST_F(AuditTest, ADeedThatOneBoardTellsToHaveEndedGoesOnOnNone) {
  AuditEntry begun = deed("a");
  begun.state = DeedState::begun;
  begun.at = WallTime(100s);
  AuditEntry ended = begun;
  ended.state = DeedState::done;
  ended.ended_at = WallTime(101s);
  EXPECT_THAT(merge_audits({begun}, {.since = WallTime(200s)}), SizeIs(1));
  EXPECT_THAT(merge_audits({begun, ended}, {.since = WallTime(200s)}), IsEmpty());
}

}  // namespace
}  // namespace sluice::fleet
