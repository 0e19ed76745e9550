// The notice board of a table: what it costs, and that no reader of messages, Go's least of all, meets a notice.

#include "host/fleet/board_poll_schedule.hpp"
#include "host/fleet/host_record.hpp"
#include "host/fleet/steering.hpp"
#include "host/stores/table/metadata_items.hpp"
#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using fleet::BoardPollSchedule;
using queue::Topic;

class BoardOnTable : public StoreOnEmulator {
 protected:
  std::unique_ptr<queue::NoticeBoard> board() { return *desk().queues().open_board("orders"); }

  /// An idle host with some jobs for so long; what it spends.
  dynamo::Capacity idle(Duration span, std::size_t jobs) {
    fleet::HostRecord record;
    record.instance = record.name = "worker-1.eu-west-1.example.com";
    record.version = "1.0.0";
    record.address = "0.0.0.0:9100";
    record.host_file = "/etc/sluice/host.toml";
    record.state = fleet::HostState::running;
    record.started_at = clock().wall_now();
    record.jobs.resize(jobs);
    for (fleet::JobRecord& job : record.jobs) {
      job = {.name = "process-orders",
             .queue = "orders",
             .handler = "process_order",
             .plugin = "orders.so",
             .plugin_version = "1.2.3",
             .concurrency = 8,
             .file_concurrency = 8,
             .claimed = 123'456,
             .done = 123'400};
      job.pace.slowest = 1234ms;
    }
    const auto attended = board();
    BoardPollSchedule poll_schedule(attended->traits(), clock().steady_now());
    std::int64_t version = 0;
    const SteadyTime end = clock().steady_now() + span;
    host().usage().reset();
    while (clock().steady_now() < end) {
      const auto order = poll_schedule.next(clock().steady_now());
      if (order.duty == BoardPollSchedule::Duty::none) {
        clock().advance(order.wake - clock().steady_now());
        continue;
      }
      if (order.duty == BoardPollSchedule::Duty::look) {
        EXPECT_TRUE(attended->read(Topic::steering, {}, soon()));
      } else if (order.duty == BoardPollSchedule::Duty::tell) {
        const std::string text = fleet::write_record(record, attended->traits().most_bytes);
        poll_schedule.size(text.size(), 1);
        const auto posted =
            attended->post(Topic::hosts, {.key = record.instance, .text = text, .version = version}, soon());
        EXPECT_TRUE(posted);
        version = posted ? *posted : 0;
      } else {
        EXPECT_TRUE(attended->list(Topic::hosts, soon()));
      }
      poll_schedule.done(order.duty, clock().steady_now());
    }
    const dynamo::Capacity spent = host().usage().capacity();
    EXPECT_TRUE(attended->take_down(Topic::hosts, record.instance, version, soon()));
    return spent;
  }
};

TEST_F(BoardOnTable, AnIdleHostSpendsAtMostATenthOfAWriteUnitASecondOrARecordAMinute) {
  for (const auto& [jobs, most] : {std::pair(std::size_t{1}, 0.1), {8, 0.1}, {40, 17.0 / 60}}) {
    const dynamo::Capacity spent = idle(600s, jobs);
    std::printf("idle host with %zu jobs: %.3f WCU, %.3f RCU a second\n", jobs, spent.write / 600, spent.read / 600);
    EXPECT_GT(spent.write, 0);
    EXPECT_LE(spent.write / 600, most);
    EXPECT_LE(spent.read / 600, 0.55);
  }
}

TEST_F(BoardOnTable, ALookCostsHalfAUnit) {
  fleet::Steering steering;
  for (int i = 0; i < 20; ++i) {
    steering.directives.push_back({.id = "0123456789abc",
                                   .wish = fleet::Wish::pause,
                                   .target = fleet::Target::job,
                                   .name = "job-" + std::to_string(i),
                                   .by = "ann@ops",
                                   .at = clock().wall_now()});
  }
  const auto posted = board();
  ASSERT_TRUE(posted->post(Topic::steering, {.text = fleet::write_steering(steering)}, soon()));
  host().usage().reset();
  ASSERT_TRUE(posted->read(Topic::steering, {}, soon()));
  EXPECT_EQ(host().usage().capacity().read, 0.5);
  EXPECT_EQ(host().usage().requests(), 1U);
}

TEST_F(BoardOnTable, NoticesHaveNothingThatAnIndexOrAGoProgramReads) {
  const auto posted = board();
  ASSERT_TRUE(posted->post(Topic::hosts, {.key = "h", .text = "{}"}, soon()));
  ASSERT_TRUE(posted->post(Topic::steering, {.text = "{}"}, soon()));
  ASSERT_TRUE(posted->post(Topic::audit, {.text = "{}"}, soon()));
  send(1);
  dynamo::ScanRequest scan;
  scan.table = table();
  scan.consistent = true;
  const auto all = host().client().scan(scan, soon());
  ASSERT_TRUE(all);
  EXPECT_EQ(all->items.size(), 5U) << "the message, three notices, and the roll of the hosts";
  std::size_t notices = 0;
  for (const dynamo::Item& item : all->items) {
    const std::string id = *dynamo::find<std::string>(item, "id");
    if (!id.starts_with(queue::table::kNoticePrefix)) {
      continue;
    }
    ++notices;
    for (const std::string name : {"queue_type", "data", "version", "sent_at", "updated_at", "created_at",
                                   "received_at", "invisible_until_at", "receive_count"}) {
      EXPECT_FALSE(item.contains(name)) << id << " " << name;
    }
  }
  EXPECT_EQ(notices, 4U);
  queue::NewMessage message;
  message.id = "sluice:fleet/steering";
  EXPECT_EQ(desk().send("orders", std::span(&message, 1), soon())[0].error.code(), ErrorCode::invalid);
}

TEST_F(BoardOnTable, AHostThatIsSweptAwayMeanwhileIsNoHarm) {
  const auto posted = board();
  ASSERT_TRUE(posted->post(Topic::hosts, {.key = "a", .text = "{}"}, soon()));
  ASSERT_TRUE(posted->post(Topic::hosts, {.key = "b", .text = "{}"}, soon()));
  // As a Go program's purge does, which deletes whatever its scan brings.
  ASSERT_TRUE(host().client().write(
      {.kind = dynamo::ItemWrite::Kind::remove, .table = table(), .item = {{"id", "sluice:fleet/host/a"}}}, soon()));
  const auto left = posted->list(Topic::hosts, soon());
  ASSERT_TRUE(left);
  ASSERT_EQ(left->size(), 1U);
  EXPECT_EQ(left->front().key, "b");
  ASSERT_TRUE(host().client().write(
      {.kind = dynamo::ItemWrite::Kind::remove, .table = table(), .item = {{"id", "sluice:fleet/hosts"}}}, soon()));
  EXPECT_TRUE(posted->list(Topic::hosts, soon())->empty());
  ASSERT_TRUE(posted->post(Topic::hosts, {.key = "a", .text = "{}"}, soon()));
  EXPECT_EQ(posted->list(Topic::hosts, soon())->size(), 1U);
}

}  // namespace
}  // namespace sluice::test
