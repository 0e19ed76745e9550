#include "host/queue/queues.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "dynamo/item_reading.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/leased/leased_queue.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "host/stores/leased/leased_record.hpp"
#include "host/stores/leased/ownership_items.hpp"
#include "host/stores/leased/table_items.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/model.hpp"
#include "tests/support/dynamodb_model/transport.hpp"
#include "tests/support/fake_clock.hpp"

// Sending to leased queues and looking at them, on the model of DynamoDB: what it costs, in which order it is shown,
// and what is said of a table that is not as it should be.
namespace sluice::queue::leased {
namespace {

using dynamo::AttributeValue;
using dynamo::Item;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""h;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr const char* kTable = "queues";
constexpr std::uint32_t kBeyond = 11;  // the number of shards

class LeasedQueuesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    dynamodb::TableSpec spec;
    spec.table = kTable;
    spec.layout = dynamodb::kLeasedLayout;
    ASSERT_TRUE(dynamodb::create_queue_table(client_, spec, clock_, soon()));
    LeasedOptions options;
    for (const char* queue : {"orders", "invoices"}) {
      options.queues[queue] = {.table = kTable, .shards = 4};
    }
    queues_ = make_leased_queues(options, client_, clock_, random_);
    desk_ = std::make_unique<test::Desk>(*queues_);
  }

  Deadline soon() { return Deadline::after(clock_, 60s); }

  std::string send(NewMessage message) {
    const auto sent = desk_->send("orders", std::span(&message, 1), soon()).front();
    EXPECT_EQ(sent.status, SendStatus::sent) << sent.error.message();
    clock_.advance(1ms);
    return sent.id;
  }
  std::vector<std::string> listed(ListRequest request) {
    std::vector<std::string> ids;
    for (int pages = 0; pages < 100; ++pages) {
      const auto page = desk_->list("orders", request, soon());
      if (!page) {
        ADD_FAILURE() << page.error().message();
        return ids;
      }
      EXPECT_LE(page->messages.size(), request.limit);
      for (const auto& record : page->messages) {
        ids.push_back(record.message.id);
      }
      request.cursor = page->next;
      if (request.cursor.empty()) {
        return ids;
      }
    }
    ADD_FAILURE() << "the list does not end";
    return ids;
  }
  void put(Item item) { ASSERT_TRUE(client_.write({.table = kTable, .item = std::move(item)}, soon())); }
  Item at(const std::string& partition, const std::string& sort) { return Place{partition, sort}.key(); }
  /// All but the queue's name and number of shards, which whoever sends first has written down.
  std::vector<Item> stored() {
    std::vector<Item> items = model_.items(kTable);
    std::erase_if(items, [](const Item& item) {
      const Place place = Place::of(item);
      return place.sort == kShardsKey || place.partition == kQueues;
    });
    return items;
  }

