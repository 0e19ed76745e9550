#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "base/timestamp.hpp"
#include "host/stores/outbox/dynamodb/outbox_place.hpp"
#include "host/stores/outbox/outbox_queues.hpp"
#include "host/stores/outbox/row_scheduler.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/model.hpp"
#include "tests/support/dynamodb_model/transport.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::queue::outbox {
namespace {

using namespace std::chrono_literals;
using dynamo::AttributeValue;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr std::uint32_t kBuckets = 4;

class DynamoDbOutboxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    settings_.name = "orders";
    settings_.config.table = "shop-outbox";
    settings_.config.buckets = kBuckets;
    settings_.config.columns.last_error = "last_error";
    settings_.config.columns.created_at = "created_at";
    settings_.config.attributes = {"tenant"};
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

  /// A row as an application puts it: bucket by the length of its aggregate's name.
  void put(std::int64_t id, const std::string& aggregate, dynamo::Item more = {}) {
    dynamo::ItemWrite request;
    request.table = settings_.config.table;
    request.item = std::move(more);
    parts_[id] = static_cast<std::uint32_t>(aggregate.size()) % kBuckets;
    request.item.try_emplace("bucket", partition_of(parts_[id]));
    request.item.try_emplace("id", AttributeValue::number(id));
    request.item.try_emplace("aggregate_type", "rn::nats:::orders");
    request.item.try_emplace("aggregate_id", aggregate);
    request.item.try_emplace("event", "Placed");
    request.item.try_emplace("payload", R"({"n":1})");
    const auto written = client_.write(request, soon());
    ASSERT_TRUE(written) << written.error().message;
  }

  FetchRequest all() {
    FetchRequest request;
    request.buckets = every_bucket_;
    request.filter = &filter_;
    return request;
  }
  std::vector<std::int64_t> ids(const FetchRequest& request) {
    const auto page = reader_->fetch(request, soon());
    EXPECT_TRUE(page) << page.error().message();
    std::vector<std::int64_t> found;
    for (const Row& row : page->rows) {
      found.push_back(row.id);
    }
    more_ = page->more;
    return found;
  }
  RowKey key(std::int64_t id) const { return {id, parts_.contains(id) ? parts_.at(id) : 0}; }
  MarkStatus mark(RowEdit mark) {
    mark.key.part = mark.key.part == RowKey::kWhole ? key(mark.key.id).part : mark.key.part;
    const auto statuses = locks_->mark(std::span(&mark, 1), soon());
    EXPECT_TRUE(statuses) << statuses.error().message();
    return statuses ? statuses->at(0) : MarkStatus::gone;
  }

  test::FakeClock clock_;
  SeededRandom random_{3};
  test::model::Model model_{clock_, 1};
  test::model::ModelTransport transport_{model_, clock_};
  test::model::FixedCredentials credentials_;
  dynamo::Client client_{{{.region = "eu-west-1"}}, transport_, credentials_, clock_, random_};
  std::map<std::int64_t, std::uint32_t> parts_;  ///< where rows were put
  Settings settings_;
  Selection filter_;
  std::vector<std::uint32_t> every_bucket_{0, 1, 2, 3};
  bool more_ = false;
  std::unique_ptr<Database> outbox_;
  std::unique_ptr<LockSession> locks_;
  std::unique_ptr<ReadSession> reader_;
  std::unique_ptr<AdminSession> desk_;
};

TEST_F(DynamoDbOutboxTest, IsKnownByTheTablesArn) {
  const auto source = reader_->source_id(soon());
  ASSERT_TRUE(source) << source.error().message();
  EXPECT_EQ(source->id, "dynamodb-arn:aws:dynamodb:us-east-1:000000000000:table/shop-outbox");
  EXPECT_EQ(source->doubt, "");
  EXPECT_EQ(desk_->source_id(soon())->id, source->id);
  settings_.application = "sluice two";
  const auto other_relay = make_dynamodb_outbox(settings_, client_, clock_, random_);
  EXPECT_EQ((*other_relay->open_reader(soon()))->source_id(soon())->id, source->id);
  dynamo::CreateTableRequest request;
  request.name = settings_.config.table = "tenant-outbox";
  request.attribute_types = {{"bucket", "S"}, {"id", "N"}};
  request.hash_key = "bucket";
  request.range_key = "id";
  ASSERT_TRUE(client_.create_table(request, soon()));
  const auto tenant = make_dynamodb_outbox(settings_, client_, clock_, random_);
  EXPECT_NE((*tenant->open_reader(soon()))->source_id(soon())->id, source->id);
}

