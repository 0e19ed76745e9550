#include <gmock/gmock.h>
#include <poll.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <thread>

#include "host/stores/outbox/tunnel/ssh_tunnel.hpp"
#include "tests/stores/outbox_mysql/outbox_table.hpp"
#include "tests/support/loopback.hpp"
#include "tests/support/ssh_server.hpp"

namespace sluice::queue::outbox::mysql {
namespace {

using testing::HasSubstr;

/// A folder with two authorities and a certificate by the first for "localhost".
const std::string& certificates() {
  static const std::string folder = [] {
    std::string path = std::filesystem::temp_directory_path() / "sluice-tls-XXXXXX";
    path = ::mkdtemp(path.data());
    const std::string key = " -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes ";
    const std::string script = "cd " + path + " && for ca in ca other; do openssl req -x509 -days 2" + key +
                               "-subj /CN=$ca -keyout $ca.key -out $ca.pem; done 2>log && "
                               "for name in server client; do openssl req" +
                               key +
                               "-subj /CN=$name -keyout $name.key -out $name.csr 2>>log && "
                               "printf 'subjectAltName=DNS:localhost' >ext && openssl x509 -req -days 2 -in $name.csr "
                               "-CA ca.pem -CAkey ca.key "
                               "-CAcreateserial -extfile ext -out $name.pem 2>>log; done";
    return std::system(script.c_str()) == 0 ? path : std::string();
  }();
  return folder;
}

/// What a server with TLS says first: packet 0 of 78 bytes.
std::string greeting() {
  return std::string("\x4e\0\0\0\x0a", 5) + std::string("10.11.0-DB\0", 11) + std::string("\1\0\0\0", 4) + "12345678" +
         std::string("\0\xfe\xff\x2d\2\0\xff\x81\x15", 9) + std::string(10, '\0') + std::string("123456789012\0", 13) +
         std::string("mysql_native_password\0", 22);
}

/// Greets whoever connects and says no more; hangs up once the client does, or after 10 s.
class SilentServer {
 public:
  int port() const { return test::local_port(listener_); }

 private:
  void serve() const {
    const test::Descriptor client(::accept(listener_.get(), nullptr, nullptr));
    const std::string first = greeting();
    ::send(client.get(), first.data(), first.size(), MSG_NOSIGNAL);
    std::array<char, 4096> heard{};
    for (pollfd watched{client.get(), POLLIN, 0}; ::poll(&watched, 1, 10'000) > 0;) {
      if (::recv(client.get(), heard.data(), heard.size(), 0) <= 0) {
        return;
      }
    }
  }

  const test::Descriptor listener_ = test::listen_on_loopback();
  std::jthread thread_{[this] { serve(); }};
};

class MysqlTls : public OutboxTable {
 protected:
  static void SetUpTestSuite() {
    const std::string& folder = certificates();
    server_options() = {"--ssl-ca=" + folder + "/ca.pem", "--ssl-cert=" + folder + "/server.pem",
                        "--ssl-key=" + folder + "/server.key"};
    OutboxTable::SetUpTestSuite();
    server_options().clear();
  }
  static void TearDownTestSuite() {
    OutboxTable::TearDownTestSuite();
    std::filesystem::remove_all(certificates());
  }

