// Where hosts say how they are woken: what it costs, that no reader of messages meets it, and who rings after what.

#include "host/queue/wake/datagram.hpp"
#include "host/stores/dynamomq/dynamomq_queues.hpp"
#include "host/stores/dynamomq/outside_items.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using namespace queue::wake;
using queue::Change;
using queue::ChangeAction;

class WakeOnTable : public StoreOnEmulator {
 protected:
  void SetUp() override {
    StoreOnEmulator::SetUp();
    if (!IsSkipped()) {
      auto opened = DatagramListener::open(*parse_address("127.0.0.1:0"));
      ASSERT_TRUE(opened);
      listener_.emplace(std::move(*opened));
      producer_ = make_producer();
    }
  }

  std::unique_ptr<EmulatedHost> make_producer() {
    queue::dynamomq::DynamoMqOptions options;
    options.queues["orders"].table = table();
    options.ring = std::string();
    return std::make_unique<EmulatedHost>(clock(), "producer", 7, options);
  }

  std::unique_ptr<WakePlace> place() { return *desk().queues().open_wake_place("orders"); }

  Announcement announcement(const std::string& host, const std::vector<queue::Half>& halves = {queue::Half::standard}) {
    Announcement told{
        .host = host, .address = text_of(listener_->address()), .queues = {}, .at = clock().wall_now(), .every = 60s};
    for (const queue::Half half : halves) {
      told.queues.push_back(place()->bell(half));
    }
    return told;
  }
  void announce(const Announcement& told) {
    const auto done = place()->announce(told, soon());
    ASSERT_TRUE(done) << done.error().message();
  }

  /// The bell of the next datagram, however long it takes.
  std::string next_bell() {
    while (true) {
      if (const auto bytes = listener_->take()) {
        return Datagram::read(*bytes)->ring().queue;
      }
      listener_->wait(-1);
    }
  }
  /// Ends the producer, which rings for all it has done, and what has come by then.
  std::multiset<std::string> bells_until_its_end() {
    producer_.reset();
    std::multiset<std::string> bells;
    while (const auto bytes = listener_->take()) {
      bells.insert(Datagram::read(*bytes)->ring().queue);
    }
    return bells;
  }

  void send(EmulatedHost& from, const std::string& id, Duration delay = {}) {
    queue::NewMessage message;
    message.id = id;
    message.delay = delay;
    const auto sent = from.desk().send("orders", {&message, 1}, soon()).front();
    ASSERT_EQ(sent.status, queue::SendStatus::sent) << sent.error.message();
  }

  std::optional<DatagramListener> listener_;
  std::unique_ptr<EmulatedHost> producer_;
};

TEST_F(WakeOnTable, WhatIsAnnouncedIsReadUntilItIsTakenBack) {
  const auto at = place();
  EXPECT_TRUE(at->read(soon())->empty());
  announce(announcement("a"));
  announce(announcement("b", {queue::Half::standard, queue::Half::dlq}));
  auto all = *at->read(soon());
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].queues, std::vector<std::string>{table()});
  EXPECT_EQ(all[1].queues, (std::vector<std::string>{table(), table() + "/dlq"}));
  EXPECT_EQ(all[1].host, "b");
  EXPECT_TRUE(fresh(all[1], clock().wall_now()));
  EXPECT_TRUE(at->withdraw("a", soon()));
  EXPECT_TRUE(at->withdraw("a", soon())) << "twice is no trouble";
  all = *at->read(soon());
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].host, "b");
}

TEST_F(WakeOnTable, TakingBackWhatNobodyAnnouncedMakesNoItem) {
  EXPECT_TRUE(place()->withdraw("a", soon()));
  EXPECT_TRUE(raw("sluice:fleet/bells").empty());
}

TEST_F(WakeOnTable, AReadingCostsHalfAUnitAndAnAnnouncementOne) {
  const auto at = place();
  announce(announcement("a"));
  host().usage().reset();
  const auto units = at->announce(announcement("a"), soon());
  ASSERT_TRUE(units);
  EXPECT_EQ(*units, 1);
  EXPECT_EQ(host().usage().capacity().write, 1);
  EXPECT_EQ(host().usage().requests(), 1U);
  host().usage().reset();
  ASSERT_TRUE(at->read(soon()));
  EXPECT_EQ(host().usage().capacity().read, 0.5);
  EXPECT_EQ(host().usage().requests(), 1U);
}

