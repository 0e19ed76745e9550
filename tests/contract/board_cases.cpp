#include <future>

#include "host/fleet/audit.hpp"
#include "tests/contract/store_contract.hpp"

// The notice board beside the messages: what hosts and operators leave for each other.
namespace sluice::test {

using queue::Notice;
using queue::NoticeBoard;
using queue::Topic;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

namespace {

std::unique_ptr<NoticeBoard> open_board(queue::Queues& queues, const std::string& queue) {
  auto opened = queues.open_board(queue);
  if (!opened) {
    ADD_FAILURE() << opened.error().message();
    return nullptr;
  }
  return std::move(*opened);
}

std::vector<std::string> keys_of(const std::vector<Notice>& notices) {
  std::vector<std::string> keys;
  keys.reserve(notices.size());
  for (const Notice& notice : notices) {
    keys.push_back(notice.key);
  }
  return keys;
}

ErrorCode code_of(const Result<std::int64_t>& posted) {
  EXPECT_FALSE(posted);
  return posted ? ErrorCode::internal : posted.error().code();
}

}  // namespace

TEST_P(StoreContract, AnEmptyBoardHasNothing) {
  const auto board = open_board(under_test().queues(), queue_name());
  for (const Topic topic : {Topic::hosts, Topic::steering, Topic::audit}) {
    const auto listed = board->list(topic, soon());
    ASSERT_TRUE(listed) << listed.error().message();
    EXPECT_THAT(*listed, IsEmpty());
    const auto read = board->read(topic, {}, soon());
    ASSERT_TRUE(read) << read.error().message();
    EXPECT_EQ(read->version, 0);
    EXPECT_TRUE(board->take_down(topic, {}, 0, soon()));
  }
}

TEST_P(StoreContract, ANoticeIsReadAsItWasPosted) {
  const auto board = open_board(under_test().queues(), queue_name());
  const std::string text = std::string("{\"a\": \"\xc3\xa4\"}") + std::string(5'000, 'x');
  const auto posted = board->post(Topic::hosts, {.key = "h:1 x/y", .text = text}, soon());
  ASSERT_TRUE(posted) << posted.error().message();
  EXPECT_EQ(*posted, 1);
  const auto listed = board->list(Topic::hosts, soon());
  ASSERT_TRUE(listed) << listed.error().message();
  ASSERT_THAT(keys_of(*listed), ElementsAre("h:1 x/y"));
  EXPECT_EQ(listed->front().text, text);
  EXPECT_EQ(listed->front().version, 1);
  EXPECT_LT(std::chrono::abs(listed->front().posted_at - board->now()), 5s);
  const auto read = board->read(Topic::hosts, "h:1 x/y", soon());
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->text, text);
  EXPECT_EQ(read->version, 1);
}

TEST_P(StoreContract, TopicsAndKeysAreApart) {
  const auto board = open_board(under_test().queues(), queue_name());
  for (const std::string key : {"b", "a", "c"}) {
    ASSERT_TRUE(board->post(Topic::hosts, {.key = key, .text = "host " + key}, soon()));
  }
  ASSERT_TRUE(board->post(Topic::steering, {.text = "wishes"}, soon()));
  ASSERT_TRUE(board->post(Topic::audit, {.text = "deeds"}, soon()));
  EXPECT_THAT(keys_of(*board->list(Topic::hosts, soon())), ElementsAre("a", "b", "c"));
  EXPECT_EQ(board->read(Topic::steering, {}, soon())->text, "wishes");
  EXPECT_EQ(board->read(Topic::audit, {}, soon())->text, "deeds");
  ASSERT_TRUE(board->take_down(Topic::hosts, "b", 1, soon()));
  EXPECT_THAT(keys_of(*board->list(Topic::hosts, soon())), ElementsAre("a", "c"));
  EXPECT_EQ(board->read(Topic::hosts, "b", soon())->version, 0);
}

TEST_P(StoreContract, TheAuditsOlderChaptersAreReadByTheirKeys) {
  const auto board = open_board(under_test().queues(), queue_name());
  ASSERT_TRUE(board->post(Topic::audit, {.key = "7", .text = "old"}, soon()));
  EXPECT_THAT(*board->list(Topic::audit, soon()), IsEmpty());
  ASSERT_TRUE(board->post(Topic::audit, {.text = "new"}, soon()));
  EXPECT_THAT(keys_of(*board->list(Topic::audit, soon())), ElementsAre(""));
  EXPECT_EQ(board->read(Topic::audit, {}, soon())->text, "new");
  EXPECT_EQ(board->read(Topic::audit, "7", soon())->text, "old");
  EXPECT_EQ(*board->post(Topic::audit, {.key = "7", .text = "overwritten", .version = 1}, soon()), 2);
}

TEST_P(StoreContract, NoDeedOutgrowsTheAudit) {
  constexpr std::size_t kDeeds = 60;
  const auto board = open_board(under_test().queues(), queue_name());
  fleet::AuditEntry deed{.who = "ann@ops", .what = "purge queue orders", .reason = std::string(500, 'x')};
  for (std::size_t count = 0; count < kDeeds; ++count) {
    deed.id = std::to_string(count);
    for (const auto state : {fleet::DeedState::begun, fleet::DeedState::done}) {
      deed.state = state;
      const auto noted = fleet::note_deed(*board, deed, soon());
      ASSERT_TRUE(noted) << noted.error().message();
    }
  }
  const auto found = fleet::read_deeds(*board, {.limit = kDeeds}, soon());
  ASSERT_TRUE(found) << found.error().message();
  const auto all = fleet::merge_audits(found->deeds);
  EXPECT_EQ(all.size(), kDeeds);
  EXPECT_TRUE(std::all_of(all.begin(), all.end(), [](const fleet::AuditEntry& one) {
    return one.state == fleet::DeedState::done && one.reason.size() == 500U;
  }));
}

TEST_P(StoreContract, APostIsConditionalOnTheVersion) {
  const auto board = open_board(under_test().queues(), queue_name());
  const auto other = open_board(under_test().queues(), queue_name());
  ASSERT_TRUE(board->post(Topic::steering, {.text = "one"}, soon()));
  EXPECT_EQ(code_of(other->post(Topic::steering, {.text = "blind"}, soon())), ErrorCode::conflict);
  EXPECT_EQ(*other->post(Topic::steering, {.text = "two", .version = 1}, soon()), 2);
  EXPECT_EQ(code_of(board->post(Topic::steering, {.text = "late", .version = 1}, soon())), ErrorCode::conflict);
  EXPECT_EQ(code_of(board->post(Topic::steering, {.text = "early", .version = 3}, soon())), ErrorCode::conflict);
  EXPECT_EQ(board->read(Topic::steering, {}, soon())->text, "two");
  const auto torn = board->take_down(Topic::steering, {}, 1, soon());
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().code(), ErrorCode::conflict) << torn.error().message();
  ASSERT_TRUE(board->take_down(Topic::steering, {}, 2, soon()));
  EXPECT_TRUE(board->take_down(Topic::steering, {}, 2, soon())) << "it is not there any more";
  EXPECT_EQ(code_of(board->post(Topic::steering, {.text = "gone", .version = 2}, soon())), ErrorCode::conflict);
  EXPECT_EQ(*board->post(Topic::steering, {.text = "anew"}, soon()), 1);
}

