#include <algorithm>

#include "tests/contract/store_contract.hpp"

// Whole records, as they are listed in one queue and put into another.
namespace sluice::test {

using queue::CompletionAction;
using queue::Half;
using queue::PutMode;
using queue::PutResult;
using queue::PutStatus;
using queue::SettleStatus;
using queue::StoredMessage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

namespace {

void expect_same(const StoredMessage& copy, const StoredMessage& original) {
  SCOPED_TRACE(original.message.id);
  EXPECT_EQ(copy.message.id, original.message.id);
  EXPECT_EQ(copy.message.body, original.message.body);
  EXPECT_EQ(copy.message.content_type, original.message.content_type);
  EXPECT_EQ(copy.message.attributes, original.message.attributes);
  EXPECT_EQ(copy.message.group, original.message.group);
  EXPECT_EQ(copy.message.attempt, original.message.attempt);
  EXPECT_EQ(copy.message.sent_at, original.message.sent_at);
  EXPECT_EQ(copy.half, original.half);
  EXPECT_EQ(copy.version, original.version);
  EXPECT_EQ(copy.created_at, original.created_at);
  EXPECT_EQ(copy.updated_at, original.updated_at);
  EXPECT_EQ(copy.received_at, original.received_at);
  EXPECT_EQ(copy.invisible_until, original.invisible_until);
  EXPECT_EQ(copy.failure.error, original.failure.error);
  EXPECT_EQ(copy.failure.handler, original.failure.handler);
  EXPECT_EQ(copy.failure.host, original.failure.host);
  EXPECT_EQ(copy.failure.attempts, original.failure.attempts);
  EXPECT_EQ(copy.failure.failed_at, original.failure.failed_at);
  EXPECT_EQ(copy.native, original.native);
}

std::vector<PutStatus> statuses(const std::vector<PutResult>& results) {
  std::vector<PutStatus> found;
  for (const PutResult& result : results) {
    found.push_back(result.status);
    EXPECT_EQ(result.error.message().empty(), result.status != PutStatus::failed) << result.error.message();
  }
  return found;
}

StoredMessage record(const std::string& id, WallTime now) {
  StoredMessage made;
  made.message.id = id;
  made.message.body = "body of " + id;
  made.message.sent_at = now;
  made.version = 1;
  made.created_at = now;
  made.updated_at = now;
  return made;
}

}  // namespace

TEST_P(StoreContract, PutOfWhatWasListedGivesTheSameQueue) {
  one_in_each_state();
  send_content("json", R"({"n":12345678901234567890,"a":[1,null]})", queue::kJson);
  send_content("bytes", std::string("\x00\xFF\x80", 3), queue::kOctetStream);
  queue::NewMessage rich{
      .id = "rich", .body = "a;b", .content_type = "text/csv", .attributes = {{"k", "v"}}, .group = "g"};
  ASSERT_EQ(desk().send(queue_name(), std::span(&rich, 1), soon())[0].status, queue::SendStatus::sent);
  clock().advance(1ms);
  const queue::QueueAddress other{under_test().other_queue(), Half::standard};
  const queue::QueueAddress other_dlq{under_test().other_queue(), Half::dlq};
  for (const auto& [from, to] : {std::pair(standard(), other), std::pair(dlq(), other_dlq)}) {
    const std::vector<StoredMessage> originals = list_all(from, true, true);
    ASSERT_FALSE(originals.empty());
    for (const PutStatus status : statuses(desk().put(to.queue, originals, PutMode::insert, soon()))) {
      EXPECT_EQ(status, PutStatus::written);
    }
    const std::vector<StoredMessage> copies = list_all(to, true, true);
    ASSERT_EQ(copies.size(), originals.size());
    for (std::size_t i = 0; i < copies.size(); ++i) {
      expect_same(copies[i], originals[i]);
    }
    const queue::QueueStats a = stats(from);
    const queue::QueueStats b = stats(to);
    EXPECT_EQ(a.ready, b.ready);
    EXPECT_EQ(a.in_flight, b.in_flight);
    EXPECT_EQ(a.delayed, b.delayed);
    EXPECT_EQ(ids_of(claim_all(from)), ids_of(claim_all(to)));
    clock().advance(3000s);
    EXPECT_EQ(claim_all(from).size(), originals.size());
    EXPECT_EQ(claim_all(to).size(), originals.size());
  }
}

TEST_P(StoreContract, PutRecordsAreWorkedOnLikeOthers) {
  const WallTime now = clock().wall_now();
  StoredMessage tried = record("tried", now - 10s);
  tried.version = 41;
  tried.message.attempt = 3;
  tried.failure = failure("third time");
  StoredMessage held = record("held", now - 9s);
  held.version = 7;
  held.message.attempt = 1;
  held.received_at = now - 1s;
  held.invisible_until = now + 30s;
  StoredMessage later = record("later", now + 60s);
  const std::vector<StoredMessage> records{tried, held, later};
  EXPECT_THAT(statuses(desk().put(queue_name(), records, PutMode::insert, soon())),
              ElementsAre(PutStatus::written, PutStatus::written, PutStatus::written));
  const queue::QueueStats seen = stats(standard());
  EXPECT_EQ(seen.ready, 1U);
  EXPECT_EQ(seen.in_flight, 1U);
  EXPECT_EQ(seen.delayed, 1U);
  const queue::Delivery claimed = claim_one(standard());
  EXPECT_EQ(claimed.message.id, "tried");
  EXPECT_EQ(claimed.message.attempt, 4U);
  EXPECT_EQ(claimed.receipt.version, 42);
  EXPECT_EQ(settle(standard(), claimed.receipt, CompletionAction::remove), SettleStatus::applied);
  EXPECT_TRUE(claim(standard()).empty());
  clock().advance(31s);
  EXPECT_EQ(claim_one(standard()).message.id, "held");
  clock().advance(61s);
  const auto rest = claim_all(standard());
  EXPECT_THAT(ids_of(rest), ElementsAre("held", "later"));
  EXPECT_EQ(change({.id = "later", .action = queue::ChangeAction::remove}).status, queue::ChangeStatus::applied);
  // Its id is taken like any other.
  const queue::NewMessage again{.id = "held", .body = "x"};
  EXPECT_EQ(desk().send(queue_name(), std::span(&again, 1), soon())[0].status, queue::SendStatus::duplicate_id);
}

// Every write that ends a lease clears the time of receiving; what counts the attempts does not matter.
TEST_P(StoreContract, InFlightIsWhatIsHiddenAndReceived) {
  const WallTime now = clock().wall_now();
  StoredMessage held = record("held", now - 9s);
  held.half = Half::dlq;
  held.received_at = now - 1s;
  held.invisible_until = now + 30s;
  StoredMessage waiting = record("waiting", now - 8s);
  waiting.half = Half::dlq;
  waiting.message.attempt = 3;
  waiting.invisible_until = now + 30s;
  const std::vector<StoredMessage> records{held, waiting};
  ASSERT_THAT(statuses(desk().put(queue_name(), records, PutMode::insert, soon())),
              ElementsAre(PutStatus::written, PutStatus::written));
  const queue::QueueStats seen = stats(dlq());
  EXPECT_EQ(seen.in_flight, 1U);
  EXPECT_EQ(seen.delayed, 1U);
  EXPECT_EQ(desk().get(queue_name(), "held", soon())->state(now), queue::MessageState::in_flight);
  EXPECT_EQ(desk().get(queue_name(), "waiting", soon())->state(now), queue::MessageState::delayed);
  EXPECT_EQ(change({.id = "held", .action = queue::ChangeAction::redrive}).status, queue::ChangeStatus::conflict);
  EXPECT_EQ(change({.id = "waiting", .action = queue::ChangeAction::redrive}).status, queue::ChangeStatus::applied);
}

TEST_P(StoreContract, PutInsertsOnlyWhereTheIdIsFree) {
  send("taken");
  send_to_dlq("dead", failure("no"));
  const WallTime now = clock().wall_now();
  std::vector<StoredMessage> records{record("taken", now), record("free", now), record("dead", now)};
  records[0].message.body = "other";
  EXPECT_THAT(statuses(desk().put(queue_name(), records, PutMode::insert, soon())),
              ElementsAre(PutStatus::exists, PutStatus::written, PutStatus::exists));
  EXPECT_EQ(get("taken").message.body, "body of taken");
  EXPECT_EQ(get("dead").half, Half::dlq);
  EXPECT_EQ(stats(standard()).total(), 2U);
}

TEST_P(StoreContract, PutReplacesWhateverIsThere) {
  send("ready");
  send_to_dlq("dead", failure("no"));
  const WallTime now = clock().wall_now();
  std::vector<StoredMessage> records{record("ready", now), record("dead", now), record("new", now)};
  records[0].message.body = "replaced";
  records[0].half = Half::dlq;
  EXPECT_THAT(statuses(desk().put(queue_name(), records, PutMode::replace, soon())),
              ElementsAre(PutStatus::written, PutStatus::written, PutStatus::written));
  EXPECT_EQ(get("ready").message.body, "replaced");
  EXPECT_EQ(get("ready").half, Half::dlq);
  EXPECT_EQ(get("dead").half, Half::standard);
  EXPECT_TRUE(get("dead").failure.empty());
  EXPECT_EQ(stats(standard()).total(), 2U);
  EXPECT_EQ(stats(dlq()).total(), 1U);
  clock().advance(1ms);
  EXPECT_EQ(claim_all(standard()).size(), 2U);
  EXPECT_EQ(claim_one(dlq()).message.body, "replaced");
}

TEST_P(StoreContract, PutKeepsTheNativeRecord) {
  StoredMessage made = record("N-1", clock().wall_now());
  made.native = R"({"id":{"S":"N-1"},"colour":{"SS":["blue","red"]}})";
  StoredMessage plain = record("N-2", clock().wall_now());
  ASSERT_THAT(statuses(desk().put(queue_name(), std::vector{made, plain}, PutMode::insert, soon())),
              ElementsAre(PutStatus::written, PutStatus::written));
  const auto check = [this] {
    for (const StoredMessage& shown : list_all(standard(), true, true)) {
      if (shown.message.id == "N-1") {
        EXPECT_THAT(shown.native, HasSubstr("colour"));
        EXPECT_THAT(shown.native, HasSubstr("blue"));
        EXPECT_EQ(shown.message.body, "body of N-1");
      } else {
        EXPECT_EQ(shown.native, "");
      }
    }
    for (const StoredMessage& shown : list_all(standard())) {
      EXPECT_EQ(shown.native, "") << "nobody asked for it";
    }
  };
  check();
  clock().advance(1ms);
  claim_all(standard());
  EXPECT_EQ(change({.id = "N-1", .action = queue::ChangeAction::reset}).status, queue::ChangeStatus::applied);
  check();
}

TEST_P(StoreContract, PutRefusesWhatItCannotKeep) {
  const WallTime now = clock().wall_now();
  std::vector<StoredMessage> records{record("", now), record(std::string(traits().max_id + 1, 'i'), now),
                                     record("large", now), record("good", now)};
  records[2].message.body.assign(traits().max_body + 1, 'L');
  const auto results = desk().put(queue_name(), records, PutMode::replace, soon());
  EXPECT_THAT(statuses(results),
              ElementsAre(PutStatus::failed, PutStatus::failed, PutStatus::failed, PutStatus::written));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(results[static_cast<std::size_t>(i)].error.code(), ErrorCode::invalid);
  }
  EXPECT_EQ(stats(standard()).total(), 1U);
  const auto late = desk().put(queue_name(), records, PutMode::replace, passed());
  EXPECT_EQ(late.at(3).status, PutStatus::failed);
  EXPECT_EQ(late.at(3).error.code(), ErrorCode::timeout) << late.at(3).error.message();
  EXPECT_TRUE(desk().put(queue_name(), {}, PutMode::insert, soon()).empty());
}

TEST_P(StoreContract, PutOfMany) {
  std::vector<StoredMessage> records;
  records.reserve(700);
  for (int i = 0; i < 700; ++i) {
    records.push_back(record("p" + std::to_string(i), clock().wall_now() + Duration(i)));
  }
  for (const PutStatus status : statuses(desk().put(queue_name(), records, PutMode::insert, soon()))) {
    ASSERT_EQ(status, PutStatus::written);
  }
  EXPECT_EQ(stats(standard()).total(), 700U);
  for (const PutStatus status : statuses(desk().put(queue_name(), records, PutMode::insert, soon()))) {
    ASSERT_EQ(status, PutStatus::exists);
  }
}

}  // namespace sluice::test
