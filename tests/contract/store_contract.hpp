#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/queue/effects.hpp"
#include "tests/support/desk.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {

using std::chrono_literals::operator""h;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""ns;

/// One implementation of Queues on fresh ground, with the clock it was given.
class StoreUnderTest {
 public:
  StoreUnderTest() = default;
  StoreUnderTest(const StoreUnderTest&) = delete;
  StoreUnderTest& operator=(const StoreUnderTest&) = delete;
  virtual ~StoreUnderTest() = default;

  virtual queue::Queues& queues() = 0;
  virtual FakeClock& clock() = 0;
  /// An empty queue that exists where queues must be made, and another beside it.
  virtual std::string queue() { return "orders"; }
  virtual std::string other_queue() { return "invoices"; }
  /// A queue that nobody has made or sent to.
  virtual std::string absent_queue() { return "nowhere"; }

  // A table of the user's beside the queues: balances by name, empty. Null where the store has none.

  /// Opens an account; refused where there is one of that name.
  virtual queue::EffectWrite open_account(const std::string& /*name*/, std::int64_t /*balance*/) { return {}; }
  /// Adds to an account; refused where there is none of that name.
  virtual queue::EffectWrite add_to_account(const std::string& /*name*/, std::int64_t /*amount*/) { return {}; }
  virtual std::optional<std::int64_t> balance(const std::string& /*name*/) { return std::nullopt; }
};

/// A message that has been brought into some state, and the receipt of whoever holds it there.
struct Actor {
  std::string id;
  std::optional<queue::Receipt> receipt{};
  queue::QueueAddress address{};
};

/// In what an implementation may differ from the others.
struct StoreTraits {
  std::size_t max_body = 0;          ///< bodies above it are ErrorCode::invalid; 0: no limit worth testing
  std::size_t max_id = 2048;         ///< bytes of the longest id
  bool makes_queues = true;          ///< an absent queue is empty; otherwise it is ErrorCode::queue_missing
  bool keeps_json_spelling = true;   ///< false: a JSON body comes back as an equal value in another spelling
  bool keeps_to_bytes = true;        ///< a claim holds to the bytes that are wanted, from the first on
  bool counts_in_flight = true;      ///< knows how many messages are in flight; otherwise such a limit is refused
  bool windows_by_own_clock = true;  ///< deduplication windows go by the clock that the store was given
  bool stable_ties = true;           ///< messages sent at the same instant come in the order of sending
  bool counts_checkpoints = false;   ///< a checkpoint counts towards the size that a record may have
  std::size_t most_sent = 99;        ///< messages with ids of their senders' that one completion sends at most
  std::size_t made_id = 36;          ///< bytes of an id that the store makes
  std::size_t history = 34'000;      ///< steps of a random history: fewer where each is a request to another process
  Duration grain = 1ns;              ///< times are kept as whole ones of this, rounded down
};

/// How the suite gets a store. `make` may return null: then the case is skipped, with `absence` as the reason.
struct StoreFactory {
  std::string name;
  std::function<std::unique_ptr<StoreUnderTest>()> make;
  StoreTraits traits{};
  std::string absence{};
};

inline void PrintTo(const StoreFactory& factory, std::ostream* out) { *out << factory.name; }

/// The promises of host/queue/{source,sender,operator}.hpp. Instantiate it in the implementation's own file:
///
///     INSTANTIATE_TEST_SUITE_P(Sqlite, StoreContract, ::testing::Values(StoreFactory{...}), store_name);
class StoreContract : public ::testing::TestWithParam<StoreFactory> {
 protected:
  void SetUp() override;

  const StoreTraits& traits() const { return GetParam().traits; }
  Desk& desk() { return *desk_; }
  FakeClock& clock() { return under_test_->clock(); }
  std::string queue_name() { return under_test_->queue(); }
  queue::QueueAddress standard() { return {under_test_->queue(), queue::Half::standard}; }
  queue::QueueAddress dlq() { return {under_test_->queue(), queue::Half::dlq}; }
  StoreUnderTest& under_test() { return *under_test_; }
  queue::QueueAddress other() { return {under_test_->other_queue(), queue::Half::standard}; }

  /// A time as the store keeps it.
  WallTime kept(WallTime time) const { return time - time.time_since_epoch() % traits().grain; }
  /// A deadline far enough away for any call.
  Deadline soon() { return Deadline::after(clock(), 60s); }
  Deadline passed() { return Deadline::at(clock().steady_now() - 1ns); }

  /// Sends one message with a body of its own; the clock moves on by a millisecond, so that the next one is younger.
  void send(const std::string& id, Duration delay = {});
  /// Sends "<prefix>0000", "<prefix>0001", ... a millisecond apart in blocks of 25.
  std::vector<std::string> send_many(std::size_t count, const std::string& prefix = "m");
  /// Claims; an error is a failure of the test.
  std::vector<queue::Delivery> claim(const queue::QueueAddress& address, std::size_t max = 10,
                                     Duration visibility = 30s);
  /// Claims exactly one message and returns it.
  queue::Delivery claim_one(const queue::QueueAddress& address, Duration visibility = 30s);
  /// Claims with every word of the request; an error is a failure of the test.
  queue::Claimed claim_as(const queue::QueueAddress& address, queue::ClaimRequest request);
  /// Claims until nothing is due or `max` are there.
  std::vector<queue::Delivery> claim_all(const queue::QueueAddress& address, std::size_t max = 100000);
  queue::SettleStatus settle(const queue::QueueAddress& address, const queue::Receipt& receipt,
                             queue::CompletionAction action, Duration delay = {}, queue::Failure failure = {});
  /// Removes the message of this receipt together with effects.
  queue::SettleResult settle_with(const queue::Receipt& receipt, queue::Effects effects);
  queue::StoredMessage get(const std::string& id);
  bool absent(const std::string& id);
  queue::QueueStats stats(const queue::QueueAddress& address);
  /// Claims one message for a second and lets the lease run out, as a host that dies without a word.
  queue::Delivery claim_and_die(const queue::QueueAddress& address);
  /// Sends a message and brings it to the DLQ with `failure`.
  void send_to_dlq(const std::string& id, const queue::Failure& failure);
  queue::Failure failure(const std::string& error);
  /// Sends one message with this content; the clock moves on by a millisecond.
  void send_content(const std::string& id, const std::string& body, std::string_view content_type);
  /// Changes one message; the clock moves on by a millisecond afterwards.
  queue::ChangeResult change(const queue::Change& change);
  /// One message in each state a message can be in; its id says which. Their order is that of sending.
  std::vector<Actor> one_in_each_state();
  /// Changes it, and sees to it that the version grew, the content stayed, and whoever held it has lost it.
  queue::StoredMessage change_actor(const Actor& actor, queue::Change change);
  queue::MessageState state(const std::string& id);
  /// Edits one message as it stands now.
  Result<queue::StoredMessage> edit(const std::string& id, const std::vector<queue::ContentEdit>& edits);
  /// The whole half, page by page.
  std::vector<queue::StoredMessage> list_all(const queue::QueueAddress& address, bool content = true,
                                             bool native = false);

 private:
  std::unique_ptr<StoreUnderTest> under_test_;
  std::unique_ptr<Desk> desk_;
};

std::vector<std::string> ids_of(const std::vector<queue::Delivery>& claims);
std::string store_name(const ::testing::TestParamInfo<StoreFactory>& info);

}  // namespace sluice::test