  Item heartbeat(const std::string& host, std::uint64_t ready, std::int64_t shards, Duration age = 1s) {
    Item item = at(std::string(kHosts), host);
    item.emplace(attribute::kCounter, AttributeValue::number(7));
    item.emplace(attribute::kLease, AttributeValue::number(10'000));
    item.emplace(attribute::kUpdated, stored_time(clock_.wall_now() - age));
    item.emplace(attribute::kFigures,
                 dynamo::Map{{"orders", dynamo::Map{{"r", AttributeValue::number(static_cast<long long>(ready))},
                                                    {"d", AttributeValue::number(2)},
                                                    {"f", AttributeValue::number(1)},
                                                    {"t", stored_time(clock_.wall_now() - 60s)},
                                                    {"u", AttributeValue::number(0)},
                                                    {"s", AttributeValue::number(shards)},
                                                    {"n", AttributeValue::number(4)}}}});
    return item;
  }
  table::ExaminedItems examined() {
    const auto items = examine_items(client_, kTable, 100, clock_.wall_now(), soon());
    EXPECT_TRUE(items) << items.error().message();
    return items ? *items : table::ExaminedItems{};
  }
  /// A dead letter that holds its group, with its alias, in a shard beyond the number; where what holds the group lies.
  Place put_held_letter() {
    const std::string before = sort_key_of(Priority::normal, clock_.wall_now() - 60s, random_);
    Item letter =
        at(partition_of("orders", Half::dlq, kBeyond), sort_key_of(Priority::normal, clock_.wall_now(), random_));
    letter.emplace(attribute::kBody, "x");
    letter.emplace(attribute::kGroup, "g");
    letter.emplace(attribute::kOwnId, "A-1");
    letter.emplace(attribute::kHold, before);
    put(letter);
    const Place lies = Place::of(letter);
    Item alias = alias_place("orders", "A-1").key();
    alias.emplace(attribute::kTarget, lies.partition);
    alias.emplace(attribute::kTargetSort, lies.sort);
    put(alias);
    Item hold = hold_place("orders", kBeyond, "A-1").key();
    hold.emplace(attribute::kOwnId, "A-1");
    hold.emplace(attribute::kGroup, "g");
    put(hold);
    return Place::of(hold);
  }
  double write_units() { return model_.counters().write_units; }

  test::FakeClock clock_;
  test::model::Model model_{clock_, 1};
  test::model::ModelTransport transport_{model_, clock_};
  test::model::FixedCredentials credentials_;
  SeededRandom random_{7};
  dynamo::Client client_{{{.region = "eu-west-1"}}, transport_, credentials_, clock_, random_};
  std::unique_ptr<Queues> queues_;
  std::unique_ptr<test::Desk> desk_;
};

// A table did not know its queues: nobody saw those that no file names.
TEST_F(LeasedQueuesTest, TheTableForAllListsItsQueuesForTwoWritesOnceEach) {
  LeasedOptions options;
  options.queues["orders"] = {.table = kTable};
  const auto open = [&] { return make_leased_queues(options, client_, clock_, random_); };
  const auto send_to = [&](const std::string& queue) {
    const NewMessage message{.body = "x"};
    const double units = write_units();
    const auto queues = open();
    EXPECT_EQ((*queues->open_sender(queue))->send({&message, 1}, soon()).front().status, SendStatus::sent);
    return write_units() - units;
  };
  const auto listed = [&] { return *open()->made_by_messages(soon()); };
  EXPECT_EQ(open()->made_by_messages(soon()).error().code(), ErrorCode::queue_missing) << "there is no such table";
  dynamodb::TableSpec spec;
  spec.table = std::string(kDefaultTableName);
  spec.layout = dynamodb::kLeasedLayout;
  ASSERT_TRUE(dynamodb::create_queue_table(client_, spec, clock_, soon()));
  EXPECT_EQ(send_to("mails"), 3.0);
  EXPECT_EQ(send_to("mails"), 1.0);
  EXPECT_EQ(send_to("bills"), 3.0);
  EXPECT_EQ(send_to("orders"), 3.0) << "in the table that its file names";
  const auto before = model_.counters().requests["Query"];
  EXPECT_THAT(listed(), ElementsAre("bills", "mails"));
  EXPECT_EQ(model_.counters().requests["Query"] - before, 1U);
  options.queues["mails"] = {.table = kTable};
  EXPECT_THAT(listed(), ElementsAre("bills")) << "its file says that the other one lies elsewhere";
  const auto examination = examine_items(client_, spec.table, 100, clock_.wall_now(), soon());
  ASSERT_TRUE(examination);
  EXPECT_EQ(examination->outside, 0U);
}

TEST_F(LeasedQueuesTest, WhatIdsAndKeysLookLikeMakesNoItemOdd) {
  for (const char* text : {"order#7", "urgent!3", "ann@", "ann@dlq", "50%1"}) {
    send({.id = text, .body = "x"});
    send({.id = {}, .body = "x", .dedup_id = text});
    NewMessage unique{.id = {}, .body = "x"};
    unique.unique_key = text;
    send(std::move(unique));
  }
  const auto found = examined();
  EXPECT_EQ(found.outside, 0U) << found.named();
  EXPECT_THAT(found.findings, IsEmpty());
}

TEST_F(LeasedQueuesTest, AMadeMessageCostsOneWriteUnitAndItsShareOfABatch) {
  send({.id = {}, .body = "the clock and the number of shards are known now"});
  const double units = write_units();
  const auto before = model_.counters().requests;
  const std::vector<NewMessage> batch(50, NewMessage{.id = {}, .body = std::string(960, 'x')});
  for (const auto& sent : desk_->send("orders", batch, soon())) {
    EXPECT_EQ(sent.status, SendStatus::sent) << sent.error.message();
  }
  EXPECT_EQ(write_units() - units, 50.0);
  const auto after = model_.counters().requests;
  EXPECT_EQ(after.at("BatchExecuteStatement") - before.at("BatchExecuteStatement"), 2U);
}

TEST_F(LeasedQueuesTest, LargeRecordsAreReplacedInSeveralTransactions) {
  std::vector<StoredMessage> records(12);
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].message = {.id = "A-" + std::to_string(i), .body = std::string(390'000, 'x')};
    records[i].message.sent_at = records[i].created_at = records[i].updated_at = clock_.wall_now();
  }
  for (const PutMode mode : {PutMode::insert, PutMode::replace}) {
    for (const PutResult& result : desk_->put("orders", records, mode, soon())) {
      EXPECT_EQ(result.status, PutStatus::written) << result.error.message();
    }
  }
  EXPECT_THAT(listed({.half = Half::standard, .limit = 100}), SizeIs(12));
}

TEST_F(LeasedQueuesTest, AnOwnIdCostsItsAliasToo) {
  send({.id = "A-1", .body = "x"});
  const double units = write_units();
  send({.id = "A-2", .body = "x"});
  EXPECT_EQ(write_units() - units, 4.0);
}

/// Messages under ids that whoever repeats the sending makes again.
std::vector<NewMessage> numbered(Sender& sender, const std::string& moment, int count) {
  std::vector<NewMessage> messages;
  for (int number = 1; number <= count; ++number) {
    NewMessage message{.id = {}, .body = std::to_string(number), .group = number % 5 == 0 ? "ann" : ""};
    message.delay = number % 7 == 0 ? Duration(2s) : Duration::zero();
    message.id = sender.id_at(moment, "5f3c9a1b-e07d-8224-8abc", static_cast<std::uint64_t>(number), message).value();
    messages.push_back(std::move(message));
  }
  return messages;
}

TEST_F(LeasedQueuesTest, UnderAFreshIdAMessageCostsOneWriteUnitAndARepetitionFindsIt) {
  const auto sender = queues_->open_sender("orders");
  ASSERT_TRUE(sender);
  const auto moment = (*sender)->moment(soon());
  ASSERT_TRUE(moment) << moment.error().message();
  auto messages = numbered(**sender, *moment, 50);
  const double units = write_units();
  const auto sent = (*sender)->send_fresh(messages, soon());
  EXPECT_EQ(write_units() - units, 50.0);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    EXPECT_EQ(sent[i].status, SendStatus::sent) << sent[i].error.message();
    EXPECT_EQ(sent[i].id, messages[i].id);
    const auto record = desk_->get("orders", messages[i].id, soon());
    ASSERT_TRUE(record) << messages[i].id;
    EXPECT_EQ(record->message.body, messages[i].body);
    EXPECT_EQ(record->message.group, messages[i].group);
  }
  clock_.advance(1h);
  messages = numbered(**sender, *moment, 50);
  for (const auto& again : (*sender)->send(messages, soon())) {
    EXPECT_EQ(again.status, SendStatus::duplicate_id) << "ids of one moment are the same, however late they are made";
  }
  EXPECT_THAT(listed({.half = Half::standard, .limit = 100}), SizeIs(50));
}

TEST_F(LeasedQueuesTest, ARepetitionFindsWhatHasMovedMeanwhileAndPutsNothingBeforeWhatIsRead) {
  const auto sender = queues_->open_sender("orders");
  const std::string moment = *(*sender)->moment(soon());
  auto messages = numbered(**sender, moment, 3);
  const std::vector<NewMessage> first(messages.begin(), messages.begin() + 1);
  ASSERT_EQ((*sender)->send_fresh(first, soon()).front().status, SendStatus::sent);
  const Change move{
      .id = messages[0].id, .action = ChangeAction::dead_letter, .failure = {.error = "no", .handler = "h"}};
  ASSERT_EQ(desk_->change("orders", std::span(&move, 1), soon()).front().status, ChangeStatus::applied);
  clock_.advance(1h);
  const auto again = (*sender)->send(messages, soon());
  EXPECT_EQ(again[0].status, SendStatus::duplicate_id) << "it lies in the DLQ by now";
  EXPECT_EQ(again[1].status, SendStatus::sent);
  EXPECT_EQ(again[1].id, messages[1].id);
  const auto record = desk_->get("orders", messages[1].id, soon());
  ASSERT_TRUE(record) << record.error().message();
  EXPECT_EQ(millis_of(record->message.sent_at), millis_of(clock_.wall_now()))
      << "an owner has read past the moment that its id is made of";
}

TEST_F(LeasedQueuesTest, FreshIdsKeepTheOrderOfTheirNumbers) {
  const auto sender = queues_->open_sender("orders");
  const std::string moment = *(*sender)->moment(soon());
  NewMessage message{.id = {}, .body = "x", .group = "one"};
  std::string before;
  for (std::uint64_t number = 1; number < 3000; ++number) {
    const std::string id = (*sender)->id_at(moment, "5f3c9a1b-e07d-8224-8abc", number, message).value();
    EXPECT_LT(before, id);
    EXPECT_EQ(before.empty() ? id.substr(27) : before.substr(27), id.substr(27)) << "a group lies in one shard";
    before = id;
  }
  for (const char* wrong : {"", "0", "01JD8A3M5Q0", "01JD8A3M5Q0U", "01JD8A3M5Q033"}) {
    EXPECT_FALSE((*sender)->id_at(wrong, "5f3c9a1b-e07d-8224-8abc", 1, message)) << wrong;
  }
}

TEST_F(LeasedQueuesTest, AnIdIsFreeAgainOnceItsMessageIsGoneThoughItsAliasIsThere) {
  send({.id = "A-1", .body = "first"});
  const Item alias = client_.get_item({.table = kTable, .key = alias_place("orders", "A-1").key()}, soon())->item;
  ASSERT_THAT(alias, Not(IsEmpty()));
  ASSERT_TRUE(desk_->remove("orders", "A-1", soon()));
  EXPECT_THAT(stored(), IsEmpty()) << "its alias goes with it";
  put(alias);  // whoever removed the message died before the alias
  EXPECT_FALSE(desk_->get("orders", "A-1", soon()));
  send({.id = "A-1", .body = "second"});
  EXPECT_EQ(desk_->get("orders", "A-1", soon())->message.body, "second");
  NewMessage again{.id = "A-1", .body = "third"};
  EXPECT_EQ(desk_->send("orders", std::span(&again, 1), soon()).front().status, SendStatus::duplicate_id);
}

TEST_F(LeasedQueuesTest, AnIdThatLooksMadeIsRefusedWhileTheMessageIsThereThatHasIt) {
  const std::string id = send({.id = {}, .body = "ours"});
  NewMessage again{.id = id, .body = "theirs"};
  EXPECT_EQ(desk_->send("orders", std::span(&again, 1), soon()).front().status, SendStatus::duplicate_id);
  EXPECT_EQ(desk_->get("orders", id, soon())->message.body, "ours");
  ASSERT_TRUE(desk_->remove("orders", id, soon()));
  send(again);
  EXPECT_EQ(desk_->get("orders", id, soon())->message.body, "theirs");
}

TEST_F(LeasedQueuesTest, WhoSendsFirstWritesDownHowManyShardsThereAre) {
  send({.id = {}, .body = "x"});
  const Item kept = at(ownership_partition("orders", Half::standard), std::string(kShardsKey));
  const auto item = client_.get_item({.table = kTable, .key = kept}, soon())->item;
  EXPECT_EQ(dynamo::whole_number(item, attribute::kShards), 4);
  EXPECT_EQ(dynamo::whole_number(item, attribute::kMostEver), 4);
  const table::QueueTable place{"orders", kTable, {}, "eu-west-1"};
  ShardCount other(client_, clock_, place, 16);
  EXPECT_EQ(other.settled(soon())->count, 4U);
  EXPECT_EQ(client_.get_item({.table = kTable, .key = kept}, soon())->item, item);
}

TEST_F(LeasedQueuesTest, HowManyShardsThereAreIsTriedAgainToBeWrittenDown) {
  const table::QueueTable place{"others", kTable, {}, "eu-west-1"};
  ShardCount one(client_, clock_, place, 16);
  model_.inject(
      test::model::Fault::throttle,
      [](const std::string& operation, const std::string&) { return operation == "PutItem"; }, 100);
  EXPECT_EQ(one.settled(soon())->count, 16U) << "nobody waits for it";
  model_.clear_faults();
  clock_.advance(ShardCount::kKeep);
  EXPECT_EQ(one.settled(soon())->count, 16U);
  EXPECT_EQ(ShardCount(client_, clock_, place, 32).get(soon())->count, 16U);
}

TEST_F(LeasedQueuesTest, TwoThatSendFirstAtOnceGoByOneNumber) {
  const table::QueueTable place{"others", kTable, {}, "eu-west-1"};
  ShardCount one(client_, clock_, place, 16);
  ShardCount two(client_, clock_, place, 32);
  EXPECT_EQ(two.get(soon())->count, 32U) << "nobody has said anything yet";
  EXPECT_EQ(one.settled(soon())->count, 16U);
  EXPECT_EQ(two.settled(soon())->count, 16U);
}

TEST_F(LeasedQueuesTest, AGroupLiesInOneShard) {
  for (int i = 0; i < 20; ++i) {
    send({.id = {}, .body = "x", .group = "g"});
  }
  std::set<std::string> partitions;
  for (const Item& item : stored()) {
    partitions.insert(Place::of(item).partition);
  }
  EXPECT_THAT(partitions, SizeIs(1));
}

TEST_F(LeasedQueuesTest, ListsByTimeAcrossShardsAndPrioritiesInEitherDirection) {
  std::vector<std::string> ids;
  ids.reserve(60);
  for (int i = 0; i < 60; ++i) {
    ids.push_back(send({.id = {}, .body = "x", .priority = static_cast<Priority>(i % 4)}));
  }
  for (const std::size_t limit : {1U, 7U, 60U, 100U}) {
    EXPECT_EQ(listed({.limit = limit, .content = limit % 2 == 0}), ids) << limit;
  }
  std::reverse(ids.begin(), ids.end());
  for (const std::size_t limit : {1U, 7U, 100U}) {
    EXPECT_EQ(listed({.limit = limit, .newest_first = true}), ids) << limit;
  }
  const auto page = desk_->list("orders", {.limit = 5}, soon());
  ASSERT_TRUE(page);
  EXPECT_FALSE(desk_->list("orders", {.limit = 5, .cursor = page->next, .newest_first = true}, soon()))
      << "of the other direction";
  EXPECT_FALSE(desk_->list("orders", {.half = Half::dlq, .limit = 5, .cursor = page->next}, soon()))
      << "of the other half";
  const auto elsewhere = desk_->list("invoices", {.limit = 5, .cursor = page->next}, soon());
  ASSERT_FALSE(elsewhere) << "of another queue";
  EXPECT_EQ(elsewhere.error().code(), ErrorCode::invalid);
}

TEST_F(LeasedQueuesTest, AShortQueueIsListedWithOneReadAShard) {
  send({.id = {}, .body = "x"});
  const auto queries = [&] {
    const auto counters = model_.counters().requests;
    const auto found = counters.find("Query");
    return found == counters.end() ? 0U : found->second;
  };
  const auto count = queries();
  EXPECT_THAT(listed({.limit = 10}), SizeIs(1));
  EXPECT_EQ(queries() - count, 4U);
}

TEST_F(LeasedQueuesTest, WhatMovesKeepsItsIdAndIsFound) {
  const std::string id = send({.id = {}, .body = "x", .priority = Priority::low});
  send({.id = {}, .body = "other", .priority = Priority::critical});
  for (const ChangeAction action : {ChangeAction::delay, ChangeAction::move_to_front, ChangeAction::dead_letter,
                                    ChangeAction::redrive, ChangeAction::reset}) {
    const Change change{.id = id, .action = action, .after = 0s, .failure = {.error = "no", .handler = "h"}};
    const auto changed = desk_->change("orders", std::span(&change, 1), soon()).front();
    ASSERT_EQ(changed.status, ChangeStatus::applied) << changed.error.message();
    clock_.advance(1ms);
    const auto found = desk_->get("orders", id, soon());
    ASSERT_TRUE(found) << found.error().message();
    EXPECT_EQ(found->message.body, "x");
    EXPECT_EQ(found->version, changed.version);
    EXPECT_EQ(found->message.priority, Priority::low);
    if (action == ChangeAction::move_to_front) {
      EXPECT_EQ(listed({.limit = 10}).front(), id);
    }
  }
  const Change removal{.id = id, .action = ChangeAction::remove};
  EXPECT_EQ(desk_->change("orders", std::span(&removal, 1), soon()).front().status, ChangeStatus::applied);
  EXPECT_THAT(stored(), SizeIs(1)) << "no alias is left behind";
}

TEST_F(LeasedQueuesTest, AMoveCostsSixWriteUnits) {
  const std::string id = send({.id = {}, .body = "x"});
  const double units = write_units();
  ASSERT_TRUE(desk_->dead_letter("orders", id, {.error = "no", .handler = "h"}, soon()));
  EXPECT_EQ(write_units() - units, 6.0);
}

TEST_F(LeasedQueuesTest, AForeignItemIsShownAndCanBeRemoved) {
  Item foreign = at(partition_of("orders", Half::standard, 2), "not a sort key");
  foreign.emplace(attribute::kBody, "x");
  put(foreign);
  send({.id = {}, .body = "x"});
  const auto page = desk_->list("orders", {.limit = 10}, soon());
  ASSERT_TRUE(page) << page.error().message();
  ASSERT_THAT(page->messages, SizeIs(2));
  const auto odd = std::find_if(page->messages.begin(), page->messages.end(),
                                [](const StoredMessage& record) { return !record.odd.empty(); });
  ASSERT_NE(odd, page->messages.end());
  EXPECT_EQ(odd->odd.at("sent_at"), "not a sort key");
  EXPECT_TRUE(desk_->remove("orders", odd->message.id, soon()));
  EXPECT_THAT(listed({.limit = 10}), SizeIs(1));
}

TEST_F(LeasedQueuesTest, StatsAreTheOwnersWordWhereAnybodyOwnsAnyOfIt) {
  for (int i = 0; i < 3; ++i) {
    send({.id = {}, .body = "x"});
  }
  auto stats = desk_->stats({"orders"}, soon());
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->ready, 3U);
  EXPECT_EQ(stats->age, std::nullopt) << "counted, as nobody owns it";
  EXPECT_FALSE(stats->at_least);
  put(heartbeat("a/1", 10, 3));
  stats = desk_->stats({"orders"}, soon());
  EXPECT_EQ(stats->ready, 10U);
  EXPECT_TRUE(stats->at_least) << "one shard is nobody's";
  put(heartbeat("b/1", 30, 1, 3s));
  stats = desk_->stats({"orders"}, soon());
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->ready, 40U);
  EXPECT_FALSE(stats->at_least);
  EXPECT_EQ(stats->delayed, 4U);
  EXPECT_EQ(stats->in_flight, 2U);
  EXPECT_EQ(stats->age, 3s);
  EXPECT_EQ(stats->oldest_ready, whole_milliseconds(clock_.wall_now() - 60s));
  const auto exact = (*queues_->open_operator("orders"))->stats({.consistent = true}, soon());
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->ready, 3U);
  EXPECT_EQ(exact->age, std::nullopt);
  put(heartbeat("b/1", 30, 1, 11s));
  EXPECT_EQ(desk_->stats({"orders"}, soon())->ready, 10U) << "one of them may be dead";
  EXPECT_TRUE(desk_->stats({"orders"}, soon())->at_least);
  Item leaving = heartbeat("b/1", 30, 1);
  leaving.emplace(attribute::kLeaving, true);
  put(leaving);
  EXPECT_EQ(desk_->stats({"orders"}, soon())->ready, 10U) << "its shards are others' by now";
  Item mover = heartbeat("a/1", 10, 3);
  mover.emplace(attribute::kMoves, dynamo::StringSet{{"orders"}});
  put(mover);
  stats = desk_->stats({"orders"}, soon());
  EXPECT_EQ(stats->ready, 3U) << "a mover knows nothing of what it carries, so that it is counted";
  EXPECT_EQ(stats->age, std::nullopt);
  const auto cheap = (*queues_->open_operator("orders"))->stats({.cheap = true}, soon());
  ASSERT_FALSE(cheap);
  EXPECT_EQ(cheap.error().code(), ErrorCode::unavailable) << "a scrape counts nothing";
}