TEST_P(StoreContract, ATextThatIsTooLongIsRefused) {
  const auto board = open_board(under_test().queues(), queue_name());
  const std::size_t most = board->traits().most_bytes;
  EXPECT_EQ(code_of(board->post(Topic::audit, {.text = std::string(most + 1, 'x')}, soon())), ErrorCode::invalid);
  const auto longest = board->post(Topic::audit, {.text = std::string(most, 'x')}, soon());
  ASSERT_TRUE(longest) << longest.error().message();
  EXPECT_EQ(board->read(Topic::audit, {}, soon())->text.size(), most);
}

TEST_P(StoreContract, ABoardKeepsItsDeadline) {
  const auto board = open_board(under_test().queues(), queue_name());
  const auto read = board->read(Topic::steering, {}, passed());
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code(), ErrorCode::timeout) << read.error().message();
  EXPECT_EQ(code_of(board->post(Topic::hosts, {.key = "late", .text = "x"}, passed())), ErrorCode::timeout);
  EXPECT_THAT(*board->list(Topic::hosts, soon()), IsEmpty());
}

TEST_P(StoreContract, NobodyTakesANoticeForAMessage) {
  const auto board = open_board(under_test().queues(), queue_name());
  ASSERT_TRUE(board->post(Topic::hosts, {.key = "h", .text = "{}"}, soon()));
  ASSERT_TRUE(board->post(Topic::steering, {.text = "{}"}, soon()));
  ASSERT_TRUE(board->post(Topic::audit, {.text = "{}"}, soon()));
  EXPECT_EQ(stats(standard()).total() + stats(dlq()).total(), 0U);
  EXPECT_THAT(claim(standard()), IsEmpty());
  EXPECT_THAT(list_all(standard()), IsEmpty());
  EXPECT_THAT(list_all(dlq()), IsEmpty());
  queue::Operator& oper = desk().oper(queue_name());
  EXPECT_EQ(oper.stats({.half = queue::Half::standard, .consistent = true}, soon())->total(), 0U);
  EXPECT_EQ(oper.overview({.errors = 5}, soon())->counts.total(), 0U);
  const auto listed =
      oper.list({.limit = 10, .cursor = {}, .content = true, .native = true, .consistent = true}, soon());
  ASSERT_TRUE(listed) << listed.error().message();
  EXPECT_THAT(listed->messages, IsEmpty());
  for (const std::string id : {"sluice:fleet/steering", "sluice:fleet/host/h", "h"}) {
    EXPECT_TRUE(absent(id));
    EXPECT_EQ(
        change({.id = id, .action = queue::ChangeAction::remove, .version = {}, .after = {}, .failure = {}}).status,
        queue::ChangeStatus::not_found);
  }
  EXPECT_EQ(board->read(Topic::steering, {}, soon())->version, 1);
}

