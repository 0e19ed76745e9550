// What operators look at and copy: overview, list, put, edit; what it costs, and what it keeps of odd items.

#include "dynamo/codec/json_codec.hpp"
#include "host/stores/table/item_values.hpp"
#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using dynamo::AttributeValue;
using dynamo::Item;
using queue::ContentEdit;
using queue::PutMode;
using queue::PutStatus;
using queue::StoredMessage;

class StoreOperator : public StoreOnEmulator {
 protected:
  Item odd_item(const std::string& id) {
    return {{"id", id},
            {"data", dynamo::Map{{"n", dynamo::Number{"0.12345678901234567890123"}},
                                 {"set", dynamo::NumberSet{{"1", "2"}}},
                                 {"deep", dynamo::List{dynamo::Map{{"bytes", dynamo::Binary{"\x01\xff"}}}}}}},
            {"queue_type", "STANDARD"},
            {"sent_at", "2020-01-01T00:00:00.5Z"},
            {"created_at", "long ago"},
            {"received_at", dynamo::Null{}},
            {"theirs", dynamo::BinarySet{{"a", "b"}}}};
  }
  std::vector<StoredMessage> all(bool native, const queue::QueueAddress& address = standard()) {
    queue::ListRequest request{.half = address.half, .limit = 7, .cursor = {}, .native = native};
    std::vector<StoredMessage> found;
    do {
      auto page = desk().list("orders", request, soon());
      EXPECT_TRUE(page);
      std::move(page->messages.begin(), page->messages.end(), std::back_inserter(found));
      request.cursor = page->next;
    } while (!request.cursor.empty());
    return found;
  }
  // Without what every write of ours leaves.
  static Item bare(Item item) {
    for (const char* name : {"version", "updated_at", "sluice_nonce"}) {
      item.erase(name);
    }
    return item;
  }
};

TEST_F(StoreOperator, CopyOfARecordWithMoreAttributesThanAStatementHolds) {
  Item wide = odd_item("wide");
  for (int i = 0; i < 300; ++i) {
    wide["an_attribute_of_another_program_" + std::to_string(i)] = AttributeValue::number(i);
  }
  put(wide);
  const auto records = all(true);
  ASSERT_EQ(records.size(), 1U);
  ASSERT_TRUE(desk().remove("orders", "wide", soon()));
  host().usage().reset();
  const auto written = desk().put("orders", records, PutMode::insert, soon());
  EXPECT_EQ(written[0].status, PutStatus::written) << written[0].error.message();
  EXPECT_EQ(host().usage().requests("PutItem"), 1U) << "the text of a statement may have 8,192 bytes";
  EXPECT_EQ(bare(raw("wide")), bare(wide));
  EXPECT_EQ(desk().put("orders", records, PutMode::insert, soon())[0].status, PutStatus::exists);
}

