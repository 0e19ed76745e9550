#include <gmock/gmock.h>

#include "tests/stores/outbox_mysql/outbox_table.hpp"

namespace sluice::queue::outbox::mysql {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MysqlLocks : public OutboxTable {
 protected:
  std::unique_ptr<LockSession> member(const LockSpace& space = {"orders/relay", 64}) {
    auto session = locks();
    const auto joined = session->join(space, soon());
    EXPECT_TRUE(joined) << joined.error().message();
    return session;
  }
  std::vector<std::uint32_t> lock(LockSession& session, const std::vector<std::uint32_t>& buckets) {
    const auto got = session.lock(buckets, soon());
    EXPECT_TRUE(got) << got.error().message();
    return got ? *got : std::vector<std::uint32_t>();
  }
};

TEST_F(MysqlLocks, CountsItsMembers) {
  const auto one = member();
  EXPECT_EQ(one->beat(soon())->count, 1U);
  auto two = member();
  const auto three = member();
  EXPECT_EQ(one->beat(soon())->count, 3U);
  EXPECT_EQ(two->beat(soon())->count, 3U);
  two.reset();
  // The server notices the end of a connection in its own time.
  while (one->beat(soon())->count != 2) {
  }
  const auto elsewhere = member({"orders/other", 64});
  EXPECT_EQ(one->beat(soon())->count, 2U) << "another job shares nothing with this one";
  EXPECT_EQ(elsewhere->beat(soon())->count, 1U);
}

TEST_F(MysqlLocks, AreSomebodysByTheServersNumberOfHim) {
  const auto server = make_mysql_database(settings(), clock_, random_);
  const auto desk = *server->open_admin(soon());
  const LockSpace space{"orders/relay", 64};
  EXPECT_EQ(*desk->holder_of(space, 3, soon()), "");
  const auto one = member(space);
  EXPECT_THAT(lock(*one, {3}), ElementsAre(3));
  EXPECT_THAT(**desk->holder_of(space, 3, soon()),
              testing::MatchesRegex("the server's session [0-9]+ from (localhost|127\\.0\\.0\\.1:[0-9]+)"));
  EXPECT_EQ(*desk->holder_of(space, 4, soon()), "");
}

TEST_F(MysqlLocks, AreOneTablesHoweverItIsNamed) {
  auto named = settings();
  named.config.schema = name();
  const auto one = member();
  const auto other_database = database(named);
  const auto other = *other_database->open_locks(soon());
  const auto joined = other->join({"orders/relay", 64}, soon());
  ASSERT_TRUE(joined) << joined.error().message();
  EXPECT_EQ(joined->count, 2U);
  EXPECT_THAT(lock(*one, {0}), ElementsAre(0));
  EXPECT_THAT(lock(*other, {0}), IsEmpty());
}

// What a proxy does that gives a session to several clients: what one of them has, the other has as well.
TEST_F(MysqlLocks, OfASessionThatIsSomebodyElsesTooAreRefused) {
  const auto server = make_mysql_database(settings(), clock_, random_);
  auto opened = server->connect(SqlServer::Use::locks, soon());
  ASSERT_TRUE(opened);
  auto* const shared = opened->get();
  const auto one = server->locks_on(std::move(*opened));
  ASSERT_TRUE(one->join({"orders/relay", 64}, soon()));
  EXPECT_THAT(lock(*one, {3}), ElementsAre(3));
  const auto again = one->join({"orders/relay", 64}, soon());
  ASSERT_FALSE(again) << "it holds a place already, whoever took that";
  EXPECT_THAT(again.error().message(), testing::HasSubstr("coordination = \"table\""));
  ASSERT_TRUE(shared->run("SELECT RELEASE_ALL_LOCKS()", soon()));
  EXPECT_THAT(lock(*one, {4}), IsEmpty()) << "its place is not its own any more";
  const auto beat = one->beat(soon());
  ASSERT_FALSE(beat);
  EXPECT_EQ(beat.error().code(), ErrorCode::unavailable) << "the session is over";
}

TEST_F(MysqlLocks, GivesEachBucketToOne) {
  const auto one = member();
  const auto two = member();
  EXPECT_THAT(lock(*one, {0, 1, 63}), ElementsAre(0, 1, 63));
  EXPECT_THAT(lock(*two, {0, 1, 2}), ElementsAre(2));
  EXPECT_THAT(lock(*one, {2}), IsEmpty());
  const std::vector<std::uint32_t> given{0, 5};
  ASSERT_TRUE(one->unlock(given, soon())) << "one that it does not hold changes nothing";
  EXPECT_THAT(lock(*two, {0}), ElementsAre(0));
}

TEST_F(MysqlLocks, HoldsThousandsOfThem) {
  const auto session = member({"orders/relay", 4096});
  std::vector<std::uint32_t> all;
  for (std::uint32_t bucket = 0; bucket < 4096; ++bucket) {
    all.push_back(bucket);
  }
  EXPECT_EQ(lock(*session, all).size(), 4096U);
}

TEST_F(MysqlLocks, SeesWhoSharesIntoAnotherNumberOfBuckets) {
  const auto one = member({"orders/relay", 64});
  EXPECT_EQ(one->beat(soon())->other_buckets, 0U);
  const auto two = locks();
  EXPECT_EQ(two->join({"orders/relay", 100}, soon())->other_buckets, 64U);
  EXPECT_EQ(one->beat(soon())->other_buckets, 100U);
  const auto three = member({"orders/relay", 64});
  EXPECT_EQ(three->beat(soon())->other_buckets, 100U);
}

TEST_F(MysqlLocks, AreFreeOnceTheirSessionIsGone) {
  auto one = member();
  lock(*one, {7});
  const auto two = member();
  EXPECT_THAT(lock(*two, {7}), IsEmpty());
  one.reset();
  while (lock(*two, {7}).empty()) {
  }
}

TEST_F(MysqlLocks, AreTakenFromASessionOfWhichNothingIsHeard) {
  Settings hasty = settings();
  hasty.config.lease = std::chrono::seconds(2);
  const auto silent = database(hasty)->open_locks(soon()).value();
  ASSERT_TRUE(silent->join({"orders/relay", 64}, soon()));
  ASSERT_THAT(lock(*silent, {7}), ElementsAre(7));
  const auto other = member();
  while (lock(*other, {7}).empty()) {
    // The server ends it after 2 s; nothing here hastens that.
  }
  EXPECT_EQ(silent->beat(soon()).error().code(), ErrorCode::unavailable);
}

TEST_F(MysqlLocks, TakeNamesOfAnyKind) {
  const auto session = member({std::string(500, 'x') + "'\"\\`/ä", 64});
  EXPECT_THAT(lock(*session, {1}), ElementsAre(1));
}

}  // namespace
}  // namespace sluice::queue::outbox::mysql
