// How soon a new host begins behind messages in flight: requests and units, counted by the model of DynamoDB, and the
// virtual time that they take.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/timestamp.hpp"
#include "dynamo/client.hpp"
#include "host/queue/queues.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/transport.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::queue::dynamomq {
namespace {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;

constexpr Duration kRoundTrip = 20ms;
constexpr double kUnitsPerSecond = 1'000;  // that one query reads

/// A host on a table with a heavy head.
class BehindAHead : public ::testing::Test {
 protected:
  BehindAHead() {
    dynamodb::TableSpec spec;
    spec.table = "orders";
    EXPECT_TRUE(dynamodb::create_queue_table(client_, spec, clock_, Deadline::never()));
  }

  /// Sent 10 ms after each other, the last one now.
  void fill(int in_flight, int ready, std::size_t bytes) {
    const WallTime now = clock_.wall_now();
    const std::string hidden_until = format_timestamp(now + 1h);
    for (int i = 0; i < in_flight + ready; ++i) {
      const bool held = i < in_flight;
      const std::string sent = format_timestamp(now - 10ms * (in_flight + ready - 1 - i));
      dynamo::ItemWrite put;
      put.table = "orders";
      put.item = {{"id", "m" + std::to_string(i)},
                  {"data", "\"" + std::string(bytes, 'x') + "\""},
                  {"queue_type", "STANDARD"},
                  {"version", dynamo::Number{held ? "2" : "1"}},
                  {"receive_count", dynamo::Number{held ? "1" : "0"}},
                  {"created_at", sent},
                  {"last_updated_at", sent},
                  {"sent_at", sent},
                  {"received_at", held ? sent : std::string()},
                  {"invisible_until_at", held ? hidden_until : std::string()}};
      ASSERT_TRUE(client_.write(put, Deadline::never()));
    }
  }

  struct Begun {
    std::uint64_t queries = 0;
    double units = 0;
    Duration after{};
  };
  /// Claims as a host's poller does until there is a message.
  Begun begin() {
    const auto before = model_.counters();
    const SteadyTime start = clock_.steady_now();
    in_time_ = true;
    const auto source = queues_->open_source({"orders"});
    EXPECT_TRUE(source);
    Duration pause = 10ms;
    for (int tries = 0; tries < 100; ++tries) {
      const auto claimed = (*source)->claim({.max = 4, .visibility = 30s}, Deadline::never());
      EXPECT_TRUE(claimed);
      if (claimed && !claimed->deliveries.empty()) {
        break;
      }
      clock_.advance(pause);
      pause = std::min<Duration>(2 * pause, 1s);
    }
    auto after = model_.counters();
    auto earlier = before.requests;
    return {after.requests["Query"] - earlier["Query"], after.read_units - before.read_units,
            clock_.steady_now() - start};
  }
  void print(const char* what, const Begun& begun) const {
    std::printf("%s: %llu queries, %.1f RCU, %lld ms\n", what, static_cast<unsigned long long>(begun.queries),
                begun.units, static_cast<long long>(begun.after / 1ms));
  }

 private:
  void pass(Duration) {
    const double units = model_.counters().read_units;
    if (in_time_) {
      clock_.advance(kRoundTrip + std::chrono::duration_cast<Duration>(
                                      std::chrono::duration<double>((units - units_) / kUnitsPerSecond)));
    }
    units_ = units;
  }

  test::FakeClock clock_;
  bool in_time_ = false;
  double units_ = 0;
  SeededRandom random_{7};
  test::model::Model model_{clock_, 7};
  test::model::ModelTransport transport_{model_, clock_, [this](Duration took) { pass(took); }};
  test::model::FixedCredentials credentials_;
  dynamo::Client client_{[] {
                           dynamo::ClientOptions options;
                           options.region = "us-east-1";
                           return options;
                         }(),
                         transport_, credentials_, clock_, random_};
  std::unique_ptr<Queues> queues_ =
      make_dynamomq_queues({{.host = "a", .region = "us-east-1"}}, client_, clock_, random_);
};

TEST_F(BehindAHead, OfTwentyThousandAHostBeginsWithinASecond) {
  fill(20'000, 4, 200);
  const Begun begun = begin();
  print("behind 20,000 in flight", begun);
  EXPECT_LE(begun.queries, 20U);
  EXPECT_LE(begun.units, 120);
  EXPECT_LE(begun.after, 1s);
}

}  // namespace
}  // namespace sluice::queue::dynamomq