// A minute of sending: one reading each ten seconds.
TEST_F(WakeOnTable, AProducerReadsEachTenSecondsAtMost) {
  announce(announcement("a"));
  for (int i = 0; i < 60; ++i) {
    send(*producer_, std::to_string(i));
    next_bell();
    clock().advance(1s);
  }
  const auto spent = producer_->usage().requests("GetItem");
  // Fewer than six where this clock has moved on past a reading's deadline.
  EXPECT_GE(spent, 2U);
  EXPECT_LE(spent, 6U);
  std::printf("a minute of sending: %zu readings, %.1f RCU\n", spent, 0.5 * static_cast<double>(spent));
}

TEST_F(WakeOnTable, NothingIsReadByWhoSendsNothingOrMayNotRing) {
  announce(announcement("a"));
  producer_->desk().get("orders", "m", soon());
  send(host(), "m");
  EXPECT_EQ(host().usage().requests("GetItem"), 0U) << "it has no options to ring";
  EXPECT_TRUE(bells_until_its_end().empty());
}

TEST_F(WakeOnTable, WhatIsClaimableAtOnceIsRungForAndWhatIsNotIsNot) {
  announce(announcement("a", {queue::Half::standard, queue::Half::dlq}));
  send(*producer_, "later", 1h);
  send(*producer_, "now");
  EXPECT_EQ(next_bell(), table());
  const Change bury{.id = "now", .action = ChangeAction::dead_letter, .version = {}, .after = {}, .failure = {}};
  EXPECT_EQ(producer_->desk().change("orders", {&bury, 1}, soon()).front().status, queue::ChangeStatus::applied);
  EXPECT_EQ(next_bell(), table() + "/dlq");
  clock().advance(1s);
  const Change redrive{.id = "now", .action = ChangeAction::redrive, .version = {}, .after = {}, .failure = {}};
  EXPECT_EQ(producer_->desk().change("orders", {&redrive, 1}, soon()).front().status, queue::ChangeStatus::applied);
  EXPECT_EQ(next_bell(), table());
  clock().advance(1s);
  const Change front{.id = "later", .action = ChangeAction::move_to_front, .version = {}, .after = {}, .failure = {}};
  EXPECT_EQ(producer_->desk().change("orders", {&front, 1}, soon()).front().status, queue::ChangeStatus::applied);
  const std::set<std::string> both{next_bell(), next_bell()};
  EXPECT_EQ(both, (std::set<std::string>{table(), table() + "/dlq"})) << "it may lie in either half";
  const Change remove{.id = "later", .action = ChangeAction::remove, .version = {}, .after = {}, .failure = {}};
  EXPECT_EQ(producer_->desk().change("orders", {&remove, 1}, soon()).front().status, queue::ChangeStatus::applied);
  EXPECT_TRUE(bells_until_its_end().empty()) << "a removal wakes nobody";
}

TEST_F(WakeOnTable, WhoSendsOnceAndEndsRings) {
  announce(announcement("a"));
  send(*producer_, "m");
  EXPECT_EQ(bells_until_its_end(), std::multiset<std::string>{table()});
}

TEST_F(WakeOnTable, AMessageThatWasNotStoredIsNotRungFor) {
  announce(announcement("a"));
  send(host(), "m");
  queue::NewMessage again;
  again.id = "m";
  EXPECT_EQ(producer_->desk().send("orders", {&again, 1}, soon()).front().status, queue::SendStatus::duplicate_id);
  EXPECT_TRUE(bells_until_its_end().empty());
}

TEST_F(WakeOnTable, AHostThatEmitsAndIsRungItselfLeavesItselfOut) {
  const auto own = *producer_->desk().queues().open_wake_place("orders");
  ASSERT_TRUE(own->announce(announcement("self"), soon()));
  send(*producer_, "m");
  EXPECT_TRUE(bells_until_its_end().empty());
}

TEST_F(WakeOnTable, ARingFromOutsideWakesTheSourcesAndGoesNoFurther) {
  announce(announcement("another"));
  auto source = *producer_->desk().queues().open_source(standard());
  int woken = 0;
  source->start({.on_ready = [&woken] { ++woken; }});
  const auto own = *producer_->desk().queues().open_wake_place("orders");
  own->ring_here(queue::Half::dlq);
  EXPECT_EQ(woken, 0);
  own->ring_here(queue::Half::standard);
  EXPECT_EQ(woken, 1);
  source.reset();
  EXPECT_TRUE(bells_until_its_end().empty()) << "or hosts would ring each other for ever";
}

