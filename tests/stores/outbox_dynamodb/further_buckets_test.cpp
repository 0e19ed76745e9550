#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "host/stores/outbox/dynamodb/outbox_place.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/model.hpp"
#include "tests/support/dynamodb_model/transport.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::queue::outbox {
namespace {

using namespace std::chrono_literals;
using dynamo::AttributeValue;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// Hosts know four buckets; writers may name others.
class FurtherBucketsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    settings_.name = "orders";
    settings_.config.table = "shop-outbox";
    settings_.config.buckets = 4;
    settings_.config.lease = 15s;
    dynamo::CreateTableRequest request;
    request.name = settings_.config.table;
    request.attribute_types = {{"bucket", "S"}, {"id", "N"}};
    request.hash_key = "bucket";
    request.range_key = "id";
    ASSERT_TRUE(client_.create_table(request, soon()));
    outbox_ = make_dynamodb_outbox(settings_, client_, clock_, random_);
    locks_ = *outbox_->open_locks(soon());
    reader_ = *outbox_->open_reader(soon());
    desk_ = *outbox_->open_admin(soon());
  }

  Deadline soon() { return Deadline::after(clock_, 60s); }

  void put(const std::string& bucket, std::int64_t id) {
    dynamo::ItemWrite request;
    request.table = settings_.config.table;
    request.item = {{"bucket", bucket},          {"id", AttributeValue::number(id)},
                    {"aggregate_type", "order"}, {"aggregate_id", "o-1"},
                    {"event", "Placed"},         {"payload", "{}"}};
    const auto written = client_.write(request, soon());
    ASSERT_TRUE(written) << written.error().message;
  }
  /// What the holder of these buckets reads.
  std::vector<std::string> read(const std::vector<std::uint32_t>& buckets, bool dead = false) {
    FetchRequest request;
    request.buckets = buckets;
    request.filter = &filter_;
    filter_.hold_dead = dead;
    const auto page = reader_->fetch(request, soon());
    EXPECT_TRUE(page) << page.error().message();
    std::vector<std::string> keys;
    for (const Row& row : page->rows) {
      keys.push_back(to_string(row.key()));
      EXPECT_THAT(buckets, ::testing::Contains(row.bucket)) << "it goes out with the lock of that bucket";
    }
    return keys;
  }
  MarkStatus mark(RowEdit mark) {
    const auto statuses = locks_->mark(std::span(&mark, 1), soon());
    EXPECT_TRUE(statuses) << statuses.error().message();
    return statuses ? statuses->at(0) : MarkStatus::gone;
  }
  std::vector<std::string> findings() {
    const auto found = desk_->inspect(soon());
    EXPECT_TRUE(found) << found.error().message();
    std::vector<std::string> texts;
    for (const Finding& finding : *found) {
      EXPECT_FALSE(finding.fatal) << finding.text;
      texts.push_back(finding.text);
    }
    return texts;
  }

  test::FakeClock clock_;
  SeededRandom random_{3};
  test::model::Model model_{clock_, 1};
  test::model::ModelTransport transport_{model_, clock_};
  test::model::FixedCredentials credentials_;
  std::size_t requests_ = 0;
  static dynamo::ClientOptions counting(std::size_t& requests) {
    dynamo::ClientOptions options{{.region = "eu-west-1"}};
    options.observer = [&requests](const dynamo::CallRecord& /*call*/) { ++requests; };
    return options;
  }
  dynamo::Client client_{counting(requests_), transport_, credentials_, clock_, random_};
  Settings settings_;
  Selection filter_;
  std::unique_ptr<Database> outbox_;
  std::unique_ptr<LockSession> locks_;
  std::unique_ptr<ReadSession> reader_;
  std::unique_ptr<AdminSession> desk_;
};

