#include "dynamo/retry.hpp"

#include <gtest/gtest.h>

namespace sluice::dynamo {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kLongTime = std::chrono::hours(1);

Error error_of(ErrorKind kind) { return {kind, "x"}; }

/// What can be taken.
int tokens_in(RetryQuota& quota) {
  int tokens = 0;
  while (quota.take(1)) {
    ++tokens;
  }
  quota.give(tokens);
  return tokens;
}

TEST(RetryPolicy, RepeatsOnlyWhatMayPassByItself) {
  for (const auto kind : {ErrorKind::transport, ErrorKind::timeout, ErrorKind::throttled, ErrorKind::server,
                          ErrorKind::malformed_response}) {
    EXPECT_TRUE(RetryPolicy::repeatable(error_of(kind))) << to_string(kind);
  }
  for (const auto kind : {ErrorKind::conditional_check_failed, ErrorKind::resource_not_found, ErrorKind::access_denied,
                          ErrorKind::no_credentials, ErrorKind::validation, ErrorKind::cancelled}) {
    EXPECT_FALSE(RetryPolicy::repeatable(error_of(kind))) << to_string(kind);
  }
}

TEST(RetryPolicy, NeverRepeatsAnUnknownOutcome) {
  const RetryPolicy policy;
  RetryQuota quota;
  for (const auto kind : {ErrorKind::transport, ErrorKind::timeout, ErrorKind::server, ErrorKind::malformed_response,
                          ErrorKind::throttled}) {
    Error error = error_of(kind);
    error.outcome_unknown = true;
    RetryState state{.attempts = 1};
    EXPECT_FALSE(policy.next_delay(error, state, quota, 0.5, kLongTime)) << to_string(kind);
  }
  EXPECT_EQ(tokens_in(quota), RetryQuota::kCapacity);
}

TEST(RetryPolicy, MakesFourAttempts) {
  const RetryPolicy policy;
  RetryQuota quota;
  RetryState state;
  const Error error = error_of(ErrorKind::server);
  for (state.attempts = 1; state.attempts < 4; ++state.attempts) {
    EXPECT_TRUE(policy.next_delay(error, state, quota, 0.5, kLongTime)) << state.attempts;
  }
  EXPECT_FALSE(policy.next_delay(error, state, quota, 0.5, kLongTime));
}

TEST(RetryPolicy, DoublesTheBackoffUpToItsLimit) {
  const RetryPolicy policy;
  const Error server = error_of(ErrorKind::server);
  const Error throttled = error_of(ErrorKind::throttled);
  EXPECT_EQ(policy.backoff(server, 1, 1.0), milliseconds(25));
  EXPECT_EQ(policy.backoff(server, 2, 1.0), milliseconds(50));
  EXPECT_EQ(policy.backoff(server, 3, 1.0), milliseconds(100));
  EXPECT_EQ(policy.backoff(server, 40, 1.0), seconds(20));
  EXPECT_EQ(policy.backoff(server, 100'000, 1.0), seconds(20));
  EXPECT_EQ(policy.backoff(throttled, 1, 1.0), seconds(1));
  EXPECT_EQ(policy.backoff(throttled, 4, 1.0), seconds(8));
  EXPECT_EQ(policy.backoff(throttled, 6, 1.0), seconds(20));
  EXPECT_EQ(policy.backoff(server, 2, 0.5), milliseconds(25));
  EXPECT_EQ(policy.backoff(server, 2, 0.0), Duration::zero());
}

TEST(RetryPolicy, HonoursRetryAfterWithinFiveSecondsOfItsOwnWait) {
  const RetryPolicy policy;
  Error error = error_of(ErrorKind::throttled);
  error.retry_after_ms = 3000;
  EXPECT_EQ(policy.backoff(error, 1, 0.5), seconds(3));
  error.retry_after_ms = 60'000;
  EXPECT_EQ(policy.backoff(error, 1, 0.5), milliseconds(5500));
  error.retry_after_ms = 0;
  EXPECT_EQ(policy.backoff(error, 1, 0.5), milliseconds(500));
}

TEST(RetryPolicy, NeverWaitsPastTheDeadline) {
  const RetryPolicy policy;
  RetryQuota quota;
  RetryState state{.attempts = 1};
  const Error error = error_of(ErrorKind::throttled);
  EXPECT_FALSE(policy.next_delay(error, state, quota, 0.5, milliseconds(500)));
  EXPECT_EQ(tokens_in(quota), RetryQuota::kCapacity);
  EXPECT_TRUE(policy.next_delay(error, state, quota, 0.5, milliseconds(501)));
}

TEST(RetryQuota, PaysForRetriesAndGetsBackWhatTheLastOneTook) {
  const RetryPolicy policy;
  RetryQuota quota;
  RetryState state{.attempts = 1};
  policy.next_delay(error_of(ErrorKind::server), state, quota, 0, kLongTime);
  EXPECT_EQ(tokens_in(quota), 486);
  state.attempts = 2;
  policy.next_delay(error_of(ErrorKind::throttled), state, quota, 0, kLongTime);
  EXPECT_EQ(tokens_in(quota), 481);
  RetryPolicy::succeeded(state, quota);
  EXPECT_EQ(tokens_in(quota), 486);
  RetryPolicy::succeeded(RetryState{.attempts = 1}, quota);
  EXPECT_EQ(tokens_in(quota), 487);
}

TEST(RetryQuota, NeverExceedsItsCapacity) {
  RetryQuota quota;
  RetryPolicy::succeeded(RetryState{.attempts = 1}, quota);
  quota.give(1000);
  EXPECT_EQ(tokens_in(quota), 500);
}

TEST(RetryQuota, StopsRetriesWhenItIsUsedUp) {
  const RetryPolicy policy;
  RetryQuota quota;
  int retries = 0;
  for (int call = 0; call < 1000; ++call) {
    RetryState state{.attempts = 1};
    retries += policy.next_delay(error_of(ErrorKind::server), state, quota, 0, kLongTime) ? 1 : 0;
  }
  EXPECT_EQ(retries, 500 / 14);
  // What is left pays for a throttle still.
  RetryState state{.attempts = 1};
  EXPECT_TRUE(policy.next_delay(error_of(ErrorKind::throttled), state, quota, 0, kLongTime));
}

}  // namespace
}  // namespace sluice::dynamo
