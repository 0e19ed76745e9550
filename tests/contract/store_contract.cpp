#include "tests/contract/store_contract.hpp"

#include <cstdio>

namespace sluice::test {

using queue::CompletionAction;
using queue::Delivery;
using queue::NewMessage;
using queue::QueueAddress;
using queue::SettleStatus;

void StoreContract::SetUp() {
  under_test_ = GetParam().make();
  if (!under_test_) {
    GTEST_SKIP() << GetParam().absence;
  }
  desk_ = std::make_unique<Desk>(under_test_->queues());
}

void StoreContract::send(const std::string& id, Duration delay) {
  NewMessage message;
  message.id = id;
  message.body = "body of " + id;
  message.delay = delay;
  const auto results = desk().send(queue_name(), std::span(&message, 1), soon());
  ASSERT_EQ(results.size(), 1U);
  ASSERT_EQ(results[0].status, queue::SendStatus::sent) << results[0].error.message();
  clock().advance(1ms);
}

std::vector<std::string> StoreContract::send_many(std::size_t count, const std::string& prefix) {
  std::vector<std::string> ids;
  std::vector<NewMessage> batch;
  for (std::size_t i = 0; i < count; ++i) {
    char digits[24];
    std::snprintf(digits, sizeof(digits), "%04zu", i);
    NewMessage message;
    message.id = prefix + digits;
    message.body = "body of " + message.id;
    ids.push_back(message.id);
    batch.push_back(std::move(message));
    if (batch.size() == 25 || i + 1 == count) {
      for (const auto& result : desk().send(queue_name(), batch, soon())) {
        EXPECT_EQ(result.status, queue::SendStatus::sent) << result.error.message();
      }
      batch.clear();
      clock().advance(1ms);
    }
  }
  return ids;
}

std::vector<Delivery> StoreContract::claim(const QueueAddress& address, std::size_t max, Duration visibility) {
  auto claims = desk().claim(address, max, visibility, soon());
  if (!claims) {
    ADD_FAILURE() << "claim failed: " << claims.error().message();
    return {};
  }
  EXPECT_LE(claims->size(), max);
  return std::move(*claims);
}

Delivery StoreContract::claim_one(const QueueAddress& address, Duration visibility) {
  auto claims = claim(address, 1, visibility);
  if (claims.size() != 1) {
    ADD_FAILURE() << "nothing to claim";
    return {};
  }
  return std::move(claims[0]);
}

queue::Claimed StoreContract::claim_as(const QueueAddress& address, queue::ClaimRequest request) {
  if (request.visibility == Duration::zero()) {
    request.visibility = 30s;
  }
  auto claimed = desk().source(address).claim(request, soon());
  if (!claimed) {
    ADD_FAILURE() << "claim failed: " << claimed.error().message();
    return {};
  }
  return std::move(*claimed);
}

Delivery StoreContract::claim_and_die(const QueueAddress& address) {
  Delivery held = claim_one(address, 1s);
  clock().advance(2s);
  return held;
}

std::vector<Delivery> StoreContract::claim_all(const QueueAddress& address, std::size_t max) {
  std::vector<Delivery> all;
  while (all.size() < max) {
    auto claims = claim(address, max - all.size());
    if (claims.empty()) {
      break;
    }
    std::move(claims.begin(), claims.end(), std::back_inserter(all));
  }
  return all;
}

SettleStatus StoreContract::settle(const QueueAddress& address, const queue::Receipt& receipt, CompletionAction action,
                                   Duration delay, queue::Failure failure) {
  const queue::Completion settlement{
      .receipt = receipt, .action = action, .delay = delay, .failure = std::move(failure)};
  const auto results = desk().settle(address, std::span(&settlement, 1), soon());
  if (results.size() != 1) {
    ADD_FAILURE() << "one settlement, " << results.size() << " results";
    return SettleStatus::failed;
  }
  EXPECT_NE(results[0].status, SettleStatus::failed) << results[0].error.message();
  clock().advance(1ms);
  return results[0].status;
}

queue::SettleResult StoreContract::settle_with(const queue::Receipt& receipt, queue::Effects effects) {
  const queue::Completion completion{.receipt = receipt,
                                     .effects = std::make_shared<const queue::Effects>(std::move(effects))};
  auto results = desk().settle(standard(), std::span(&completion, 1), soon());
  return results.size() == 1 ? std::move(results[0]) : queue::SettleResult{SettleStatus::failed, {}};
}

queue::StoredMessage StoreContract::get(const std::string& id) {
  auto stored = desk().get(queue_name(), id, soon());
  if (!stored) {
    ADD_FAILURE() << "get " << id << ": " << stored.error().message();
    return {};
  }
  return std::move(*stored);
}

bool StoreContract::absent(const std::string& id) {
  const auto stored = desk().get(queue_name(), id, soon());
  if (stored) {
    return false;
  }
  EXPECT_EQ(stored.error().code(), ErrorCode::not_found) << stored.error().message();
  return true;
}

queue::QueueStats StoreContract::stats(const QueueAddress& address) {
  auto stats = desk().stats(address, soon());
  if (!stats) {
    ADD_FAILURE() << "stats: " << stats.error().message();
    return {};
  }
  return *stats;
}

void StoreContract::send_to_dlq(const std::string& id, const queue::Failure& failure) {
  send(id);
  const auto moved = desk().dead_letter(queue_name(), id, failure, soon());
  ASSERT_TRUE(moved) << moved.error().message();
  clock().advance(1ms);
}

queue::Failure StoreContract::failure(const std::string& error) {
  return {.error = error, .handler = "verify-file", .host = "worker-a", .attempts = 3, .failed_at = clock().wall_now()};
}

void StoreContract::send_content(const std::string& id, const std::string& body, std::string_view content_type) {
  NewMessage message;
  message.id = id;
  message.body = body;
  message.content_type = content_type;
  const auto results = desk().send(queue_name(), std::span(&message, 1), soon());
  ASSERT_EQ(results.size(), 1U);
  ASSERT_EQ(results[0].status, queue::SendStatus::sent) << results[0].error.message();
  clock().advance(1ms);
}

queue::ChangeResult StoreContract::change(const queue::Change& change) {
  auto results = desk().change(queue_name(), std::span(&change, 1), soon());
  if (results.size() != 1) {
    ADD_FAILURE() << "one change, " << results.size() << " results";
    return {};
  }
  clock().advance(1ms);
  return std::move(results[0]);
}

std::vector<Actor> StoreContract::one_in_each_state() {
  std::vector<Actor> actors;
  send_to_dlq("dead-waiting", failure("first"));
  EXPECT_EQ(settle(dlq(), claim_one(dlq()).receipt, CompletionAction::retry, 1000s), SettleStatus::applied);
  actors.push_back({"dead-waiting"});
  send_to_dlq("dead-flying", failure("second"));
  actors.push_back({"dead-flying", claim_one(dlq(), 2000s).receipt, dlq()});
  send_to_dlq("dead", failure("third"));
  actors.push_back({"dead"});
  send("expired");
  actors.push_back({"expired", claim_one(standard(), 1s).receipt, standard()});
  send("flying");
  actors.push_back({"flying", claim_one(standard(), 2000s).receipt, standard()});
  send("waiting");
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::retry, 1000s, failure("once")),
            SettleStatus::applied);
  actors.push_back({"waiting"});
  send("delayed", 1000s);
  actors.push_back({"delayed"});
  clock().advance(5s);
  send("ready");
  actors.push_back({"ready"});
  return actors;
}

