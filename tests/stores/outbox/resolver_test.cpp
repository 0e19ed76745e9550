// Names that the system's resolver hangs over, and machines of several addresses.

#include "base/resolver.hpp"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "host/stores/outbox/mysql/mysql_database.hpp"
#include "host/stores/outbox/network/tcp_connect.hpp"
#include "host/stores/outbox/postgres/postgres_database.hpp"
#include "host/stores/outbox/tunnel/ssh_tunnel.hpp"
#include "tests/support/hanging_name.hpp"
#include "tests/support/loopback.hpp"

namespace sluice::queue::outbox {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::hang;
using ::testing::HasSubstr;

class OutboxResolver : public ::testing::Test {
 public:
  OutboxResolver() { hang().begin(); }
  ~OutboxResolver() override {
    hang().let_go();
    for (const char* name : {"tcp.hangs.invalid", "db.hangs.invalid", "ssh.hangs.invalid"}) {
      (void)addresses_of(name, clock_, Deadline::after(clock_, seconds(20)));  // its thread has ended
    }
  }

 protected:
  Deadline soon() const { return Deadline::after(clock_, milliseconds(200)); }
  /// Does something that hangs if nothing ends it.
  template <typename Attempt>
  auto within_time(Attempt attempt) {
    const SteadyTime began = clock_.steady_now();
    auto answer = attempt();
    EXPECT_LT(clock_.steady_now() - began, seconds(10));
    return answer;
  }

  const SystemClock clock_;
  SeededRandom random_;
};

TEST_F(OutboxResolver, HoldsAConnectionUpUntilTheDeadlineOnly) {
  const auto socket = within_time([&] { return connect_tcp("tcp.hangs.invalid", 1, clock_, soon()); });
  ASSERT_TRUE(socket.has_error());
  EXPECT_EQ(socket.error().code(), ErrorCode::timeout);
  EXPECT_THAT(socket.error().message(), HasSubstr("\"tcp.hangs.invalid\" did not end in time"));
}

TEST_F(OutboxResolver, HoldsNoSessionWithADatabaseUp) {
  const auto postgres =
      make_postgres_database({.config = {.url = "postgres://u:geheim@db.hangs.invalid/d"}}, clock_, random_);
  const auto mysql = make_mysql_database({.config = {.url = "mysql://u:geheim@db.hangs.invalid/d"}}, clock_, random_);
  for (Database* database : std::initializer_list<Database*>{postgres.get(), mysql.get()}) {
    const auto session = within_time([&] { return database->open_reader(soon()); });
    ASSERT_TRUE(session.has_error());
    EXPECT_TRUE(ends_session(session.error().code()));
    EXPECT_THAT(session.error().message(), HasSubstr("db.hangs.invalid"));
    EXPECT_THAT(session.error().message(), ::testing::Not(HasSubstr("geheim")));
  }
}

TEST_F(OutboxResolver, HoldsNoTunnelUp) {
  SshSettings settings;
  settings.host = "ssh.hangs.invalid";
  const Tunnel tunnel = make_ssh_tunnel(settings, clock_);
  const auto socket = within_time([&] { return tunnel(soon()); });
  ASSERT_TRUE(socket.has_error());
  EXPECT_EQ(socket.error().code(), ErrorCode::timeout);
}

TEST_F(OutboxResolver, IsAskedByOneThreadForAName) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(addresses_of("tcp.hangs.invalid", clock_, soon()).has_error());
  }
  EXPECT_EQ(hang().asked(), 1);
  hang().let_go();
  const auto found = addresses_of("tcp.hangs.invalid", clock_, Deadline::after(clock_, seconds(20)));
  ASSERT_TRUE(found.has_error());
  EXPECT_EQ(found.error().code(), ErrorCode::unavailable) << found.error().message();
}

/// Listens on 127.0.0.2, and no more than one connection is taken, which is made.
test::Descriptor silent_place(const test::Descriptor& beside, test::Descriptor& connected) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(test::local_port(beside)));
  place.sin_addr.s_addr = htonl(0x7f000002);
  const auto* generic = reinterpret_cast<const sockaddr*>(&place);
  test::Descriptor listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::bind(listener.get(), generic, sizeof(place)), 0);
  EXPECT_EQ(::listen(listener.get(), 0), 0);
  connected = test::Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(::connect(connected.get(), generic, sizeof(place)), 0);
  return listener;
}

TEST_F(OutboxResolver, AnAddressThatIsSilentLeavesTimeForTheNextOne) {
  const test::Descriptor good = test::listen_on_loopback();
  test::Descriptor connected;
  const test::Descriptor silent = silent_place(good, connected);
  const auto port = static_cast<std::uint32_t>(test::local_port(good));
  EXPECT_TRUE(connect_tcp("two.invalid", port, clock_, Deadline::after(clock_, seconds(2))).has_value());
}

}  // namespace
}  // namespace sluice::queue::outbox