TEST_F(FurtherBucketsTest, WhatWasWrittenForMoreBucketsGoesOutWithThoseThatThereAre) {
  put("1", 30);
  put("5", 10);
  put("5", 40);
  put("13", 20);
  put("6", 15);
  EXPECT_THAT(read({1}), ElementsAre("5/10", "13/20", "1/30", "5/40")) << "by id, whatever the bucket";
  EXPECT_THAT(read({0, 2, 3}), ElementsAre("6/15")) << "each is one holder's alone";
  EXPECT_EQ(mark(sent_mark({10, 5})), MarkStatus::written);
  EXPECT_EQ(mark(dead_mark({40, 5}, 3)), MarkStatus::written);
  EXPECT_THAT(read({1}), ElementsAre("13/20", "1/30"));
  EXPECT_THAT(read({1}, true), ElementsAre("13/20", "1/30", "5/40")) << "a dead letter holds its group";
  EXPECT_EQ(desk_->count({}, soon())->ready, 3U);
  EXPECT_EQ(desk_->count({}, soon())->dead, 1U);
  EXPECT_EQ(desk_->list({.half = Half::dlq}, soon())->at(0).row.key(), (RowKey{40, 5}));
  const RowEdit again = edit_of(RowKey{40, 5}, {.action = ChangeAction::redrive}, 10);
  EXPECT_THAT(*desk_->change(std::span(&again, 1), soon()), ElementsAre(ChangeStatus::applied));
  EXPECT_THAT(read({1}), ElementsAre("13/20", "1/30", "5/40")) << "back where it was";
}

TEST_F(FurtherBucketsTest, WhatAWriterPutsLaterIsFoundWithinAnHour) {
  EXPECT_THAT(read({1}), IsEmpty());
  put("5", 10);
  clock_.advance(59min);
  EXPECT_THAT(read({1}), IsEmpty()) << "a look costs a request for each bucket that holds something";
  clock_.advance(2min);
  EXPECT_THAT(read({1}), ElementsAre("5/10"));
}

TEST_F(FurtherBucketsTest, BucketsThatNobodyExpectsAreNamedWithTheMend) {
  ASSERT_TRUE(locks_->join({.name = "main", .buckets = 4}, soon()));
  ASSERT_TRUE(locks_->lock(std::vector<std::uint32_t>{0, 1}, soon()));
  put("0", 1);
  put("dead#3", 2);
  EXPECT_THAT(findings(), IsEmpty());
  for (const char* bucket : {"5", "03", "x", "4096", "dead#x", "-1", "dead#7"}) {
    put(bucket, 1);
    put(bucket, 2);
  }
  EXPECT_THAT(findings(),
              ElementsAre(AllOf(HasSubstr("-1, 03, 4096, dead#x, x"), HasSubstr("published by nobody"),
                                HasSubstr("move"), Not(HasSubstr("lock/"))),
                          AllOf(HasSubstr("5, 7"), HasSubstr("buckets = 4"), HasSubstr("raise 'buckets' to 8"))));
  EXPECT_THAT(read({0, 1, 2, 3}), ElementsAre("0/1", "5/1", "5/2")) << "a row of bucket 03 is none of bucket 3";
}

TEST_F(FurtherBucketsTest, ALookReadsARowOfEachBucketAndNotTheTable) {
  for (std::int64_t id = 1; id <= 500; ++id) {
    put(std::to_string(id % 8), id);
  }
  requests_ = 0;
  EXPECT_THAT(findings(), ElementsAre(HasSubstr("4, 5, 6, 7")));
  EXPECT_LE(requests_, 12U);
}

TEST_F(FurtherBucketsTest, AHostThatMayNotLookWorksOnWhatItExpects) {
  model_.deny("dynamodb:Scan");
  put("1", 1);
  put("5", 2);
  EXPECT_THAT(read({1}), ElementsAre("1/1"));
  EXPECT_EQ(desk_->count({}, soon())->ready, 1U);
  EXPECT_THAT(findings(), ElementsAre(AllOf(HasSubstr("cannot look for"), HasSubstr("dynamodb:Scan"))));
}

TEST_F(FurtherBucketsTest, WhereEveryRowHasABucketOfItsOwnALookEnds) {
  for (std::int64_t id = 1; id <= 1000; ++id) {
    put("order-" + std::to_string(id), id);
  }
  requests_ = 0;
  EXPECT_THAT(findings(), ElementsAre(HasSubstr("and others")));
  EXPECT_LE(requests_, 110U);
}

}  // namespace
}  // namespace sluice::queue::outbox