TEST_F(LeasedQueuesTest, AnOwnersOwnShardsAreToldAsTheyAreNowAndNotAsItsLastHeartbeatSays) {
  LeasedOptions options{{.host = "a"}};
  options.own_threads = false;
  options.queues["orders"] = {.table = kTable, .shards = 4};
  const auto queues = make_leased_queues(options, client_, clock_, random_);
  const auto source = *queues->open_source({"orders"});
  const auto oper = *queues->open_operator("orders");
  for (int i = 0; i < 5; ++i) {
    send({.id = {}, .body = "x"});
  }
  source->start({});
  std::vector<Completion> completions;
  const auto claim = [&] {
    clock_.advance(100ms);
    const auto claimed = source->claim({.max = 10, .visibility = 30s}, soon());
    ASSERT_TRUE(claimed) << claimed.error().message();
    for (const Delivery& delivery : claimed->deliveries) {
      completions.push_back({.receipt = delivery.receipt});
    }
  };
  // Until a heartbeat has said that they are out.
  for (int i = 0; i < 50; ++i) {
    claim();
  }
  ASSERT_THAT(completions, SizeIs(5));
  const auto busy = oper->stats({}, soon());
  ASSERT_TRUE(busy);
  EXPECT_EQ(busy->in_flight, 5U);
  EXPECT_LE(busy->age, 1s) << "since its last look";
  const auto elsewhere = desk_->stats({"orders"}, soon());
  ASSERT_TRUE(elsewhere);
  EXPECT_EQ(elsewhere->in_flight, 5U) << "another process has the heartbeat's word";
  EXPECT_NE(elsewhere->age, 0s);
  const auto counted = desk_->overview("orders", {.exact = true}, soon());
  ASSERT_TRUE(counted);
  EXPECT_EQ(counted->counts.in_flight, 5U) << "no record tells of it, but owners do";
  EXPECT_EQ(counted->counts.ready, 0U);
  for (const auto& result : source->settle(completions, soon())) {
    EXPECT_EQ(result.status, SettleStatus::applied);
  }
  const auto idle = oper->stats({}, soon());
  ASSERT_TRUE(idle);
  EXPECT_EQ(idle->total(), 0U);
  EXPECT_EQ(desk_->stats({"orders"}, soon())->in_flight, 5U);
  source->stop();
}