TEST_F(StoreOperator, OverviewOf1000MessagesCostsOneUnitForEightKilobytesAndNoBodies) {
  send(1'000, 600);
  host().usage().reset();
  const auto seen = desk().overview("orders", {.half = standard().half, .ids = 100, .errors = 10}, soon());
  ASSERT_TRUE(seen) << seen.error().message();
  EXPECT_EQ(seen->counts.ready, 1'000U);
  EXPECT_EQ(seen->first_ids.size(), 100U);
  EXPECT_TRUE(seen->first_in_flight_ids.empty());
  // About 0.9 KB an item, half a unit for each 4 KB of them, in pages of 1 MB.
  EXPECT_EQ(host().usage().requests(), 1U);
  EXPECT_GE(host().usage().capacity().read, 90);
  EXPECT_LE(host().usage().capacity().read, 130);
}

TEST_F(StoreOperator, OverviewGoesOverPagesOfOneMegabyte) {
  send(60, 60'000);
  host().usage().reset();
  const auto seen = desk().overview("orders", {.half = standard().half, .ids = 100, .errors = 0}, soon());
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->counts.ready, 60U);
  EXPECT_EQ(seen->first_ids.size(), 60U);
  EXPECT_GE(host().usage().requests(), 3U);
  const auto page =
      desk().list("orders", {.half = standard().half, .limit = 60, .cursor = {}, .content = false}, soon());
  ASSERT_TRUE(page);
  EXPECT_EQ(page->messages.size(), 60U);
  EXPECT_TRUE(page->messages[59].message.body.empty());
}

TEST_F(StoreOperator, OverviewGroupsWhatFailed) {
  send(12);
  const auto dead = [&](int number, const std::string& error, Duration at) {
    ASSERT_TRUE(desk().dead_letter(
        "orders", "m" + std::to_string(number),
        {.error = error, .handler = "h", .host = "w", .attempts = 3, .failed_at = WallTime{} + at}, soon()));
  };
  for (int i = 0; i < 5; ++i) {
    dead(i, "refused", std::chrono::seconds(i == 2 ? 9 : i));
  }
  dead(5, "time-out", 20s);
  dead(6, "time-out", 10s);
  dead(7, "once", 5s);
  ASSERT_TRUE(desk().dead_letter("orders", "m8", {}, soon()));
  auto seen = desk().overview("orders", {.half = dlq().half, .ids = 3, .errors = 2}, soon());
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->counts.total(), 9U);
  EXPECT_EQ(seen->first_ids.size(), 3U);
  ASSERT_EQ(seen->errors.size(), 2U);
  EXPECT_EQ(seen->errors[0].error, "refused");
  EXPECT_EQ(seen->errors[0].count, 5U);
  EXPECT_EQ(seen->errors[0].example, "m2");
  EXPECT_EQ(seen->errors[0].last_failed_at, WallTime{} + 9s);
  EXPECT_EQ(seen->errors[1].error, "time-out");
  EXPECT_EQ(seen->errors[1].example, "m5");
  EXPECT_TRUE(desk().overview("orders", {.half = dlq().half, .ids = 0, .errors = 0}, soon())->errors.empty());
}

TEST_F(StoreOperator, ResetAndRedriveAndEditKeepOddItemsByteForByte) {
  put(odd_item("odd"));
  const Item before = raw("odd");
  ASSERT_TRUE(desk().dead_letter("orders", "odd", {.error = "e", .handler = "h"}, soon()));
  EXPECT_EQ(get("odd").version, 1);
  ASSERT_TRUE(desk().redrive("orders", "odd", soon()));
  for (const char* name : {"data", "theirs", "created_at"}) {
    EXPECT_EQ(raw("odd").at(name), before.at(name)) << name;
  }
  const std::vector<ContentEdit> edits{{.path = {"data", "n"}, .json = "2"}};
  const auto edited = desk().edit("orders", "odd", 2, edits, soon());
  ASSERT_TRUE(edited) << edited.error().message();
  Item expected = before;
  expected["data"].get<dynamo::Map>()->insert_or_assign("n", AttributeValue(dynamo::Number{"2"}));
  EXPECT_EQ(raw("odd").at("data"), expected.at("data"));
  const queue::Change reset{.id = "odd", .action = queue::ChangeAction::reset, .version = 3};
  ASSERT_EQ(desk().change("orders", std::span(&reset, 1), soon())[0].status, queue::ChangeStatus::applied);
  const Item after = raw("odd");
  EXPECT_EQ(after.at("data"), expected.at("data"));
  EXPECT_EQ(after.at("theirs"), before.at("theirs"));
  EXPECT_EQ(after.count("sluice_failure"), 0U);
}

TEST_F(StoreOperator, EditOfAnItemWithoutAVersionIsConditionalOnThat) {
  put(odd_item("odd"));
  const ContentEdit edit{.path = {"data", "new"}, .json = "[1.50]"};
  EXPECT_EQ(desk().edit("orders", "odd", 1, std::span(&edit, 1), soon()).error().code(), ErrorCode::conflict);
  const auto edited = desk().edit("orders", "odd", 0, std::span(&edit, 1), soon());
  ASSERT_TRUE(edited) << edited.error().message();
  EXPECT_EQ(edited->version, 1);
  Item expected = odd_item("odd");
  expected["data"].get<dynamo::Map>()->insert_or_assign(
      "new", AttributeValue(dynamo::List{dynamo::Number{"1.5"}}));  // DynamoDB's spelling
  EXPECT_EQ(bare(raw("odd")), expected);
  EXPECT_EQ(desk().edit("orders", "odd", 0, std::span(&edit, 1), soon()).error().code(), ErrorCode::conflict);
}

TEST_F(StoreOperator, EditTooLargeForAnItemIsInvalid) {
  send(1);
  const ContentEdit edit{.path = {"data"}, .json = '"' + std::string(401 * 1024, 'x') + '"'};
  const auto edited = desk().edit("orders", "m0", 1, std::span(&edit, 1), soon());
  ASSERT_FALSE(edited);
  EXPECT_EQ(edited.error().code(), ErrorCode::invalid) << edited.error().message();
  EXPECT_EQ(get("m0").version, 1);
}

TEST_F(StoreOperator, EditLeavesRoomForAClaim) {
  send(1);
  const std::size_t bare = queue::table::item_bytes(raw("m0")) - 20;
  const auto fill = [&](std::size_t bytes) {
    const ContentEdit edit{.path = {"data"}, .json = '"' + std::string(bytes, 'x') + '"'};
    return desk().edit("orders", "m0", get("m0").version, std::span(&edit, 1), soon());
  };
  EXPECT_EQ(fill(400 * 1024 - bare - 10).error().code(), ErrorCode::invalid);
  const auto most = fill(400 * 1024 - bare - queue::dynamomq::kClaimBytes);
  ASSERT_TRUE(most) << most.error().message();
  EXPECT_EQ(claim(1).size(), 1U);
}

TEST_F(StoreOperator, EditOfAMessageThatThisHostHasSeenIsStillClaimedSoon) {
  send(3);
  ASSERT_EQ(claim(1).size(), 1U);  // the others are in its buffer
  const ContentEdit edit{.path = {"data"}, .json = R"("new")"};
  ASSERT_TRUE(desk().edit("orders", "m2", 1, std::span(&edit, 1), soon()));
  clock().advance(2s);
  auto claims = claim(5);
  const auto more = claim(5);
  claims.insert(claims.end(), more.begin(), more.end());
  EXPECT_EQ(ids_of(claims), (std::set<std::string>{"m1", "m2"}));
}

TEST_F(StoreOperator, ListOfLargeMessagesEndsItsPageEarly) {
  send(60, 390'000);
  queue::ListRequest request{.half = standard().half, .limit = 60, .cursor = {}};
  const auto first = desk().list("orders", request, soon());
  ASSERT_TRUE(first) << first.error().message();
  EXPECT_LT(first->messages.size(), 50U);
  EXPECT_GT(first->messages.size(), 30U);
  request.cursor = first->next;
  const auto rest = desk().list("orders", request, soon());
  ASSERT_TRUE(rest);
  EXPECT_EQ(first->messages.size() + rest->messages.size(), 60U);
}

TEST_F(StoreOperator, NamesThatNoStatementCanSpellAreInsertedToo) {
  Item odd = odd_item("odd");
  for (const char* name : {"it's", "a\"b", "c\\d", "e?", "'} --"}) {
    odd.insert_or_assign(name, AttributeValue("kept"));
  }
  put(odd);
  auto records = all(true);
  ASSERT_EQ(records.size(), 1U);
  records[0].message.id = "copy";
  ASSERT_EQ(desk().put("orders", records, PutMode::insert, soon())[0].status, PutStatus::written);
  Item expected = odd;
  expected["id"] = "copy";
  Item copy = raw("copy");
  copy.erase("sluice_nonce");
  EXPECT_EQ(copy, expected);
  EXPECT_EQ(desk().put("orders", records, PutMode::insert, soon())[0].status, PutStatus::exists);
}

TEST_F(StoreOperator, CopyIsExactAndPlainMessagesNeedNoItemForIt) {
  send(30);
  put(odd_item("odd"));
  auto records = all(true);
  ASSERT_EQ(records.size(), 31U);
  for (const auto& record : records) {
    EXPECT_EQ(record.native.empty(), record.message.id != "odd") << record.native;
  }
  for (const auto& record : all(false)) {
    EXPECT_TRUE(record.native.empty());
  }
  const Item odd = raw("odd");
  const Item ours = raw("m7");
  ASSERT_EQ(purge(), 31U);
  for (const auto& result : desk().put("orders", records, PutMode::insert, soon())) {
    EXPECT_EQ(result.status, PutStatus::written) << result.error.message();
  }
  const auto same = [](Item a, Item b) {
    a.erase("sluice_nonce");
    b.erase("sluice_nonce");
    return a == b;
  };
  EXPECT_TRUE(same(raw("odd"), odd));
  EXPECT_TRUE(same(raw("m7"), ours));
  EXPECT_EQ(all(true).size(), 31U);
}

TEST_F(StoreOperator, InsertLeavesWhatIsThereAndReplaceDoesNot) {
  send(30);
  auto records = all(false);
  for (auto& record : records) {
    record.message.body = "copy";
    record.version = 40;
  }
  records.push_back(records.front());
  records.back().message.id = "new";
  records.push_back(records.front());
  records.back().message.id = "";
  const auto inserted = desk().put("orders", records, PutMode::insert, soon());
  for (std::size_t i = 0; i < 30; ++i) {
    EXPECT_EQ(inserted[i].status, PutStatus::exists) << inserted[i].error.message();
  }
  EXPECT_EQ(inserted[30].status, PutStatus::written) << inserted[30].error.message();
  EXPECT_EQ(inserted[31].error.code(), ErrorCode::invalid);
  EXPECT_EQ(get("m3").message.body, std::string(20, 'x'));
  host().usage().reset();
  const auto replaced = desk().put("orders", std::span(records).first(31), PutMode::replace, soon());
  for (const auto& result : replaced) {
    EXPECT_EQ(result.status, PutStatus::written) << result.error.message();
  }
  EXPECT_EQ(host().usage().requests(), 31U) << "one each";
  EXPECT_GE(host().usage().capacity().write, 31.0);
  EXPECT_EQ(get("m3").message.body, "copy");
  EXPECT_EQ(get("m3").version, 40);
}

TEST_F(StoreOperator, ReplaceOfTheSameIdTwiceLeavesTheLast) {
  send(1);
  auto record = get("m0");
  std::vector<StoredMessage> twice{record, record};
  twice[0].message.body = "first";
  twice[1].message.body = "second";
  for (const auto& result : desk().put("orders", twice, PutMode::replace, soon())) {
    EXPECT_EQ(result.status, PutStatus::written) << result.error.message();
  }
  EXPECT_EQ(get("m0").message.body, "second");
}

TEST_F(StoreOperator, OneRecordThatDynamoDbRefusesDoesNotTakeTheOthersWithIt) {
  send(3);
  auto records = all(false);
  Item bad = raw("m1");
  bad["queue_type"] = dynamo::Null{};  // a key of the index may not be that
  records[1].native = dynamo::encode_item(bad);
  for (const PutMode mode : {PutMode::replace, PutMode::insert}) {
    for (auto& record : records) {
      record.message.id += mode == PutMode::insert ? "-new" : "";
    }
    const auto results = desk().put("orders", records, mode, soon());
    EXPECT_EQ(results[0].status, PutStatus::written) << results[0].error.message();
    EXPECT_EQ(results[1].error.code(), ErrorCode::invalid) << results[1].error.message();
    EXPECT_EQ(results[2].status, PutStatus::written);
  }
}

/// An answer is lost after the request took effect.
class LostOperatorAnswer : public StoreOperator, public ::testing::WithParamInterface<HttpFault> {};

INSTANTIATE_TEST_SUITE_P(AllWays, LostOperatorAnswer,
                         ::testing::Values(HttpFault::commit_then_500, HttpFault::commit_then_reset,
                                           HttpFault::commit_then_cut));

TEST_P(LostOperatorAnswer, OfEveryChangeIsRecognised) {
  using queue::ChangeAction;
  for (const bool with_version : {true, false}) {
    for (const ChangeAction action : {ChangeAction::set_visibility, ChangeAction::delay, ChangeAction::move_to_front,
                                      ChangeAction::dead_letter, ChangeAction::redrive, ChangeAction::reset}) {
      const std::string prefix = std::to_string(static_cast<int>(action)) + (with_version ? "v" : "-");
      send(30, 20, prefix);
      std::int64_t version = 1;
      std::vector<queue::Change> changes;
      changes.reserve(30);
      for (int i = 0; i < 30; ++i) {
        changes.push_back({.id = prefix + std::to_string(i), .action = ChangeAction::dead_letter});
      }
      if (action == ChangeAction::redrive) {
        desk().change("orders", changes, soon());
        version = 2;
      }
      for (auto& change : changes) {
        change.action = action;
        change.version = with_version ? std::optional(version) : std::nullopt;
      }
      host().faults().break_next(GetParam(), "UPDATE");
      for (const auto& result : desk().change("orders", changes, soon())) {
        EXPECT_EQ(result.status, queue::ChangeStatus::applied) << prefix << result.error.message();
        EXPECT_EQ(result.version, version + 1);
      }
      host().faults().choose({});
      EXPECT_EQ(get(prefix + "0").version, version + 1) << "once, not twice";
    }
  }
}

TEST_P(LostOperatorAnswer, OfARemovalCountsAndAbsentOnesStayAbsent) {
  send(30);
  std::vector<queue::Change> changes;
  changes.reserve(30);
  for (int i = 0; i < 30; ++i) {
    changes.push_back(
        {.id = "m" + std::to_string(i), .version = i % 2 == 0 ? std::optional<std::int64_t>(1) : std::nullopt});
  }
  host().faults().break_next(GetParam(), "DELETE");
  for (const auto& result : desk().change("orders", changes, soon())) {
    EXPECT_EQ(result.status, queue::ChangeStatus::applied) << result.error.message();
  }
  host().faults().choose({});
  EXPECT_EQ(desk().stats(standard(), soon())->total(), 0U);
}

TEST_P(LostOperatorAnswer, OfEditIsRecognised) {
  send(1);
  host().faults().break_next(GetParam(), "UpdateExpression");
  const ContentEdit edit{.path = {"data"}, .json = R"("new")"};
  const auto edited = desk().edit("orders", "m0", 1, std::span(&edit, 1), soon());
  ASSERT_TRUE(edited) << edited.error().message();
  EXPECT_EQ(edited->version, 2);
  EXPECT_EQ(get("m0").message.body, "new");
  EXPECT_EQ(get("m0").version, 2);
}

TEST_P(LostOperatorAnswer, OfPutIsRecognised) {
  send(30);
  auto records = all(false);
  for (auto& record : records) {
    record.message.id += "-copy";
  }
  host().faults().break_next(GetParam(), "INSERT");
  for (const auto& result : desk().put("orders", records, PutMode::insert, soon())) {
    EXPECT_EQ(result.status, PutStatus::written) << result.error.message();
  }
  host().faults().break_next(GetParam(), R"("Item":)", 2);
  for (const auto& result : desk().put("orders", records, PutMode::replace, soon())) {
    EXPECT_EQ(result.status, PutStatus::written) << result.error.message();
  }
  host().faults().choose({});
  EXPECT_EQ(desk().stats(standard(), soon())->total(), 60U);
}

TEST_P(LostOperatorAnswer, AndNoWayToAskIsAnUnknownOutcome) {
  send(1);
  host().faults().choose([](const std::string& operation, const std::string& body) {
    if (body.find("UPDATE") != std::string::npos) {
      return GetParam();
    }
    return operation == "BatchGetItem" || operation == "GetItem" ? HttpFault::refuse : HttpFault::none;
  });
  const queue::Change change{.id = "m0", .action = queue::ChangeAction::delay, .version = 1};
  const auto result = desk().change("orders", std::span(&change, 1), soon())[0];
  EXPECT_EQ(result.status, queue::ChangeStatus::failed);
  EXPECT_EQ(result.error.code(), ErrorCode::unknown_outcome) << result.error.message();
}

TEST_F(StoreOperator, ThrottledBulkComesThrough) {
  send(60);
  std::vector<queue::Change> changes;
  changes.reserve(60);
  for (int i = 0; i < 60; ++i) {
    changes.push_back({.id = "m" + std::to_string(i), .action = queue::ChangeAction::dead_letter, .version = 1});
  }
  host().faults().break_next(HttpFault::throttle_odd, "UPDATE", 3);
  for (const auto& result : desk().change("orders", changes, soon())) {
    EXPECT_EQ(result.status, queue::ChangeStatus::applied) << result.error.message();
  }
}

TEST_F(StoreOperator, NothingIsWrittenAfterTheDeadline) {
  send(1);
  const Deadline passed = Deadline::at(clock().steady_now() - 1s);
  const queue::Change change{.id = "m0"};
  EXPECT_EQ(desk().change("orders", std::span(&change, 1), passed)[0].error.code(), ErrorCode::timeout);
  const auto record = get("m0");
  for (const PutMode mode : {PutMode::insert, PutMode::replace}) {
    EXPECT_EQ(desk().put("orders", std::span(&record, 1), mode, passed)[0].error.code(), ErrorCode::timeout);
  }
  EXPECT_EQ(get("m0").version, 1);
}

}  // namespace
}  // namespace sluice::test