TEST_P(StoreContract, WhoWatchesABoardIsToldOfSteering) {
  const auto board = open_board(under_test().queues(), queue_name());
  const auto other = open_board(under_test().queues(), queue_name());
  std::promise<void> told;
  std::atomic<int> times{0};
  const auto watch = board->watch([&] {
    if (times++ == 0) {
      told.set_value();
    }
  });
  ASSERT_EQ(watch != nullptr, board->traits().tells);
  if (watch == nullptr) {
    return;
  }
  ASSERT_TRUE(other->post(Topic::hosts, {.key = "h", .text = "{}"}, soon()));
  EXPECT_EQ(times, 0) << "hosts tell of themselves all the time";
  ASSERT_TRUE(other->post(Topic::steering, {.text = "{}"}, soon()));
  EXPECT_EQ(told.get_future().wait_for(10s), std::future_status::ready);
}

TEST_P(StoreContract, WhoWatchesIsToldEachTime) {
  const auto board = open_board(under_test().queues(), queue_name());
  Mutex mutex;
  Condition changed;
  std::size_t told = 0;
  const auto watch = board->watch([&] {
    const MutexLock lock(mutex);
    ++told;
    changed.notify_all();
  });
  for (std::int64_t round = 0; watch != nullptr && round < 3; ++round) {
    std::size_t before = 0;
    {
      const MutexLock lock(mutex);
      before = told;
    }
    ASSERT_TRUE(board->post(Topic::steering, {.text = std::to_string(round), .version = round}, soon()));
    const MutexLock lock(mutex);
    EXPECT_TRUE(changed.wait_until(mutex, SystemClock().steady_now() + 10s, [&] { return told > before; }));
  }
}

// What is posted while a watcher is being told of the post before reaches him too.
TEST_P(StoreContract, APostWhileSomebodyIsToldIsToldToo) {
  const auto board = open_board(under_test().queues(), queue_name());
  std::promise<void> again;
  int times = 0;  // of the watch alone, which is told by one thread at a time
  const auto watch = board->watch([&] {
    ++times;
    if (times == 1) {
      EXPECT_TRUE(board->post(Topic::steering, {.text = "two", .version = 1}, soon()));
    } else if (times == 2) {
      again.set_value();
    }
  });
  if (watch == nullptr) {
    return;
  }
  ASSERT_TRUE(board->post(Topic::steering, {.text = "one"}, soon()));
  EXPECT_EQ(again.get_future().wait_for(10s), std::future_status::ready);
}

}  // namespace sluice::test