// Otherwise all that is out would be lost, and handled again, with each try of such a row.
TEST_F(DynamoDbOutboxTest, AMarkThatIsRefusedBesideOthersLeavesNothingInDoubt) {
  put(1, "a");
  put(2, "a");
  put(3, "a", {{"payload", std::string(408'000, 'x')}});
  for (const bool dead : {false, true}) {
    const std::string reason(kLongestReason, 'y');
    const std::vector<RowEdit> marks{sent_mark(key(1)), retry_mark(key(2), 1, 1s, "it failed"),
                                     dead ? dead_mark(key(3), 10, reason) : retry_mark(key(3), 1, 1s, reason)};
    const auto marked = locks_->mark(marks, soon());
    ASSERT_TRUE(marked.has_error());
    EXPECT_EQ(marked.error().code(), ErrorCode::invalid) << marked.error().message();
    EXPECT_THAT(ids(all()), ElementsAre(1, 2, 3)) << "what was sent can be marked again";
  }
  EXPECT_EQ(mark(sent_mark(key(1))), MarkStatus::written);
  EXPECT_EQ(mark(retry_mark(key(2), 1, 1s, "it failed")), MarkStatus::written);
  EXPECT_EQ(mark(dead_mark(key(3), 10)), MarkStatus::written);
}

TEST_F(DynamoDbOutboxTest, ADeadLetterThatWasMovedBesideARefusedMarkIsKnownAgain) {
  put(1, "a");
  put(2, "a", {{"payload", std::string(408'000, 'x')}});
  const std::vector<RowEdit> marks{dead_mark(key(1), 10), dead_mark(key(2), 10, std::string(kLongestReason, 'y'))};
  const auto marked = locks_->mark(marks, soon());
  ASSERT_TRUE(marked.has_error());
  EXPECT_EQ(marked.error().code(), ErrorCode::invalid) << marked.error().message();
  EXPECT_EQ(mark(dead_mark(key(1), 10)), MarkStatus::written);
}

TEST_F(DynamoDbOutboxTest, WhatWasSentIsMarkedAlsoWhereAMarkBesideItIsLost) {
  put(1, "a");
  put(2, "a");
  model_.inject(
      test::model::Fault::commit_then_lose,
      [](const std::string& operation, const std::string&) { return operation == "UpdateItem"; }, 1'000);
  const std::vector<RowEdit> marks{sent_mark(key(1)), retry_mark(key(2), 1, 1s, "it failed")};
  const auto marked = locks_->mark(marks, soon());
  ASSERT_TRUE(marked.has_error());
  EXPECT_TRUE(ends_session(marked.error().code())) << marked.error().message();
  EXPECT_THAT(ids(all()), ElementsAre(2)) << "and is not sent again";
}

TEST_F(DynamoDbOutboxTest, RowsOfAllBucketsComeInTheOrderOfTheirIds) {
  put(3, "c");
  put(1, "bb");
  put(2, "ccc");
  put(9'007'199'254'740'993, "dddd");
  EXPECT_THAT(ids(all()), ElementsAre(1, 2, 3, 9'007'199'254'740'993));
  EXPECT_FALSE(more_);
}

// Applications number the rows of each bucket by itself, or by the clock.
TEST_F(DynamoDbOutboxTest, RowsOfOneIdInSeveralBucketsAreSeveralRows) {
  for (std::int64_t id = 1; id <= 25; ++id) {
    for (const char* aggregate : {"dddd", "a", "bb", "ccc"}) {
      put(id, aggregate);
    }
  }
  RowScheduler line({.fetch_limit = 10});
  line.take_buckets(every_bucket_);
  std::set<RowKey> published;
  for (int round = 0; round < 1000 && published.size() < 100; ++round) {
    const SteadyTime now = clock_.steady_now();
    if (const auto order = line.next_read(now); order.kind == ReadOrder::Kind::page) {
      auto page = reader_->fetch(order.request, soon());
      ASSERT_TRUE(page) << page.error().message();
      EXPECT_THAT(line.page_read(order, std::move(*page), now), IsEmpty());
    } else if (order.kind == ReadOrder::Kind::groups) {
      auto rows = reader_->fetch_groups(order.groups, order.request, soon());
      ASSERT_TRUE(rows) << rows.error().message();
      line.groups_read(order, std::move(*rows), now);
    } else {
      clock_.advance(100ms);
    }
    for (const Row& row : line.take(7, 1'000'000)) {
      EXPECT_TRUE(published.insert(row.key()).second) << to_string(row.key());
      EXPECT_EQ(mark(sent_mark({row.id, row.part})), MarkStatus::written) << to_string(row.key());
      line.settled(row.key(), {Fate::Kind::sent}, now);
    }
  }
  EXPECT_EQ(published.size(), 100U) << "each of them was published before it was deleted";
  EXPECT_THAT(ids(all()), IsEmpty());
}

// The other bucket's ids are higher, so that the next page goes on behind those that land meanwhile.
TEST_F(DynamoDbOutboxTest, RowsThatLandBetweenTwoPagesComeInTheOrderOfTheirBucket) {
  for (std::int64_t id = 40; id < 50; ++id) {
    put(id, "a");
  }
  FetchRequest request = all();
  request.limit = 4;
  EXPECT_THAT(ids(request), ElementsAre(40, 41));
  put(30, "bb");
  put(51, "bb");
  std::vector<std::int64_t> found;
  for (request.beyond = RowKey{.id = 41}; more_; request.beyond->id = std::max(request.beyond->id, found.back())) {
    const auto next = ids(request);
    found.insert(found.end(), next.begin(), next.end());
  }
  EXPECT_LT(std::find(found.begin(), found.end(), 30), std::find(found.begin(), found.end(), 51));
  EXPECT_EQ(found.size(), 10U);
}

// Otherwise the rows behind it would go first: nothing would say that it is there.
TEST_F(DynamoDbOutboxTest, ADeadLetterThatIsRedrivenWhileItsBucketIsReadIsSeen) {
  put(1, "bb");
  put(2, "bb");
  ASSERT_EQ(mark(dead_mark({1}, 0)), MarkStatus::written);
  bool redriven = false;
  dynamo::ClientOptions options{{.region = "eu-west-1"}};
  options.observer = [&](const dynamo::CallRecord& call) {
    if (call.operation == "Query" && !std::exchange(redriven, true)) {
      const RowEdit again = edit_of(RowKey{1, 2}, {.action = ChangeAction::redrive}, 10);
      EXPECT_THAT(*desk_->change(std::span(&again, 1), soon()), ElementsAre(ChangeStatus::applied));
    }
  };
  dynamo::Client watched(options, transport_, credentials_, clock_, random_);
  const auto outbox = make_dynamodb_outbox(settings_, watched, clock_, random_);
  reader_ = *outbox->open_reader(soon());
  FetchRequest request = all();
  request.buckets = std::span(every_bucket_).subspan(2, 1);
  filter_.hold_dead = true;
  EXPECT_THAT(ids(request), ElementsAre(1, 1, 2));
  EXPECT_TRUE(redriven);
}

TEST_F(DynamoDbOutboxTest, ARetryWaitsAsLongAsWasSaidWhenTheMachinesClockHasJustStepped) {
  for (const Duration step : {Duration(1h), Duration(-1h)}) {
    test::FakeClock machine;
    test::model::ModelTransport transport(model_, machine);
    dynamo::Client client({{.region = "eu-west-1"}}, transport, credentials_, machine, random_);
    const auto outbox = make_dynamodb_outbox(settings_, client, machine, random_);
    const auto locks = *outbox->open_locks(soon());
    const auto desk = *outbox->open_admin(soon());
    put(1, "a");
    put(2, "bb");
    ASSERT_TRUE(desk->get(key(1), soon()));
    machine.set_wall(machine.wall_now() + step);
    const RowEdit retry = retry_mark({1, key(1).part}, 1, 30s);
    ASSERT_TRUE(locks->mark(std::span(&retry, 1), soon()));
    machine.set_wall(machine.wall_now() + step);
    const RowEdit delay = edit_of(RowKey{2, key(2).part}, {.action = ChangeAction::delay, .after = 30s}, 10);
    ASSERT_TRUE(desk->change(std::span(&delay, 1), soon()));
    for (const std::int64_t id : {1, 2}) {
      const auto row = desk_->get(key(id), soon());
      ASSERT_TRUE(row && row->row.wait) << id;
      EXPECT_LE(*row->row.wait, 32s) << id;
      EXPECT_GE(*row->row.wait, 28s) << id;
    }
  }
}

TEST_F(DynamoDbOutboxTest, OperatorsNameARowByBucketAndId) {
  put(7, "a");
  put(7, "bb");
  const RowEdit removal = edit_of(RowKey{7, 2}, {.action = ChangeAction::remove}, 10);
  EXPECT_THAT(*desk_->change(std::span(&removal, 1), soon()), ElementsAre(ChangeStatus::applied));
  EXPECT_FALSE(desk_->get({7, 2}, soon()));
  EXPECT_EQ(desk_->get({7, 1}, soon())->row.group.id, "a");
  EXPECT_FALSE(desk_->get({7}, soon())) << "which of them nobody can tell";
  EXPECT_EQ(to_string(RowKey{7, 1}), "1/7");
  EXPECT_EQ(row_key_of("1/7"), (RowKey{7, 1}));
  EXPECT_EQ(row_key_of("-7"), RowKey{-7});
  for (const char* text : {"", "/", "1/", "/7", "1/7/2", "-1/7", "x/7"}) {
    EXPECT_FALSE(row_key_of(text)) << text;
  }
  put(7, "bb");
  std::vector<std::string> listed;
  ListRows request{.limit = 1};
  for (auto page = desk_->list(request, soon()); page && !page->empty(); page = desk_->list(request, soon())) {
    listed.push_back(to_string(page->front().row.key()));
    request.beyond = page->front().row.key();
  }
  EXPECT_THAT(listed, ElementsAre("1/7", "2/7"));
}

TEST_F(DynamoDbOutboxTest, ARowIsReadByTheNamesOfItsColumns) {
  put(7, "o-1",
      {{"tenant", "acme"},
       {"created_at", "2026-01-02T03:04:00Z"},
       {"payload", dynamo::Map{{"n", AttributeValue::number(12)}}}});
  const auto page = reader_->fetch(all(), soon());
  ASSERT_TRUE(page);
  ASSERT_EQ(page->rows.size(), 1U);
  const Row& row = page->rows[0];
  EXPECT_EQ(row.group, (Group{"rn::nats:::orders", "o-1"}));
  EXPECT_EQ(row.event, "Placed");
  EXPECT_EQ(row.payload, R"({"n":12})");
  EXPECT_EQ(row.attributes.at("tenant"), "acme");
  EXPECT_EQ(row.bucket, 3U);
  EXPECT_EQ(row.created_at, parse_timestamp("2026-01-02T03:04:00Z"));
  EXPECT_EQ(row.unreadable, "");
}

TEST_F(DynamoDbOutboxTest, APayloadThatIsNullIsATombstone) {
  put(1, "a", {{"payload", dynamo::Null{}}});
  const auto page = reader_->fetch(all(), soon());
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->rows.at(0).tombstone);
  EXPECT_EQ(page->rows.at(0).unreadable, "");
}

TEST_F(DynamoDbOutboxTest, PagesLeadThroughEverythingOnce) {
  std::vector<std::int64_t> wanted;
  for (std::int64_t id = 1; id <= 200; ++id) {
    put(id, std::string(1 + (id * 7) % 5, 'g'));
    wanted.push_back(id);
  }
  FetchRequest request = all();
  request.limit = 17;
  std::vector<std::int64_t> found;
  do {
    const auto page = ids(request);
    ASSERT_LE(page.size(), 17U);
    found.insert(found.end(), page.begin(), page.end());
    request.beyond = RowKey{.id = found.back()};
  } while (more_);
  EXPECT_EQ(found, wanted);
}

TEST_F(DynamoDbOutboxTest, ThoseThatAreNotWantedDoNotStandInTheWay) {
  for (std::int64_t id = 1; id <= 60; ++id) {
    put(id, "g", {{"aggregate_type", "rn::nats:::noise"}});
  }
  put(61, "h");
  put(62, "i", {{"event", "Ignored"}});
  filter_.deny_types = {"noise"};
  filter_.skip_events = {"Ignored"};
  FetchRequest request = all();
  request.limit = 10;
  EXPECT_THAT(ids(request), ElementsAre(61));
  const std::vector<Group> held{{"rn::nats:::orders", "h"}};
  request.without = held;
  EXPECT_THAT(ids(request), IsEmpty());
}

// As in SQL: no other type has a resource.
TEST_F(DynamoDbOutboxTest, AListNamesAWholeTypeOrTheResourceOfAnArn) {
  filter_.types = {"orders"};
  put(1, "a", {{"aggregate_type", "arn:aws:sns:eu-west-1:1:orders"}});
  put(2, "a", {{"aggregate_type", "rn:a:b:c:d:orders"}});
  put(3, "a", {{"aggregate_type", "orders"}});
  put(4, "a", {{"aggregate_type", "urn:a:b:c:d:orders"}});
  put(5, "a", {{"aggregate_type", "arn:a:b:c:orders"}});
  EXPECT_THAT(ids(all()), ElementsAre(1, 2, 3));
}

TEST_F(DynamoDbOutboxTest, ARowThatWasSentIsDeletedAndStaysGone) {
  put(1, "a");
  put(2, "a");
  EXPECT_THAT(ids(all()), ElementsAre(1, 2));
  EXPECT_EQ(mark(sent_mark({1})), MarkStatus::written);
  EXPECT_EQ(mark(sent_mark({1})), MarkStatus::gone);
  EXPECT_THAT(ids(all()), ElementsAre(2));
}

TEST_F(DynamoDbOutboxTest, ARowThatNobodyReadBeforeIsMarkedAllTheSame) {
  put(1, "a");
  EXPECT_EQ(mark(sent_mark({1})), MarkStatus::written);
  EXPECT_EQ(mark(sent_mark({5})), MarkStatus::gone);
}

TEST_F(DynamoDbOutboxTest, AFailureIsWrittenWhereNobodyChangedTheRow) {
  put(1, "a");
  RowEdit first = retry_mark({1}, 1, 40s, "no");
  first.only_if = 0;
  EXPECT_EQ(mark(first), MarkStatus::written);
  EXPECT_EQ(mark(first), MarkStatus::gone);
  const auto stored = desk_->get(key(1), soon());
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->row.retries, 1U);
  EXPECT_EQ(stored->row.wait, 40s);
  EXPECT_EQ(stored->last_error, "no");
  clock_.advance(41s);
  EXPECT_EQ(desk_->get(key(1), soon())->row.wait, std::nullopt);
}

TEST_F(DynamoDbOutboxTest, ADeadLetterIsNotReadWithTheOthersAndComesBackFresh) {
  put(1, "a");
  put(2, "a");
  EXPECT_EQ(mark(dead_mark({1}, 10, "no")), MarkStatus::written);
  EXPECT_THAT(ids(all()), ElementsAre(2));
  filter_.hold_dead = true;
  EXPECT_THAT(ids(all()), ElementsAre(1, 2));
  filter_.hold_dead = false;
  const auto counts = desk_->count({.sent = true, .details = true}, soon());
  ASSERT_TRUE(counts);
  EXPECT_EQ(counts->ready, 1U);
  EXPECT_EQ(counts->dead, 1U);
  EXPECT_EQ(counts->by_error.at("no"), 1U);
  const auto apart = desk_->count({.jobs = {{.types = {"bills"}}, {.skip_events = {"Placed"}}}}, soon());
  ASSERT_TRUE(apart);
  EXPECT_EQ(apart->ready, 0U);
  EXPECT_EQ(apart->excluded, 1U);
  EXPECT_EQ(apart->dead, 1U);
  EXPECT_FALSE(apart->oldest_id);
  const auto dead = desk_->list({.half = Half::dlq}, soon());
  ASSERT_TRUE(dead);
  ASSERT_EQ(dead->size(), 1U);
  EXPECT_EQ(dead->at(0).row.retries, 10U);
  const RowEdit redrive = edit_of(RowKey{1, key(1).part}, {.action = ChangeAction::redrive}, 10);
  EXPECT_THAT(*desk_->change(std::span(&redrive, 1), soon()), ElementsAre(ChangeStatus::applied));
  EXPECT_THAT(*desk_->change(std::span(&redrive, 1), soon()), ElementsAre(ChangeStatus::conflict));
  EXPECT_EQ(desk_->get(key(1), soon())->row.retries, 0U);
  EXPECT_THAT(ids(all()), ElementsAre(1, 2));
}

TEST_F(DynamoDbOutboxTest, AMoveThatDidNotCommitLeavesTheRowWhereItWas) {
  put(1, "a");
  EXPECT_THAT(ids(all()), ElementsAre(1));
  model_.inject_part(test::model::PartFault::conflict, 100);
  EXPECT_EQ(mark(dead_mark({1}, 10)), MarkStatus::locked);
  model_.clear_faults();
  EXPECT_THAT(ids(all()), ElementsAre(1));
}

TEST_F(DynamoDbOutboxTest, AMarkWhoseAnswerWasLostMayBeRepeated) {
  put(1, "a");
  put(2, "a");
  model_.inject(test::model::Fault::commit_then_lose,
                [](const std::string& operation, const std::string&) { return operation == "BatchExecuteStatement"; });
  const std::vector<RowEdit> marks{sent_mark({1, key(1).part}), sent_mark({2, key(2).part})};
  const auto lost = locks_->mark(marks, soon());
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), ErrorCode::unknown_outcome);
  EXPECT_THAT(*locks_->mark(marks, soon()), ElementsAre(MarkStatus::gone, MarkStatus::gone));
  EXPECT_THAT(ids(all()), IsEmpty());
}

TEST_F(DynamoDbOutboxTest, AThrottledMarkIsWorthAnotherTry) {
  put(1, "a");
  EXPECT_THAT(ids(all()), ElementsAre(1));
  model_.inject_part(test::model::PartFault::throttle, 100);
  EXPECT_EQ(mark(sent_mark({1})), MarkStatus::throttled);
  model_.clear_faults();
  EXPECT_EQ(mark(sent_mark({1})), MarkStatus::written);
  put(2, "a");
  model_.inject(
      test::model::Fault::throttle,
      [](const std::string& operation, const std::string&) { return operation == "TransactWriteItems"; }, 100);
  EXPECT_EQ(mark(dead_mark({2}, 10)), MarkStatus::throttled);
  model_.clear_faults();
  EXPECT_EQ(mark(dead_mark({2}, 10)), MarkStatus::written);
}

// Whatever it was, a transaction of the application was said to have the row.
TEST_F(DynamoDbOutboxTest, WhyAMarkWaitsIsSaid) {
  put(1, "a");
  const auto source = *make_outbox_source({.settings = settings_}, {}, *outbox_, clock_, random_);
  const Completion dead{.receipt = {.id = to_string(key(1))}, .action = CompletionAction::dead_letter};
  const auto settled = [&] { return source->settle(std::span(&dead, 1), soon()).front(); };
  model_.inject(
      test::model::Fault::throttle,
      [](const std::string& operation, const std::string&) { return operation == "TransactWriteItems"; }, 100);
  const SettleResult throttled = settled();
  EXPECT_EQ(throttled.error.code(), ErrorCode::throttled) << throttled.error.message();
  model_.clear_faults();
  model_.inject_part(test::model::PartFault::conflict, 100);
  EXPECT_EQ(settled().error.message(), "a transaction of the application has the row");
  model_.clear_faults();
  EXPECT_EQ(settled().status, SettleStatus::applied);
  EXPECT_THAT(ids(all()), IsEmpty());
}

TEST_F(DynamoDbOutboxTest, TheFirstRowsOfAGroupAreFoundAgain) {
  for (std::int64_t id = 1; id <= 9; ++id) {
    put(id, id % 2 == 0 ? "even" : "odd");
  }
  EXPECT_EQ(ids(all()).size(), 9U);
  const std::vector<Group> groups{{"rn::nats:::orders", "odd"}, {"rn::nats:::orders", "none"}};
  FetchRequest three = all();
  three.limit = 3;
  const auto found = reader_->fetch_groups(groups, three, soon());
  ASSERT_TRUE(found);
  ASSERT_EQ(found->at(0).rows.size(), 3U);
  EXPECT_EQ(found->at(0).rows[0].id, 1);
  EXPECT_EQ(found->at(0).rows[2].id, 5);
  EXPECT_TRUE(found->at(0).more);
  EXPECT_THAT(found->at(1).rows, IsEmpty());
  EXPECT_FALSE(found->at(1).more);
}

TEST_F(DynamoDbOutboxTest, OperatorsDelayGiveUpAndDiscard) {
  put(1, "a");
  put(2, "b");
  put(3, "c");
  const std::vector<RowEdit> changes{
      edit_of(key(1), {.action = ChangeAction::delay, .after = 60s}, 10),
      edit_of(key(2), {.action = ChangeAction::dead_letter, .failure = {.error = "by hand"}}, 10),
      edit_of(key(3), {.action = ChangeAction::remove}, 10), edit_of(key(4), {.action = ChangeAction::remove}, 10)};
  EXPECT_THAT(*desk_->change(changes, soon()), ElementsAre(ChangeStatus::applied, ChangeStatus::applied,
                                                           ChangeStatus::applied, ChangeStatus::not_found));
  EXPECT_EQ(desk_->get(key(1), soon())->row.wait, 60s);
  EXPECT_TRUE(desk_->get(key(2), soon())->row.dead);
  EXPECT_EQ(desk_->get(key(2), soon())->row.retries, 10U);
  EXPECT_EQ(desk_->get(key(3), soon()).error().code(), ErrorCode::not_found);
  const RowEdit reset = edit_of(RowKey{1, key(1).part}, {.action = ChangeAction::reset}, 10);
  EXPECT_THAT(*desk_->change(std::span(&reset, 1), soon()), ElementsAre(ChangeStatus::applied));
  EXPECT_EQ(desk_->get(key(1), soon())->row.wait, std::nullopt);
}

TEST_F(DynamoDbOutboxTest, ListsFromEitherEnd) {
  for (std::int64_t id = 1; id <= 6; ++id) {
    put(id, std::string(static_cast<std::size_t>(id), 'x'));
  }
  const auto newest = desk_->list({.newest_first = true, .limit = 2}, soon());
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->at(0).row.id, 6);
  const auto next = desk_->list({.beyond = key(5), .newest_first = true, .limit = 2}, soon());
  EXPECT_EQ(next->at(0).row.id, 4);
  EXPECT_EQ(desk_->list({.beyond = key(4), .limit = 9}, soon())->size(), 2U);
}

// DynamoDB ends a page at 1 MiB.
TEST_F(DynamoDbOutboxTest, AListingLeavesNothingOutWhereRowsAreLarge) {
  for (std::int64_t id = 1; id <= 8; ++id) {
    put(id, "a", {{"payload", std::string(200UL * 1024, 'x')}});
  }
  put(100, "bb");
  for (const bool newest_first : {false, true}) {
    std::set<std::int64_t> listed;
    for (const StoredRow& stored : *desk_->list({.newest_first = newest_first, .limit = 20}, soon())) {
      listed.insert(stored.row.id);
    }
    EXPECT_THAT(listed, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8, 100));
  }
  EXPECT_EQ(desk_->list({.limit = 8}, soon())->back().row.id, 8) << "not yet the other bucket's";
  EXPECT_EQ(desk_->list({.limit = 2}, soon())->back().row.id, 2);
}

TEST_F(DynamoDbOutboxTest, WhatTheTableLacksIsNamed) {
  EXPECT_THAT(*desk_->inspect(soon()), IsEmpty());
  settings_.config.table = "nowhere";
  const auto nowhere = make_dynamodb_outbox(settings_, client_, clock_, random_);
  const auto findings = (*nowhere->open_admin(soon()))->inspect(soon());
  ASSERT_TRUE(findings);
  ASSERT_EQ(findings->size(), 1U);
  EXPECT_TRUE(findings->at(0).fatal);
  EXPECT_EQ(findings->at(0).code, ErrorCode::queue_missing);
  EXPECT_THAT(findings->at(0).text, ::testing::HasSubstr("'nowhere' does not exist"));
  EXPECT_EQ((*nowhere->open_reader(soon()))->fetch(all(), soon()).error().code(), ErrorCode::queue_missing);

  dynamo::CreateTableRequest request;
  request.name = "other";
  request.attribute_types = {{"id", "S"}};
  request.hash_key = "id";
  ASSERT_TRUE(client_.create_table(request, soon()));
  settings_.config.table = "other";
  const auto other = make_dynamodb_outbox(settings_, client_, clock_, random_);
  EXPECT_EQ((*other->open_admin(soon()))->inspect(soon())->size(), 2U);
}

/// A second instance beside the first one.
class DynamoDbLocksTest : public DynamoDbOutboxTest {
 protected:
  void SetUp() override {
    DynamoDbOutboxTest::SetUp();
    second_ = *outbox_->open_locks(soon());
  }
  std::uint32_t join(LockSession& session, std::uint32_t buckets = kBuckets) {
    const auto members = session.join({"orders/relay", buckets}, soon());
    EXPECT_TRUE(members) << members.error().message();
    return members->count;
  }
  std::vector<std::uint32_t> lock(LockSession& session, const std::vector<std::uint32_t>& buckets) {
    const auto got = session.lock(buckets, soon());
    EXPECT_TRUE(got) << got.error().message();
    return got ? *got : std::vector<std::uint32_t>();
  }
  std::unique_ptr<LockSession> second_;
};

TEST_F(DynamoDbLocksTest, MembersCountEachOther) {
  EXPECT_EQ(join(*locks_), 1U);
  EXPECT_EQ(join(*second_), 2U);
  EXPECT_EQ(locks_->beat(soon())->count, 2U);
  second_.reset();
  EXPECT_EQ(locks_->beat(soon())->count, 1U) << "who goes tells so";
}

TEST_F(DynamoDbLocksTest, AnotherNumberOfBucketsIsSeen) {
  join(*locks_);
  const auto members = second_->join({"orders/relay", 16}, soon());
  ASSERT_TRUE(members);
  EXPECT_EQ(members->other_buckets, kBuckets);
}

TEST_F(DynamoDbLocksTest, AMemberWhoseLeaseIsBeyondAllSpansIsAMember) {
  dynamo::ItemWrite beat;
  beat.table = settings_.config.table;
  beat.item = key_of(settings_.config.columns, "member/orders/relay", 7);
  beat.item.emplace("counter", AttributeValue::number(1));
  beat.item.emplace("lease_ms", AttributeValue::number(std::numeric_limits<std::int64_t>::max()));
  beat.item.emplace("buckets", AttributeValue::number(kBuckets));
  ASSERT_TRUE(client_.write(beat, soon()));
  EXPECT_EQ(join(*locks_), 2U);
}

TEST_F(DynamoDbLocksTest, ABucketIsOneMembersAlone) {
  join(*locks_);
  join(*second_);
  EXPECT_THAT(lock(*locks_, {0, 1, 2}), UnorderedElementsAre(0, 1, 2));
  EXPECT_THAT(lock(*second_, {1, 2, 3}), UnorderedElementsAre(3));
  const std::vector<std::uint32_t> given{1};
  ASSERT_TRUE(locks_->unlock(given, soon()));
  EXPECT_THAT(lock(*second_, {1, 2}), UnorderedElementsAre(1));
}

TEST_F(DynamoDbLocksTest, SpacesAreApart) {
  join(*locks_);
  ASSERT_TRUE(second_->join({"orders/other", kBuckets}, soon()));
  EXPECT_EQ(lock(*locks_, {0}).size(), 1U);
  EXPECT_EQ(lock(*second_, {0}).size(), 1U);
}

TEST_F(DynamoDbLocksTest, ADeadMembersBucketsGoToOthersAfterItsLease) {
  join(*locks_);
  EXPECT_EQ(lock(*locks_, {0, 1}).size(), 2U);
  join(*second_);
  clock_.advance(10s);
  ASSERT_TRUE(second_->beat(soon()));
  EXPECT_THAT(lock(*second_, {0, 1}), IsEmpty());
  clock_.advance(5s);
  ASSERT_TRUE(second_->beat(soon()));
  EXPECT_THAT(lock(*second_, {0, 1}), UnorderedElementsAre(0, 1));
  put(1, "a");
  const RowEdit sent = sent_mark({1, key(1).part});
  const auto late = locks_->mark(std::span(&sent, 1), soon());
  ASSERT_FALSE(late) << "whoever lost his locks cannot mark";
  EXPECT_EQ(late.error().code(), ErrorCode::unavailable);
  EXPECT_EQ(locks_->beat(soon()).error().code(), ErrorCode::unavailable);
}

TEST_F(DynamoDbLocksTest, WhatAMemberHadThatEndsInPeaceIsFreeAtOnce) {
  join(*locks_);
  EXPECT_EQ(lock(*locks_, {0, 1}).size(), 2U);
  locks_.reset();
  EXPECT_EQ(join(*second_), 1U);
  EXPECT_THAT(lock(*second_, {0, 1}), UnorderedElementsAre(0, 1));
}

TEST_F(DynamoDbLocksTest, HeartbeatsOfTheDeadAreTakenAway) {
  join(*locks_);
  join(*second_);
  for (int beat = 0; beat < 40; ++beat) {
    clock_.advance(10s);
    ASSERT_TRUE(second_->beat(soon()));
  }
  dynamo::QueryRequest query;
  query.table = settings_.config.table;
  query.key_condition = "#b = :b";
  query.names = {{"#b", "bucket"}};
  query.values = {{":b", "member/orders/relay"}};
  query.consistent = true;
  EXPECT_EQ(client_.query(query, soon())->items.size(), 1U);
}

// Counted: what a row costs from its commit to its end.
TEST_F(DynamoDbOutboxTest, ARowCostsOneWriteUnitToPublish) {
  double writes = 0;
  dynamo::ClientOptions options{{.region = "eu-west-1"}};
  options.observer = [&writes](const dynamo::CallRecord& call) { writes += call.capacity.write; };
  dynamo::Client counted(options, transport_, credentials_, clock_, random_);
  const auto outbox = make_dynamodb_outbox(settings_, counted, clock_, random_);
  const auto locks = *outbox->open_locks(soon());
  std::vector<RowEdit> marks;
  for (std::int64_t id = 1; id <= 100; ++id) {
    put(id, "g");
    marks.push_back(sent_mark({id, key(id).part}));
  }
  ASSERT_TRUE(locks->mark(marks, soon()));
  EXPECT_EQ(writes, 100.0);
}

// Counted, and nothing is lost by it: 110 units a second where each poll reads all that waits.
TEST_F(DynamoDbOutboxTest, WhatADeadLetterHoldsIsNotReadWithEachPoll) {
  double reads = 0;
  dynamo::ClientOptions options{{.region = "eu-west-1"}};
  options.observer = [&reads](const dynamo::CallRecord& call) { reads += call.capacity.read; };
  dynamo::Client counted(options, transport_, credentials_, clock_, random_);
  const auto outbox = make_dynamodb_outbox(settings_, counted, clock_, random_);
  const auto reader = *outbox->open_reader(soon());
  for (std::int64_t id = 10; id <= 18'000; id += 10) {
    put(id, "held", {{"payload", std::string(900, 'x')}});
  }
  ASSERT_EQ(mark(dead_mark({10}, 0)), MarkStatus::written);
  RowScheduler line({.filter = {.hold_dead = true}});
  line.take_buckets(every_bucket_);
  std::vector<std::int64_t> published;
  const auto run = [&](Duration time) {
    const SteadyTime end = clock_.steady_now() + time;
    for (SteadyTime now = clock_.steady_now(); now < end; now = clock_.steady_now()) {
      const auto order = line.next_read(now);
      if (order.kind == ReadOrder::Kind::page) {
        line.page_read(order, *reader->fetch(order.request, soon()), now);
      } else if (order.kind == ReadOrder::Kind::groups) {
        line.groups_read(order, *reader->fetch_groups(order.groups, order.request, soon()), now);
      } else {
        clock_.advance(100ms);
      }
      for (const Row& row : line.take(7, 1'000'000)) {
        published.push_back(row.id);
        EXPECT_EQ(mark(sent_mark({row.id, row.part})), MarkStatus::written);
        line.settled(row.key(), {Fate::Kind::sent}, now);
      }
    }
  };
  run(2min);
  reads = 0;
  run(10min);
  EXPECT_LT(reads, 12.0 * 600);
  put(9'003, "late");
  put(18'003, "news");
  run(6s);
  EXPECT_THAT(published, ElementsAre(18'003));
  run(55s);
  EXPECT_THAT(published, ElementsAre(18'003, 9'003));
  const RowEdit again = edit_of(RowKey{10, 0}, {.action = ChangeAction::redrive}, 10);
  EXPECT_THAT(*desk_->change(std::span(&again, 1), soon()), ElementsAre(ChangeStatus::applied));
  run(6min);
  ASSERT_EQ(published.size(), 1802U);
  EXPECT_TRUE(std::is_sorted(published.begin() + 2, published.end()));
}

}  // namespace
}  // namespace sluice::queue::outbox