TEST_F(WakeOnTable, TheItemHasNothingThatAnIndexOrAGoProgramReads) {
  announce(announcement("a"));
  send(host(), "m");
  const dynamo::Item item = raw("sluice:fleet/bells");
  for (const auto& [name, value] : item) {
    EXPECT_TRUE(name == "id" || name.rfind("sluice_", 0) == 0) << name;
  }
  EXPECT_NE(dynamo::find<std::string>(item, "sluice_bell:a"), nullptr);
  EXPECT_TRUE(queue::table::is_metadata_id("sluice:fleet/bells"));
  const auto listed =
      desk().list("orders", {.half = standard().half, .limit = 10, .cursor = {}, .content = false}, soon());
  ASSERT_TRUE(listed);
  EXPECT_EQ(listed->messages.size(), 1U);
  queue::dynamodb::TableSpec spec;
  spec.table = table();
  const auto outside = queue::dynamomq::find_outside_items(host().client(), spec.table, 10, soon());
  ASSERT_TRUE(outside);
  EXPECT_EQ(outside->outside, 0U);
  EXPECT_EQ(outside->ours, 1U);
}

TEST_F(WakeOnTable, WhatTheDeadHaveLeftGoesAndTheItemHasATimeToGo) {
  const auto at = place();
  ASSERT_TRUE(at->announce(announcement("dead"), soon()));
  clock().advance(queue::dynamomq::kIntervalsToKeep * 60s);
  ASSERT_TRUE(at->announce(announcement("alive"), soon()));
  EXPECT_EQ(at->read(soon())->size(), 2U) << "late is not yet gone";
  clock().advance(1s);
  ASSERT_TRUE(at->announce(announcement("alive"), soon()));  // learns of it
  ASSERT_TRUE(at->announce(announcement("alive"), soon()));  // takes it away
  const auto left = *at->read(soon());
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].host, "alive");
  const auto* expires = dynamo::find<dynamo::Number>(raw("sluice:fleet/bells"), "sluice_key_expires");
  ASSERT_NE(expires, nullptr);
  const auto now = std::chrono::duration_cast<std::chrono::seconds>(clock().wall_now().time_since_epoch()).count();
  EXPECT_EQ(expires->text, std::to_string(now + 24 * 3600));
}

TEST_F(WakeOnTable, AHostThatIsBackKeepsItsBell) {
  const auto at = place();
  const auto another = *producer_->desk().queues().open_wake_place("orders");
  ASSERT_TRUE(another->announce(announcement("back"), soon()));
  clock().advance(queue::dynamomq::kIntervalsToKeep * 60s + 1s);
  ASSERT_TRUE(at->announce(announcement("alive"), soon()));  // learns that it is gone
  ASSERT_TRUE(another->announce(announcement("back"), soon()));
  host().usage().reset();
  ASSERT_TRUE(at->announce(announcement("alive"), soon()));
  EXPECT_EQ(at->read(soon())->size(), 2U);
  ASSERT_TRUE(at->announce(announcement("alive"), soon()));
  EXPECT_EQ(host().usage().requests("UpdateItem"), 3U) << "one refused";
}

TEST_F(WakeOnTable, AHostWhoseClockWasWrongAnnouncesItselfAgain) {
  const auto at = place();
  auto late = announcement("alive");
  late.at -= queue::dynamomq::kIntervalsToKeep * 60s + 1s;
  ASSERT_TRUE(at->announce(late, soon()));
  for (int again = 0; again < 2; ++again) {
    const auto told = at->announce(announcement("alive"), soon());
    ASSERT_TRUE(told) << told.error().message();
  }
}

TEST_F(WakeOnTable, WhatSomebodyElseWroteIntoTheItemIsPassedOver) {
  announce(announcement("a"));
  dynamo::Item item = raw("sluice:fleet/bells");
  item["sluice_bell:number"] = dynamo::AttributeValue::number(7);
  item["sluice_bell:nonsense"] = std::string("come in");
  item["other"] = std::string("1 10.0.0.1:7011 1 60 orders");
  put(item);
  const auto read = place()->read(soon());
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 1U);
  EXPECT_EQ(read->front().host, "a");
}

}  // namespace
}  // namespace sluice::test