TEST_F(LeasedQueuesTest, WhereNobodyWorksAMegabyteOfEachShardIsCountedUnlessItIsToBeExact) {
  for (int i = 0; i < 30; ++i) {
    send({.id = {}, .body = std::string(350'000, 'x')});
  }
  const double units = model_.counters().read_units;
  const auto some = desk_->stats({"orders"}, soon());
  ASSERT_TRUE(some);
  EXPECT_TRUE(some->at_least);
  EXPECT_GE(some->ready, 8U);
  EXPECT_LT(some->ready, 30U);
  EXPECT_LE(model_.counters().read_units - units, 4 * 175 + 2);
  const auto exact = (*queues_->open_operator("orders"))->stats({.exact = true}, soon());
  EXPECT_EQ(exact->ready, 30U);
  EXPECT_FALSE(exact->at_least);
}

TEST_F(LeasedQueuesTest, StatsOfOwnersCostTwoReadsAtMost) {
  put(heartbeat("a/1", 10, 4));
  const double units = model_.counters().read_units;
  ASSERT_EQ(desk_->stats({"orders"}, soon())->ready, 10U);
  EXPECT_LE(model_.counters().read_units - units, 1.0) << "the number of shards, and the heartbeats";
}

TEST_F(LeasedQueuesTest, AnOverviewIsTheOwnersWordUnlessItIsToBeExact) {
  send({.id = {}, .body = "x"});
  put(heartbeat("a/1", 10, 4));
  auto said = desk_->overview("orders", {.ids = 5}, soon());
  ASSERT_TRUE(said);
  EXPECT_EQ(said->counts.ready, 10U);
  EXPECT_EQ(said->counts.age, 1s);
  EXPECT_THAT(said->first_ids, IsEmpty());
  const double units = model_.counters().read_units;
  desk_->overview("orders", {.ids = 5}, soon());
  EXPECT_EQ(model_.counters().read_units - units, 0.5) << "the number of shards is known";
  auto exact = desk_->overview("orders", {.ids = 5, .exact = true}, soon());
  ASSERT_TRUE(exact);
  EXPECT_EQ(exact->counts.total(), 1U);
  EXPECT_EQ(exact->counts.in_flight, 1U) << "as the heartbeat says";
  EXPECT_EQ(exact->counts.age, std::nullopt);
  EXPECT_THAT(exact->first_ids, SizeIs(1));
  EXPECT_EQ((*queues_->open_operator("orders"))->stats({.exact = true}, soon())->ready, 1U);
}

TEST_F(LeasedQueuesTest, TheNumberOfShardsIsTheTablesWord) {
  Item shards = at(ownership_partition("orders", Half::standard), std::string(kShardsKey));
  shards.emplace(attribute::kShards, AttributeValue::number(1));
  put(shards);
  for (int i = 0; i < 10; ++i) {
    send({.id = {}, .body = "x"});
  }
  for (const Item& item : model_.items(kTable)) {
    const auto partition = parse_partition(Place::of(item).partition);
    EXPECT_TRUE(!partition || partition->shard == 0);
  }
  shards.insert_or_assign(std::string(attribute::kShards), AttributeValue::number(4));
  put(shards);
  clock_.advance(31s);
  for (int i = 0; i < 40; ++i) {
    send({.id = {}, .body = "x"});
  }
  EXPECT_THAT(listed({.limit = 100}), SizeIs(50)) << "read again after 30 s";
}

TEST_F(LeasedQueuesTest, ANumberOfShardsThatCannotBeIsNamedWithItsMend) {
  for (const long long wrong : {0LL, 10'000LL, -1LL}) {
    Item shards = at(ownership_partition("orders", Half::standard), std::string(kShardsKey));
    shards.emplace(attribute::kShards, AttributeValue::number(wrong));
    put(shards);
    clock_.advance(31s);
    NewMessage message{.id = {}, .body = "x"};
    const auto sent = desk_->send("orders", std::span(&message, 1), soon()).front();
    EXPECT_EQ(sent.status, SendStatus::failed);
    EXPECT_EQ(sent.error.code(), ErrorCode::invalid);
    EXPECT_THAT(sent.error.message(), HasSubstr("orders@/shards"));
    EXPECT_THAT(sent.error.message(), HasSubstr(std::to_string(wrong) + " shards"));
    EXPECT_THAT(sent.error.message(), HasSubstr("1 to 1024"));
    const table::ExaminedItems items = examined();
    ASSERT_THAT(items.findings, SizeIs(1));
    EXPECT_EQ(items.findings[0].level, table::FindingLevel::unfit);
  }
}

TEST_F(LeasedQueuesTest, ATableThatIsAsItShouldBeHasNoFindings) {
  send({.id = "A-1", .body = "x", .dedup_id = "d", .unique_key = "u"});
  send({.id = {}, .body = "x"});
  Item owner = at(ownership_partition("orders", Half::dlq), ownership_sort(3));
  owner.emplace(attribute::kOwner, "a/1");
  owner.emplace(attribute::kEpoch, AttributeValue::number(4));
  put(owner);
  put(heartbeat("a/1", 1, 1));
  const table::ExaminedItems items = examined();
  EXPECT_THAT(items.findings, IsEmpty()) << items.findings.front().what;
  EXPECT_EQ(items.outside, 0U);
}

TEST_F(LeasedQueuesTest, WhatIsOddInATableIsNamed) {
  put(at("elsewhere", "x"));
  put(at(partition_of("orders", Half::standard, 0), "short"));
  put(at(ownership_partition("orders", Half::standard), ownership_sort(1)));
  put(heartbeat("twin/1", 1, 1));
  put(heartbeat("twin/2", 1, 1));
  put(heartbeat("ahead/1", 1, 1, -1h));
  Item dead = at(std::string(kHosts), "mute/1");
  put(dead);
  std::string all;
  for (const auto& finding : examined().findings) {
    all += finding.what + "; " + finding.mend + "\n";
  }
  EXPECT_THAT(all, HasSubstr("2 items are nothing of this layout"));
  EXPECT_THAT(all, HasSubstr("'elsewhere/x'"));
  EXPECT_THAT(all, HasSubstr("'orders#0/short'"));
  EXPECT_THAT(all, HasSubstr("the ownership item 'orders@/0001' is half made: it has no owner"));
  EXPECT_THAT(all, HasSubstr("2 hosts call themselves 'twin'"));
  EXPECT_THAT(all, HasSubstr("host 'ahead/1' writes heartbeats from the future"));
  EXPECT_THAT(all, HasSubstr("the heartbeat '@hosts/mute/1' has no counter or no lease"));
}

TEST_F(LeasedQueuesTest, ATableOfTheOtherLayoutIsNamedEitherWay) {
  dynamodb::TableSpec dynamomq_table;
  dynamomq_table.table = "plain";
  ASSERT_TRUE(dynamodb::create_queue_table(client_, dynamomq_table, clock_, soon()));
  for (const auto& [table, layout, other] : {std::tuple(kTable, dynamodb::kDynamoMqLayout, "leased"),
                                             std::tuple("plain", dynamodb::kLeasedLayout, "dynamomq")}) {
    dynamodb::TableSpec spec;
    spec.table = table;
    spec.layout = layout;
    const auto wrong = dynamodb::check_table(client_, spec, soon());
    ASSERT_FALSE(wrong);
    EXPECT_THAT(wrong.error().message(), HasSubstr("it is a table of the layout \"" + std::string(other) + "\""));
  }
  LeasedOptions options;
  options.queues["orders"] = {.table = "plain"};
  const auto queues = make_leased_queues(options, client_, clock_, random_);
  NewMessage message{.id = {}, .body = "x"};
  const auto sent = (*queues->open_sender("orders"))->send(std::span(&message, 1), soon()).front();
  EXPECT_EQ(sent.error.code(), ErrorCode::invalid);
  EXPECT_THAT(sent.error.message(), HasSubstr("no table of the leased layout"));
}

TEST_F(LeasedQueuesTest, ADeadLetterThatHoldsItsGroupSaysWhereItLayWhateverElseIsLeftOfThat) {
  const std::string before = sort_key_of(Priority::high, clock_.wall_now() - 60s, random_);
  Item letter = at("orders!1", sort_key_of(Priority::normal, clock_.wall_now(), random_));
  letter.emplace(attribute::kBody, "x");
  letter.emplace(attribute::kGroup, "g");
  letter.emplace(attribute::kPriority, AttributeValue::number(1));
  letter.emplace(attribute::kOwnId, made_id(before, 1));
  letter.emplace(attribute::kHold, before);
  put(letter);
  const Place lies = Place::of(letter);
  Item alias = alias_place("orders", made_id(before, 1)).key();
  alias.emplace(attribute::kTarget, lies.partition);
  alias.emplace(attribute::kTargetSort, lies.sort);
  put(alias);
  const Change redrive{.id = made_id(before, 1), .action = ChangeAction::redrive};
  EXPECT_EQ(desk_->change("orders", std::span(&redrive, 1), soon()).front().status, ChangeStatus::applied);
  const auto left = stored();
  ASSERT_THAT(left, SizeIs(1)) << "its id says again where it lies";
  EXPECT_EQ(Place::of(left.front()), (Place{"orders#1", before}));
  EXPECT_THAT(held_sort(left.front()), IsEmpty());
}

TEST_F(LeasedQueuesTest, ADeadLetterThatHoldsItsGroupStaysBesideWhatSaysSoThoughItsShardIsBeyondTheNumber) {
  const Place hold = put_held_letter();
  for (const ChangeAction action : {ChangeAction::move_to_front, ChangeAction::reset}) {
    const Change change{.id = "A-1", .action = action};
    EXPECT_EQ(desk_->change("orders", std::span(&change, 1), soon()).front().status, ChangeStatus::applied);
  }
  for (const Item& left : stored()) {
    EXPECT_NE(Place::of(left), hold) << "its group goes on";
    if (left.contains(attribute::kBody)) {
      EXPECT_LT(shard_of(left), kBeyond) << "where somebody works on it";
    }
  }
}

TEST_F(LeasedQueuesTest, ADeadLetterThatHeldItsGroupIsRedrivenToWhereSomebodyWorksOnceItsShardHasBeenGivenUp) {
  for (const bool given_up : {false, true}) {
    SCOPED_TRACE(given_up);
    const Place hold = put_held_letter();
    Item owned = Place{ownership_partition("orders", Half::standard), ownership_sort(kBeyond)}.key();
    owned.emplace(attribute::kOwner, given_up ? "" : "a/1");
    owned.emplace(attribute::kEpoch, AttributeValue::number(3));
    owned.emplace(attribute::kClean, true);
    owned.emplace(attribute::kDrained, given_up);
    put(owned);
    const Change change{.id = "A-1", .action = ChangeAction::redrive};
    EXPECT_EQ(desk_->change("orders", std::span(&change, 1), soon()).front().status, ChangeStatus::applied);
    for (const Item& left : stored()) {
      EXPECT_NE(Place::of(left), hold) << "its group goes on";
      if (left.contains(attribute::kBody)) {
        EXPECT_EQ(shard_of(left) < kBeyond, given_up);
      }
    }
    const Change removal{.id = "A-1"};
    EXPECT_EQ(desk_->change("orders", std::span(&removal, 1), soon()).front().status, ChangeStatus::applied);
  }
}

TEST_F(LeasedQueuesTest, NoticesAndKeysLieBesideTheMessages) {
  const auto opened_board = queues_->open_board("orders");
  NoticeBoard* const board = opened_board->get();
  const auto posted = board->post(Topic::hosts, {.key = "h", .text = "hello"}, soon());
  ASSERT_TRUE(posted) << posted.error().message();
  const auto all = board->list(Topic::hosts, soon());
  ASSERT_TRUE(all) << all.error().message();
  ASSERT_THAT(*all, SizeIs(1));
  EXPECT_EQ(all->front().text, "hello");
  const auto opened_keys = queues_->open_keys("orders");
  IdempotencyKeys* const keys = opened_keys->get();
  const KeyClaim claim{.job = "j", .key = "k", .owner = "m", .hold_for = 60s, .fence = 1};
  EXPECT_EQ(keys->begin(std::span(&claim, 1), soon()).front().owner, "m");
  const auto page = keys->list("j", 10, "", soon());
  ASSERT_TRUE(page) << page.error().message();
  EXPECT_THAT(page->keys, SizeIs(1));
  EXPECT_THAT(examined().findings, IsEmpty());
  EXPECT_THAT(listed({.limit = 10}), IsEmpty());
}

}  // namespace
}  // namespace sluice::queue::leased