queue::StoredMessage StoreContract::change_actor(const Actor& actor, queue::Change change) {
  const queue::StoredMessage before = get(actor.id);
  change.id = actor.id;
  const WallTime now = clock().wall_now();
  const queue::ChangeResult result = this->change(change);
  EXPECT_EQ(result.status, queue::ChangeStatus::applied) << result.error.message();
  queue::StoredMessage after = get(actor.id);
  EXPECT_EQ(after.version, before.version + 1);
  EXPECT_EQ(result.version, after.version);
  EXPECT_EQ(after.updated_at, now);
  EXPECT_EQ(after.message.body, before.message.body);
  EXPECT_EQ(after.message.content_type, before.message.content_type);
  EXPECT_EQ(after.message.attributes, before.message.attributes);
  EXPECT_EQ(after.message.group, before.message.group);
  if (actor.receipt) {
    EXPECT_EQ(settle(actor.address, *actor.receipt, CompletionAction::remove), SettleStatus::lost);
  }
  return after;
}

queue::MessageState StoreContract::state(const std::string& id) { return get(id).state(clock().wall_now()); }

Result<queue::StoredMessage> StoreContract::edit(const std::string& id, const std::vector<queue::ContentEdit>& edits) {
  return desk().edit(queue_name(), id, get(id).version, edits, soon());
}

std::vector<queue::StoredMessage> StoreContract::list_all(const QueueAddress& address, bool content, bool native) {
  std::vector<queue::StoredMessage> all;
  queue::ListRequest request{.half = address.half, .limit = 100, .cursor = {}, .content = content, .native = native};
  do {
    auto page = desk().list(address.queue, request, soon());
    if (!page) {
      ADD_FAILURE() << "list: " << page.error().message();
      break;
    }
    std::move(page->messages.begin(), page->messages.end(), std::back_inserter(all));
    request.cursor = page->next;
  } while (!request.cursor.empty());
  return all;
}

std::vector<std::string> ids_of(const std::vector<Delivery>& claims) {
  std::vector<std::string> ids;
  ids.reserve(claims.size());
  for (const Delivery& claim : claims) {
    ids.push_back(claim.message.id);
  }
  return ids;
}

std::string store_name(const ::testing::TestParamInfo<StoreFactory>& info) { return info.param.name; }

}  // namespace sluice::test
