#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/timestamp.hpp"
#include "client/src/core.hpp"
#include "host/queue/queues.hpp"
#include "sluice/client.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::client {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""ns;

/// When DynamoMQ's own tests play: 2023-12-01T00:00:00Z.
inline constexpr WallTime kT0{std::chrono::seconds(1'701'388'800)};

/// A client on somebody else's store and clock.
QueueClient make_client(queue::Queues& queues, const Clock& clock, Random& random, const std::string& queue,
                        const ClientOptions& options = {});

/// One store on fresh ground, the clock at T0 and in the test's hand.
class StoreOfTest {
 public:
  StoreOfTest() = default;
  StoreOfTest(const StoreOfTest&) = delete;
  StoreOfTest& operator=(const StoreOfTest&) = delete;
  virtual ~StoreOfTest() = default;

  virtual queue::Queues& queues() = 0;
  virtual test::FakeClock& clock() = 0;
};

/// How a test gets one; null: the emulator is not there.
struct StoreKind {
  const char* name;
  std::unique_ptr<StoreOfTest> (*make)();
};
std::unique_ptr<StoreOfTest> sqlite_of_test();
std::unique_ptr<StoreOfTest> dynamomq_of_test();
std::unique_ptr<StoreOfTest> dynamomq_without_partiql();
inline void PrintTo(const StoreKind& kind, std::ostream* out) { *out << kind.name; }
inline std::string kind_name(const ::testing::TestParamInfo<StoreKind>& info) { return info.param.name; }
std::string absence_of_emulator();

/// A client on either store, with the records that DynamoMQ's tests begin with.
class ClientTest : public ::testing::TestWithParam<StoreKind> {
 protected:
  void SetUp() override;

  queue::Queues& queues() { return of_test_->queues(); }
  test::FakeClock& clock() { return of_test_->clock(); }
  QueueClient& client() { return *client_; }
  QueueClient client_with(const ClientOptions& options) {
    return make_client(queues(), clock(), random_, "orders", options);
  }
  Deadline soon() { return Deadline::after(clock(), 60s); }

  /// Sets the clock to T0 + `span`.
  /// Time passes until then; a time that is over comes again.
  void at(Duration span) {
    const Duration ahead = kT0 + span - clock().wall_now();
    ahead > Duration::zero() ? clock().advance(ahead) : clock().set_wall(kT0 + span);
  }
  void seed_ready(const std::string& id, Duration when = {});
  /// As if received at that time for 30 s; version 1 and receive count 0, as in DynamoMQ's tests.
  void seed_processing(const std::string& id, Duration when = {});
  void seed_dlq(const std::string& id, Duration when = {});
  /// Received once in the DLQ: what nobody has received is hidden there, but not in flight.
  void seed_dlq_processing(const std::string& id, Duration when = {});
  void seed(queue::StoredMessage record);
  /// The record, which must be there.
  Message get(const std::string& id);

  static queue::StoredMessage record(const std::string& id, Duration when);

 private:
  std::unique_ptr<StoreOfTest> of_test_;
  SeededRandom random_{7};
  std::unique_ptr<QueueClient> client_;
};

/// Instantiates a suite for both stores, and for a role that may write to DynamoDB by single requests only.
#define SLUICE_ON_BOTH_STORES(suite)                                                                    \
  INSTANTIATE_TEST_SUITE_P(                                                                             \
      Conformance, suite,                                                                               \
      ::testing::Values(StoreKind{"Sqlite", &sqlite_of_test}, StoreKind{"DynamoMq", &dynamomq_of_test}, \
                        StoreKind{"DynamoMqWithoutPartiQl", &dynamomq_without_partiql}),                \
      kind_name)

/// The kind of a result that must be an error; a value fails the test.
template <typename T>
std::string error_name(const Result<T>& result) {
  return result ? std::string("no error") : std::string(result.error().name());
}

}  // namespace sluice::client
