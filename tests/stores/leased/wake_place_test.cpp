// Where hosts on a leased table say how they are woken: in their heartbeats. And who rings after what.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/queue/effects.hpp"
#include "host/queue/wake/datagram.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/leased/leased_queues.hpp"
#include "tests/stores/leased/leased_rig.hpp"

namespace sluice::queue::leased {
namespace {

using std::chrono_literals::operator""s;
using std::chrono_literals::operator""h;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using wake::Announcement;

class LeasedWake : public LeasedRig {
 protected:
  void SetUp() override {
    LeasedRig::SetUp();
    auto opened = wake::DatagramListener::open(*wake::parse_address("127.0.0.1:0"));
    ASSERT_TRUE(opened);
    listener_.emplace(std::move(*opened));
    host_ = make("host", std::string());
    place_ = *host_->open_wake_place("orders");
    source_ = *host_->open_source({"orders", Half::standard});
    source_->start({.on_ready = [this] { ++woken_; }});
  }

  std::unique_ptr<table::TableQueues> make(const std::string& name, std::optional<std::string> ring) {
    LeasedOptions options;
    options.queues["orders"] = {.table = kTable, .shards = kShards};
    options.host = name;
    options.own_threads = false;
    options.ring = std::move(ring);
    return make_leased_queues(options, client_, clock_, random_);
  }

  Announcement announcement() {
    return {.host = "as the process is called",
            .address = wake::text_of(listener_->address()),
            .queues = {place_->bell(Half::standard)},
            .at = clock_.wall_now(),
            .every = 60s};
  }
  std::vector<std::string> bells() {
    std::vector<std::string> names;
    while (const auto bytes = listener_->take()) {
      names.push_back(wake::Datagram::read(*bytes)->ring().queue);
    }
    return names;
  }
  void send_by(Queues& queues, Duration delay = {}) {
    NewMessage message;
    message.body = "x";
    message.delay = delay;
    const auto sent = (*queues.open_sender("orders"))->send(std::span(&message, 1), soon()).front();
    ASSERT_EQ(sent.status, SendStatus::sent) << sent.error.message();
  }
  /// What a process rings that sends one message and ends.
  std::vector<std::string> bells_of_a_producer(Duration delay = {}) {
    auto producer = make("producer", std::string());
    send_by(*producer, delay);
    producer.reset();
    return bells();
  }

  std::optional<wake::DatagramListener> listener_;
  std::unique_ptr<table::TableQueues> host_;
  std::unique_ptr<wake::WakePlace> place_;
  std::unique_ptr<Source> source_;
  int woken_ = 0;
};

TEST_F(LeasedWake, WhatIsAnnouncedStandsInTheHeartbeatUntilItIsTakenBack) {
  EXPECT_THAT(*place_->read(soon()), IsEmpty()) << "it works on the queue, and listens nowhere";
  ASSERT_TRUE(place_->announce(announcement(), soon()));
  const auto told = *place_->read(soon());
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].address, wake::text_of(listener_->address()));
  EXPECT_THAT(told[0].queues, ElementsAre("queues/orders"));
  EXPECT_EQ(told[0].every, 10s);
  EXPECT_TRUE(wake::fresh(told[0], place_->now()));
  ASSERT_TRUE(place_->withdraw("as the process is called", soon()));
  EXPECT_THAT(*place_->read(soon()), IsEmpty());
}

TEST_F(LeasedWake, TheFirstAnnouncementCostsAHeartbeatTheOthersNothing) {
  const double written = model_.counters().write_units;
  ASSERT_TRUE(place_->announce(announcement(), soon()));
  EXPECT_EQ(model_.counters().write_units - written, 1.0);
  EXPECT_EQ(*place_->announce(announcement(), soon()), 0.0);
  EXPECT_EQ(model_.counters().write_units - written, 1.0);
  const double read = model_.counters().read_units;
  ASSERT_TRUE(place_->read(soon()));
  EXPECT_EQ(model_.counters().read_units - read, 0.5);
}

TEST_F(LeasedWake, WhoSendsWhatIsDueRings) {
  ASSERT_TRUE(place_->announce(announcement(), soon()));
  EXPECT_THAT(bells_of_a_producer(), ElementsAre("queues/orders"));
  EXPECT_THAT(bells_of_a_producer(1h), IsEmpty()) << "it is not due";
  auto silent = make("silent", std::nullopt);
  send_by(*silent);
  silent.reset();
  EXPECT_THAT(bells(), IsEmpty()) << "it may not ring";
}