  Settings tls(const std::string& host = "localhost") const {
    Settings settings = this->settings();
    settings.config.url = "mysql://root@" + host + ":" + std::to_string(server().port()) + "/" + name();
    settings.config.tls.emplace();
    settings.config.tls->ca = certificates() + "/ca.pem";
    return settings;
  }
  /// The cipher of the session, or why there is none.
  std::string cipher(const Settings& settings) {
    const auto session = connect(settings, clock_, soon());
    if (session.has_error()) {
      return session.error().message();
    }
    return (*session)->run("SHOW SESSION STATUS LIKE 'Ssl_cipher'", soon())->rows.front()[1].value_or("");
  }
};

TEST_F(MysqlTls, ChecksTheServersCertificateAndName) {
  EXPECT_THAT(cipher(tls()), HasSubstr("TLS_"));
  EXPECT_THAT(cipher(tls("127.0.0.1")), HasSubstr("no TLS session")) << "the certificate is for localhost";
  Settings other = tls();
  other.config.tls->ca = certificates() + "/other.pem";
  EXPECT_THAT(cipher(other), HasSubstr("no TLS session")) << "not by this authority";
  other.config.tls->ca = "";
  EXPECT_THAT(cipher(other), HasSubstr("no TLS session")) << "nor by one that the machine knows";
}

TEST_F(MysqlTls, ChecksNothingOnlyWhereItIsToldTo) {
  Settings careless = tls("127.0.0.1");
  careless.config.tls->verify = false;
  careless.config.tls->ca = "";
  EXPECT_THAT(cipher(careless), HasSubstr("TLS_"));
  Settings plain = settings();
  EXPECT_EQ(cipher(plain), "") << "without [tls] and tls= in the url there is none";
  plain.config.url += "?tls=skip-verify";
  EXPECT_THAT(cipher(plain), HasSubstr("TLS_"));
}

TEST_F(MysqlTls, AServerThatFallsSilentIsWaitedForUntilTheDeadlineOnly) {
  for (int i = 0; i < 3; ++i) {
    const SilentServer silent;
    Settings stuck = tls("127.0.0.1");
    stuck.config.url = "mysql://root@127.0.0.1:" + std::to_string(silent.port()) + "/d";
    stuck.config.tls->verify = false;
    const SteadyTime began = clock_.steady_now();
    const auto session = connect(stuck, clock_, Deadline::after(clock_, std::chrono::milliseconds(200)));
    ASSERT_TRUE(session.has_error());
    EXPECT_EQ(session.error().code(), ErrorCode::timeout) << session.error().message();
    EXPECT_LT(clock_.steady_now() - began, std::chrono::seconds(5));
  }
}

TEST_F(MysqlTls, AQueryThatTakesTooLongEndsTheSession) {
  const auto session = connect(tls(), clock_, soon()).value();
  const auto slept = session->run("SELECT SLEEP(10)", Deadline::after(clock_, std::chrono::milliseconds(200)));
  ASSERT_TRUE(slept.has_error());
  EXPECT_EQ(slept.error().code(), ErrorCode::timeout);
  EXPECT_EQ(session->run("SELECT 1", soon()).error().code(), ErrorCode::unavailable);
}

TEST_F(MysqlTls, RowsThatStopComingEndTheSession) {
  const auto session = connect(tls(), clock_, soon()).value();
  std::size_t rows = 0;
  const auto read = session->stream(
      "SELECT REPEAT('x', 100000), SLEEP(IF(seq = 100, 10, 0)) FROM seq_1_to_200",
      [&rows](Cells&&) { return ++rows > 0; }, Deadline::after(clock_, std::chrono::seconds(1)));
  ASSERT_TRUE(read.has_error());
  EXPECT_EQ(read.error().code(), ErrorCode::timeout);
  EXPECT_GT(rows, 50U);
  EXPECT_EQ(session->run("SELECT 1", soon()).error().code(), ErrorCode::unavailable);
}

TEST_F(MysqlTls, AStatementThatTheSocketDoesNotTakeAtOnceIsSentWhole) {
  const auto session = connect(tls(), clock_, soon()).value();
  const auto answer = session->run("SELECT LENGTH('" + std::string(15'000'000, 'x') + "')", soon());
  ASSERT_TRUE(answer) << answer.error().message();
  EXPECT_EQ(answer->rows.front()[0], "15000000");
}

TEST_F(MysqlTls, ShowsACertificateOfItsOwn) {
  sql("CREATE USER IF NOT EXISTS 'certified'@'%' REQUIRE X509");
  sql("GRANT SELECT ON " + name() + ".* TO 'certified'@'%'");
  Settings settings = tls();
  settings.config.username = "certified";
  EXPECT_THAT(cipher(settings), HasSubstr("refuses the user"));
  settings.config.tls->certificate = certificates() + "/client.pem";
  settings.config.tls->key = certificates() + "/client.key";
  EXPECT_THAT(cipher(settings), HasSubstr("TLS_"));
}

TEST_F(MysqlTls, ChecksAnotherNameThanTheHosts) {
  Settings named = tls("127.0.0.1");
  named.config.tls->server_name = "localhost";
  EXPECT_THAT(cipher(named), HasSubstr("TLS_"));
  named.config.tls->server_name = "db.internal";
  EXPECT_THAT(cipher(named), HasSubstr("hostname mismatch"));
  named.config.tls->server_name = "localhost";
  named.config.tls->ca = certificates() + "/other.pem";
  EXPECT_THAT(cipher(named), HasSubstr("no TLS session")) << "not by this authority";
  named.config.tls->ca = "/nowhere/ca.pem";
  EXPECT_THAT(cipher(named), HasSubstr("/nowhere/ca.pem"));
  named = tls();
  named.config.url = "mysql://root@unix(" + server().socket() + ")/" + name();
  named.config.tls->server_name = "localhost";
  EXPECT_THAT(cipher(named), HasSubstr("TLS_")) << "over a socket too";
}

TEST_F(MysqlTls, WorksThroughATunnel) {
  const auto ssh = test::SshServer::start();
  if (ssh == nullptr) {
    GTEST_SKIP() << test::SshServer::absence();
  }
  const SshSettings way{{.host = "127.0.0.1",
                         .port = static_cast<std::uint32_t>(ssh->port()),
                         .private_key = ssh->good_key(),
                         .known_hosts = ssh->known_hosts()},
                        "127.0.0.1",
                        static_cast<std::uint32_t>(server().port())};
  Settings through = settings();
  through.config.url = "mysql://root@db.internal:3306/" + name();
  through.tunnel = make_ssh_tunnel(way, clock_);
  insert(1, "t", "a", "\"" + std::string(300'000, 'x') + "\"");
  const auto session = database(through)->open_reader(soon());
  ASSERT_TRUE(session) << session.error().message();
  EXPECT_EQ(pending(**session).size(), 1U);
  through.config.tls.emplace();
  through.config.tls->ca = certificates() + "/ca.pem";
  EXPECT_THAT(cipher(through), HasSubstr("hostname mismatch"))
      << "the certificate is for localhost, the url says db.internal";
  through.config.tls->server_name = "localhost";
  EXPECT_THAT(cipher(through), HasSubstr("TLS_")) << "TLS inside of the tunnel";
}

}  // namespace
}  // namespace sluice::queue::outbox::mysql
