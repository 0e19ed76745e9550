#include <gmock/gmock.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "base/timestamp.hpp"
#include "tests/stores/outbox_mysql/outbox_table.hpp"

namespace sluice::queue::outbox::mysql {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class MysqlReads : public OutboxTable {
 protected:
  Row row(std::int64_t id) {
    FetchRequest request{.beyond = RowKey{.id = id - 1}, .buckets = all_buckets_, .filter = &dead_too_};
    auto page = reader()->fetch(request, soon());
    return page && !page->rows.empty() ? page->rows.front() : Row();
  }
  std::string numbers(std::size_t from, std::size_t to) {
    std::string values;
    for (std::size_t id = from; id <= to; ++id) {
      values += (values.empty() ? "(" : ",(") + std::to_string(id) + ",'t','a" + std::to_string(id) + "','e','{}')";
    }
    return "INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload) VALUES " + values;
  }

  const Selection dead_too_{.hold_dead = true};
};

TEST_F(MysqlReads, HandsARowOutAsItIs) {
  sql("INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload,traceparent,created_at) VALUES "
      "(7,'rn::nats:::orders','k-1',"
      "'created','{\"text\":\"äß€\\\\n\"}','00-ab-cd-01','2026-01-02 03:04:05.678901')");
  const Row read = row(7);
  EXPECT_EQ(read.id, 7);
  EXPECT_EQ(read.group, (Group{"rn::nats:::orders", "k-1"}));
  EXPECT_EQ(read.event, "created");
  EXPECT_EQ(read.payload, "{\"text\":\"äß€\\n\"}");
  EXPECT_EQ(read.attributes.at("traceparent"), "00-ab-cd-01");
  EXPECT_EQ(read.retries, 0U);
  EXPECT_FALSE(read.wait);
  EXPECT_FALSE(read.dead);
  EXPECT_EQ(read.unreadable, "");
  EXPECT_EQ(read.created_at, WallTime(std::chrono::microseconds(1767323045678901)));
}

TEST_F(MysqlReads, LeavesAbsentAttributesOut) {
  insert(1, "t", "a");
  EXPECT_THAT(row(1).attributes, IsEmpty());
}

TEST_F(MysqlReads, KnowsIdsBeyondWhatAFloatingPointNumberHolds) {
  for (const char* id : {"9007199254740993", "9223372036854775806", "-5"}) {
    sql(std::string("INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload) VALUES (") + id +
        ",'t','','e','{}')");
  }
  const auto session = reader();
  EXPECT_THAT(pending(*session), ElementsAre(-5, 9007199254740993, 9223372036854775806));
  EXPECT_THAT(pending(*session, {.beyond = RowKey{.id = 9007199254740992}}),
              ElementsAre(9007199254740993, 9223372036854775806));
}

TEST_F(MysqlReads, PassesOverWhatWasSentAndWhatIsDead) {
  sql(numbers(1, 4));
  sql("UPDATE outbox SET sent_at=NOW() WHERE id=1");
  sql("UPDATE outbox SET retry_count=10 WHERE id=2");
  sql("UPDATE outbox SET retry_count=9, retry_at=UTC_TIMESTAMP(6)+INTERVAL 100 SECOND WHERE id=3");
  const auto session = reader();
  EXPECT_THAT(pending(*session), ElementsAre(3, 4));
  EXPECT_THAT(pending(*session, {.filter = &dead_too_}), ElementsAre(2, 3, 4));
  ASSERT_TRUE(row(3).wait);
  EXPECT_GT(*row(3).wait, std::chrono::seconds(10));
  EXPECT_LE(*row(3).wait, std::chrono::seconds(100));
  EXPECT_TRUE(row(2).dead);
}

TEST_F(MysqlReads, ARowThatWaitsForEverWaits) {
  sql(numbers(1, 1));
  sql("UPDATE outbox SET retry_at='9999-12-31 23:59:59', created_at='9999-12-31' WHERE id=1");
  ASSERT_TRUE(row(1).wait);
  EXPECT_GT(*row(1).wait, std::chrono::hours(24 * 365));
  EXPECT_EQ(row(1).created_at, kEndOfTime);
}

TEST_F(MysqlReads, ReadsWhatWasSentWhereTheOriginalDid) {
  sql(numbers(1, 2));
  sql("UPDATE outbox SET sent_at=NOW() WHERE id=1");
  Settings compat = settings();
  compat.config.compat = true;
  const auto session = database(compat)->open_reader(soon()).value();
  EXPECT_THAT(pending(*session), ElementsAre(1, 2));
}

TEST_F(MysqlReads, DealsEachRowToOneBucket) {
  sql(numbers(1, 300));
  sql("INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload) VALUES "
      "(1000,'t','','e','{}'),(1001,'t','','e','{}')");
  const auto session = reader();
  std::size_t total = 0;
  std::size_t filled = 0;
  for (std::uint32_t bucket = 0; bucket < 64; ++bucket) {
    const std::vector<std::uint32_t> one{bucket};
    const auto page = session->fetch({.buckets = one, .filter = &everything_}, soon());
    ASSERT_TRUE(page) << page.error().message();
    for (const Row& read : page->rows) {
      EXPECT_EQ(read.bucket, bucket);
    }
    total += page->rows.size();
    filled += page->rows.empty() ? 0 : 1;
  }
  EXPECT_EQ(total, 302U);
  EXPECT_GT(filled, 55U) << "302 rows over 64 buckets";
  EXPECT_EQ(row(1000).bucket, 1000 % 64) << "a row without a group goes by its id";
}

TEST_F(MysqlReads, SaysWhetherThereIsMore) {
  sql(numbers(1, 5));
  const auto session = reader();
  const auto page = session->fetch({.buckets = all_buckets_, .filter = &everything_, .limit = 3}, soon());
  EXPECT_EQ(page->rows.size(), 3U);
  EXPECT_TRUE(page->more);
  EXPECT_FALSE(
      session->fetch({.beyond = RowKey{.id = 3}, .buckets = all_buckets_, .filter = &everything_, .limit = 3}, soon())
          ->more);
}

TEST_F(MysqlReads, EndsAPageThatHoldsManyBytes) {
  for (int id = 1; id <= 4; ++id) {
    insert(id, "t", "a", "\"" + std::string(500'000, 'x') + "\"");
  }
  const auto session = reader();
  const auto page = session->fetch({.buckets = all_buckets_, .filter = &everything_, .bytes = 700'000}, soon());
  ASSERT_TRUE(page) << page.error().message();
  EXPECT_EQ(page->rows.size(), 2U) << "the one that goes beyond is the last";
  EXPECT_TRUE(page->more);
  EXPECT_EQ(page->rows[1].payload.size(), 500'002U);
}

TEST_F(MysqlReads, FiltersByTypeResourceAndEvent) {
  insert(1, "arn:aws:sns:eu-west-1:123456789012:orders", "a");
  insert(2, "rn::nats:::orders", "a");
  insert(3, "orders", "a");
  insert(4, "x:y:z:1:2:orders", "a");
  insert(5, "ORDERS", "a");
  sql("UPDATE outbox SET event='gone' WHERE id=2");
  const auto session = reader();
  const auto of = [&](const Selection& filter) { return pending(*session, {.filter = &filter}); };
  EXPECT_THAT(of({.types = {"orders"}}), ElementsAre(1, 2, 3))
      << "a resource of an ARN or RN, or the whole type, exactly";
  EXPECT_THAT(of({.types = {"rn::nats:::orders"}}), ElementsAre(2));
  EXPECT_THAT(of({.deny_types = {"orders"}}), ElementsAre(4, 5));
  EXPECT_THAT(of({.events = {"gone"}}), ElementsAre(2));
  EXPECT_THAT(of({.skip_events = {"gone"}}), ElementsAre(1, 3, 4, 5));
  EXPECT_THAT(of({.types = {"x' OR '1'='1"}}), IsEmpty());
}

TEST_F(MysqlReads, PassesOverGroupsByTheirExactNames) {
  insert(1, "t", "a");
  insert(2, "t", "A");
  insert(3, "t", "a ");
  insert(4, "t", "");
  const auto session = reader();
  const std::vector<Group> without{{"t", "a"}};
  EXPECT_THAT(pending(*session, {.without = without}), ElementsAre(2, 3, 4)) << "the collation takes 1 to 3 for equal";
}

TEST_F(MysqlReads, FindsTheFirstRowsOfGroups) {
  sql("INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload) VALUES "
      "(1,'t','a','e','1'),(2,'t','b','e','2'),"
      "(3,'t','a','e','3'),(4,'t','a','e','4'),(5,'u','a','e','5'),(6,'t','A','e','6')");
  const auto session = reader();
  const std::vector<Group> groups{{"t", "b"}, {"t", "a"}, {"t", "nobody"}};
  const auto found =
      session->fetch_groups(groups, {.buckets = all_buckets_, .filter = &everything_, .limit = 2}, soon());
  ASSERT_TRUE(found) << found.error().message();
  ASSERT_EQ(found->size(), 3U);
  EXPECT_EQ((*found)[0].rows.size(), 1U);
  EXPECT_FALSE((*found)[0].more);
  ASSERT_EQ((*found)[1].rows.size(), 2U);
  EXPECT_EQ((*found)[1].rows[0].id, 1);
  EXPECT_EQ((*found)[1].rows[1].payload, "3");
  EXPECT_TRUE((*found)[1].more);
  EXPECT_THAT((*found)[2].rows, IsEmpty());
}

TEST_F(MysqlReads, FindsRowsOfGroupsWhoseNamesAreBytes) {
  sql("ALTER TABLE outbox MODIFY aggregate_id VARBINARY(16) NOT NULL");
  sql("INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload) VALUES (1,'t',x'00ff80c3','e','1'),"
      "(2,'t',x'00fe80c3','e','2'),(3,'t',x'00ff80c3','e','3')");
  const auto session = reader();
  const auto page = session->fetch({.buckets = all_buckets_, .filter = &everything_}, soon());
  ASSERT_EQ(page->rows.size(), 3U);
  const std::vector<Group> groups{page->rows[0].group};
  const auto found = session->fetch_groups(groups, {.buckets = all_buckets_, .filter = &everything_}, soon());
  ASSERT_TRUE(found) << found.error().message();
  EXPECT_EQ(found->at(0).rows.size(), 2U);
  EXPECT_THAT(pending(*session, {.without = groups}), ElementsAre(2));
}

// A group is found first and read then: a row that is marked in between must not pass for the end of its group, or rows
// from further down would go out before those that follow here.
TEST_F(MysqlReads, KnowsThatAGroupGoesOnWhileItsFirstRowsAreMarked) {
  constexpr std::size_t kRows = 5000;
  std::string values;
  for (std::size_t id = 1; id <= kRows; ++id) {
    values += (id == 1 ? "(" : ",(") + std::to_string(id) + ",'t','hot','e','{}')";
  }
  sql("INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload) VALUES " + values);
  const auto session = reader();
  const std::vector<Group> groups{{"t", "hot"}};
  std::atomic<bool> over = false;
  std::jthread marker([&] {
    for (std::size_t id = 1; id <= kRows; ++id) {
      sql("UPDATE outbox SET sent_at = NOW(6) WHERE id = " + std::to_string(id));
    }
    over = true;
  });
  std::vector<std::int64_t> taken_for_the_end;
  int goes_on = 0;
  while (!over) {
    const auto found =
        session->fetch_groups(groups, {.buckets = all_buckets_, .filter = &everything_, .limit = 32}, soon());
    if (found && !found->front().more && !found->front().rows.empty()) {
      taken_for_the_end.push_back(found->front().rows.back().id);
    }
    goes_on += found && found->front().more ? 1 : 0;
  }
  marker.join();
  EXPECT_GT(goes_on, 10);
  EXPECT_THAT(taken_for_the_end, testing::Each(static_cast<std::int64_t>(kRows)));
}

TEST_F(MysqlReads, NamesARowThatCannotBeHandedOut) {
  sql("ALTER TABLE outbox MODIFY payload JSON NULL, MODIFY event VARCHAR(255) NULL, MODIFY aggregate_type VARCHAR(255) "
      "NULL");
  sql("INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload) VALUES "
      "(1,'t','a','e',NULL),(2,NULL,'b','e','{}'),(3,'t','c',NULL,'{}')");
  EXPECT_EQ(row(1).unreadable, "");
  EXPECT_TRUE(row(1).tombstone);
  EXPECT_FALSE(row(2).tombstone);
  EXPECT_EQ(row(2).unreadable, "aggregate_type is NULL");
  EXPECT_EQ(row(3).unreadable, "event is NULL");
}

TEST_F(MysqlReads, HasNoNews) {
  const auto session = reader();
  EXPECT_EQ(session->news().value(), ReadSession::News::none);
  EXPECT_EQ(session->news_descriptor(), -1);
  EXPECT_TRUE(session->wants_looks()) << "nobody tells of new rows";
}

// As a host's reader does while others have all buckets.
TEST_F(MysqlReads, WhoOnlyReadsMayBeSilentForLongerThanALease) {
  Settings hasty = settings();
  hasty.config.lease = std::chrono::seconds(2);
  const auto outbox = database(hasty);
  const auto reader = outbox->open_reader(soon()).value();
  ::poll(nullptr, 0, 3000);
  const auto page = reader->fetch({.buckets = all_buckets_, .filter = &everything_}, soon());
  EXPECT_TRUE(page) << page.error().message();
}

}  // namespace
}  // namespace sluice::queue::outbox::mysql
