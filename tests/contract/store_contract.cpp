#include "tests/contract/store_contract.hpp"

#include <cstdio>

namespace sluice::test {

using queue::Claim;
using queue::NewMessage;
using queue::QueueAddress;
using queue::SettleAction;
using queue::SettleStatus;

void StoreContract::SetUp() {
  under_test_ = GetParam().make();
  if (!under_test_) {
    GTEST_SKIP() << GetParam().absence;
  }
}

void StoreContract::send(const std::string& id, Duration delay) {
  NewMessage message;
  message.id = id;
  message.body = "body of " + id;
  message.delay = delay;
  const auto results = store().send(queue_name(), std::span(&message, 1), soon());
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
      for (const auto& result : store().send(queue_name(), batch, soon())) {
        EXPECT_EQ(result.status, queue::SendStatus::sent) << result.error.message();
      }
      batch.clear();
      clock().advance(1ms);
    }
  }
  return ids;
}

std::vector<Claim> StoreContract::claim(const QueueAddress& address, std::size_t max, Duration visibility) {
  auto claims = store().claim(address, max, visibility, soon());
  if (!claims) {
    ADD_FAILURE() << "claim failed: " << claims.error().message();
    return {};
  }
  EXPECT_LE(claims->size(), max);
  return std::move(*claims);
}

Claim StoreContract::claim_one(const QueueAddress& address, Duration visibility) {
  auto claims = claim(address, 1, visibility);
  if (claims.size() != 1) {
    ADD_FAILURE() << "nothing to claim";
    return {};
  }
  return std::move(claims[0]);
}

std::vector<Claim> StoreContract::claim_all(const QueueAddress& address, std::size_t max) {
  std::vector<Claim> all;
  while (all.size() < max) {
    auto claims = claim(address, max - all.size());
    if (claims.empty()) {
      break;
    }
    std::move(claims.begin(), claims.end(), std::back_inserter(all));
  }
  return all;
}

SettleStatus StoreContract::settle(const QueueAddress& address, const queue::Receipt& receipt, SettleAction action,
                                   Duration delay, queue::Failure failure) {
  const queue::Settlement settlement{
      .receipt = receipt, .action = action, .delay = delay, .failure = std::move(failure)};
  const auto results = store().settle(address, std::span(&settlement, 1), soon());
  if (results.size() != 1) {
    ADD_FAILURE() << "one settlement, " << results.size() << " results";
    return SettleStatus::failed;
  }
  EXPECT_NE(results[0].status, SettleStatus::failed) << results[0].error.message();
  clock().advance(1ms);
  return results[0].status;
}

queue::StoredMessage StoreContract::get(const std::string& id) {
  auto stored = store().get(queue_name(), id, soon());
  if (!stored) {
    ADD_FAILURE() << "get " << id << ": " << stored.error().message();
    return {};
  }
  return std::move(*stored);
}

bool StoreContract::absent(const std::string& id) {
  const auto stored = store().get(queue_name(), id, soon());
  if (stored) {
    return false;
  }
  EXPECT_EQ(stored.error().code(), ErrorCode::not_found) << stored.error().message();
  return true;
}

queue::QueueStats StoreContract::stats(const QueueAddress& address) {
  auto stats = store().stats(address, soon());
  if (!stats) {
    ADD_FAILURE() << "stats: " << stats.error().message();
    return {};
  }
  return *stats;
}

void StoreContract::send_to_dlq(const std::string& id, const queue::Failure& failure) {
  send(id);
  const auto moved = store().dead_letter(queue_name(), id, failure, soon());
  ASSERT_TRUE(moved) << moved.error().message();
  clock().advance(1ms);
}

queue::Failure StoreContract::failure(const std::string& error) {
  return {.error = error, .handler = "verify-file", .host = "worker-a", .attempts = 3, .failed_at = clock().wall_now()};
}

std::vector<std::string> ids_of(const std::vector<Claim>& claims) {
  std::vector<std::string> ids;
  for (const Claim& claim : claims) {
    ids.push_back(claim.message.id);
  }
  return ids;
}

std::string store_name(const ::testing::TestParamInfo<StoreFactory>& info) { return info.param.name; }

}  // namespace sluice::test
