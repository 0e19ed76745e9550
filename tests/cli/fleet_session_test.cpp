#include "host/cli/fleet_session.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>

#include "base/temporary_folder.hpp"
#include "host/fleet/host_record.hpp"

namespace sluice::cli {
namespace {

// A command on an outbox in DynamoDB read all of it to count it, beside a host file whose queues lie in SQLite.
TEST(QueueSession, LooksAreBilledByWhereTheQueueItselfLies) {
  config::HostConfig host;
  host.outboxes["table"].kind = config::OutboxKind::dynamodb;
  host.outboxes["rows"].kind = config::OutboxKind::mysql;
  EXPECT_TRUE(looks_are_billed(host, "outbox:table"));
  EXPECT_FALSE(looks_are_billed(host, "outbox:rows"));
  EXPECT_FALSE(looks_are_billed(host, "orders"));
  host.store.kind = config::StoreKind::dynamodb;
  EXPECT_FALSE(looks_are_billed(host, "outbox:rows"));
  EXPECT_TRUE(looks_are_billed(host, "orders"));
}

// What a bulk command leaves alone is what hosts have at work by then, however long it runs.
TEST(FleetSession, AHostOfThisMachineIsAskedAgain) {
  const auto folder = TemporaryFolder::make("sluice-fleet-session");
  ASSERT_TRUE(folder);
  const std::string file = (*folder)->path() + "/host.toml";
  std::ofstream(file) << "[store]\npath = \"store.db\"\n[queues.orders]\n";
  const Command command{.name = "sample", .flags = {{.name = "config", .value = "FILE", .help = ""}}};
  const auto arguments = Arguments::parse(command, {"--config", file});
  ASSERT_TRUE(arguments.has_value());
  auto session = FleetSession::open(*arguments);
  ASSERT_FALSE(session.has_error()) << session.error().lines().front();

  std::atomic<std::uint32_t> asked = 0;
  const auto answer = [&asked](const runtime::ControlRequest&, uid_t) {
    fleet::HostRecord record{.instance = "a/1/x", .name = "a", .pid = 1};
    record.running_total = ++asked;
    return runtime::ControlAnswer{.record = fleet::write_record(record, 100'000)};
  };
  const auto folder_of_host = runtime::ControlFolder::of(session->queues().host());
  const auto socket = runtime::ControlSocket::open(folder_of_host, answer);
  ASSERT_TRUE(socket) << socket.error().message();
  ASSERT_TRUE((*socket)->start());

  const Deadline deadline = Deadline::after(session->clock(), std::chrono::seconds(30));
  std::uint32_t running = 0;
  while (running < 2 && !deadline.passed(session->clock().steady_now())) {
    const auto view = session->hosts_now();
    ASSERT_FALSE(view.has_error());
    ASSERT_EQ(view->hosts.size(), 1U);
    running = view->hosts.front().record.running_total;
  }
  EXPECT_EQ(running, 2U);
  (*socket)->stop();
}

// It names hosts, and says what stores have answered.
TEST(QueueSession, WarnsWithoutSteeringATerminal) {
  testing::internal::CaptureStderr();
  QueueSession::warn("host a\x1b[2J has told nothing");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "sluice: host a\\u001b[2J has told nothing\n");
}

}  // namespace
}  // namespace sluice::cli