TEST_F(LeasedWake, AHostThatIsDeadOrLeavesIsNotRung) {
  ASSERT_TRUE(place_->announce(announcement(), soon()));
  clock_.advance(31s);
  EXPECT_THAT(bells_of_a_producer(), IsEmpty()) << "three leases without a heartbeat";
  static_cast<void>(source_->claim({.max = 1, .visibility = 30s}, soon()));  // writes one
  EXPECT_THAT(bells_of_a_producer(), ElementsAre("queues/orders"));
  source_->stop();
  EXPECT_THAT(bells_of_a_producer(), IsEmpty());
}

TEST_F(LeasedWake, AHostThatSendsLeavesItselfOut) {
  ASSERT_TRUE(place_->announce(announcement(), soon()));
  send_by(*host_);
  source_.reset();
  place_.reset();
  host_.reset();
  EXPECT_THAT(bells(), IsEmpty());
}

TEST_F(LeasedWake, ARingFromOutsideWakesTheSourceAndGoesNoFurther) {
  ASSERT_TRUE(place_->announce(announcement(), soon()));
  const int before = woken_;
  place_->ring_here(Half::dlq);
  EXPECT_EQ(woken_, before);
  place_->ring_here(Half::standard);
  EXPECT_EQ(woken_, before + 1);
  source_.reset();
  place_.reset();
  host_.reset();
  EXPECT_THAT(bells(), IsEmpty());
}

/// A process with queues of both layouts, whose handlers send from one to the other.
class BothLayoutsWake : public LeasedWake {
 protected:
  void SetUp() override {
    LeasedWake::SetUp();
    dynamodb::TableSpec spec;
    spec.table = "plain";
    ASSERT_TRUE(dynamodb::create_queue_table(client_, spec, clock_, soon()));
    LeasedOptions leased;
    leased.queues["orders"] = {.table = kTable, .shards = kShards};
    leased.queues["letters"] = {.table = kTable, .shards = 1};
    leased.own_threads = false;
    both_ = std::make_unique<table::TableQueues>(
        table::TableOptions{.host = "both", .region = "eu-west-1", .ring = std::string()}, client_, clock_, random_,
        [in_own = dynamomq::in_dynamomq_tables({}), in_leased = in_leased_tables(leased, clock_)](
            const auto& parts, const std::string& queue) {
          return (queue == "plain" ? in_own : in_leased)(parts, queue);
        });
  }

  /// Works off a message of `from` with an emit to `to`.
  void emit(const std::string& from, const std::string& to) {
    NewMessage message;
    message.body = "x";
    const auto sent = (*both_->open_sender(from))->send(std::span(&message, 1), soon()).front();
    ASSERT_EQ(sent.status, SendStatus::sent) << sent.error.message();
    const auto source = *both_->open_source({from, Half::standard});
    const auto claimed = source->claim({.max = 1, .visibility = 30s}, soon());
    ASSERT_TRUE(claimed);
    ASSERT_EQ(claimed->deliveries.size(), 1U);
    auto effects = std::make_shared<Effects>();
    message.id = "emitted";
    effects->messages.push_back({.queue = to, .message = message});
    const Completion completion{.receipt = claimed->deliveries.front().receipt, .effects = effects};
    const auto settled = source->settle(std::span(&completion, 1), soon()).front();
    ASSERT_EQ(settled.status, SettleStatus::applied) << settled.error.message();
  }

  std::unique_ptr<table::TableQueues> both_;
};

TEST_F(BothLayoutsWake, WhatAHandlerSendsToALeasedQueueIsRungForAtItsHosts) {
  ASSERT_TRUE(place_->announce(announcement(), soon()));
  emit("plain", "orders");
  both_.reset();
  EXPECT_THAT(bells(), ElementsAre("queues/orders"));
}

TEST_F(BothLayoutsWake, WhatAHandlerSendsToAQueueOfTheOtherLayoutWakesItHere) {
  int woken = 0;
  const auto plain = *both_->open_source({"plain", Half::standard});
  plain->start({.on_ready = [&woken] { ++woken; }});
  emit("letters", "plain");
  EXPECT_EQ(woken, 1);
  plain->stop();
}

}  // namespace
}  // namespace sluice::queue::leased
