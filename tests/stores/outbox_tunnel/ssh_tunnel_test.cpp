#include "host/stores/outbox/tunnel/ssh_tunnel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "tests/support/ahead_clock.hpp"
#include "tests/support/loopback.hpp"
#include "tests/support/result_value.hpp"
#include "tests/support/ssh_server.hpp"

namespace sluice::queue::outbox {
namespace {

using test::SshServer;
using testing::HasSubstr;

/// Sends back what it gets, and ends a connection when its client has ended.
class EchoServer {
 public:
  EchoServer() : listener_(test::listen_on_loopback()), port_(test::local_port(listener_)) {
    thread_ = std::jthread([this] { accept_all(); });
  }
  ~EchoServer() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;

  int port() const { return port_; }

 private:
  void accept_all() {
    std::vector<std::jthread> talks;
    for (;;) {
      const int client = ::accept(listener_.get(), nullptr, nullptr);
      if (client < 0) {
        return;
      }
      talks.emplace_back([client] {
        char block[4096];
        for (ssize_t count = 0; (count = ::recv(client, block, sizeof(block), 0)) > 0;) {
          for (ssize_t sent = 0; sent < count;) {
            const ssize_t part = ::send(client, block + sent, static_cast<std::size_t>(count - sent), MSG_NOSIGNAL);
            if (part <= 0) {
              break;
            }
            sent += part;
          }
        }
        ::close(client);
      });
    }
  }

  test::Descriptor listener_;
  int port_;
  std::jthread thread_;
};

test::Descriptor connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  test::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  return ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0 ? std::move(socket)
                                                                                              : test::Descriptor();
}

/// Until the other side ends.
std::string all_from(const test::Descriptor& socket) {
  std::string all;
  char block[4096];
  for (ssize_t count = 0; (count = ::recv(socket.get(), block, sizeof(block), 0)) > 0;) {
    all.append(block, static_cast<std::size_t>(count));
  }
  return all;
}

/// What comes back for a text until the other side ends; the text is sent beside the reading.
std::string talk(const std::string& path, const std::string& text) {
  const test::Descriptor socket = connect_to(path);
  std::jthread sender([&] {
    for (std::size_t sent = 0; sent < text.size();) {
      const ssize_t part = ::send(socket.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (part <= 0) {
        break;
      }
      sent += static_cast<std::size_t>(part);
    }
    ::shutdown(socket.get(), SHUT_WR);
  });
  return all_from(socket);
}

class SshTunnelTest : public testing::Test {
 protected:
  void SetUp() override {
    server_ = SshServer::start();
    if (server_ == nullptr) {
      GTEST_SKIP() << SshServer::absence();
    }
  }

  SshSettings settings(int target) const {
    SshSettings settings;
    settings.host = "127.0.0.1";
    settings.port = static_cast<std::uint32_t>(server_->port());
    settings.private_key = server_->good_key();
    settings.known_hosts = server_->known_hosts();
    settings.target_host = "127.0.0.1";
    settings.target_port = static_cast<std::uint32_t>(target);
    return settings;
  }
  Deadline soon() const { return Deadline::after(clock_, std::chrono::seconds(60)); }
  Error refusal(const SshSettings& settings) const {
    const auto tunnel = make_ssh_tunnel(settings, clock_);
    const auto socket = tunnel(soon());
    return socket ? Error(ErrorCode::internal, "it was opened") : socket.error();
  }

  SystemClock clock_;
  std::unique_ptr<SshServer> server_;
};

TEST_F(SshTunnelTest, CarriesBytesOfManyBothWays) {
  const EchoServer echo;
  const auto tunnel = make_ssh_tunnel(settings(echo.port()), clock_);
  const auto path = tunnel(soon());
  ASSERT_TRUE(path) << path.error().message();
  EXPECT_EQ(talk(*path, "hello"), "hello");
  std::string large(3'000'000, 'x');
  for (std::size_t i = 0; i < large.size(); i += 1000) {
    large[i] = static_cast<char>('a' + i / 1000 % 26);
  }
  std::vector<std::string> answers(4);
  {
    std::vector<std::jthread> clients;
    clients.reserve(answers.size());
    for (std::string& answer : answers) {
      clients.emplace_back([&answer, &path, &large] { answer = talk(*path, large); });
    }
  }
  for (const std::string& answer : answers) {
    EXPECT_TRUE(answer == large) << answer.size() << " bytes came back";
  }
}

// As a database says why it ends a session, whatever was sent to it meanwhile.
TEST_F(SshTunnelTest, CarriesTheLastWordsOfAServerThatDoesNotListen) {
  const test::Descriptor listener = test::listen_on_loopback();
  const auto tunnel = make_ssh_tunnel(settings(test::local_port(listener)), clock_);
  const auto path = tunnel(soon());
  ASSERT_TRUE(path) << path.error().message();
  const test::Descriptor client = connect_to(*path);
  test::Descriptor server(::accept(listener.get(), nullptr, nullptr));
  const std::string words(600'000, 'x');
  ASSERT_EQ(::send(server.get(), words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
  server.reset();
  ::poll(nullptr, 0, 500);        // the SSH server has read them
  for (int i = 0; i < 10; ++i) {  // it finds out by the first ones that nobody takes them
    ::send(client.get(), "x", 1, MSG_NOSIGNAL);
    ::poll(nullptr, 0, 50);
  }
  EXPECT_EQ(all_from(client).size(), words.size());
}

TEST_F(SshTunnelTest, LetsNobodyElseIntoItsFolderAndRemovesIt) {
  const EchoServer echo;
  std::filesystem::path path;
  {
    const auto tunnel = make_ssh_tunnel(settings(echo.port()), clock_);
    path = tunnel(soon()).value();
    EXPECT_EQ(path.filename(), ".s.PGSQL." + std::to_string(echo.port())) << "as libpq wants it";
    struct stat folder {};
    ASSERT_EQ(::stat(path.parent_path().c_str(), &folder), 0);
    EXPECT_EQ(folder.st_mode & 0777U, 0700U);
  }
  EXPECT_FALSE(std::filesystem::exists(path.parent_path()));
}

TEST_F(SshTunnelTest, RefusesAServerWhoseKeyIsUnknown) {
  SshSettings unknown = settings(1);
  unknown.known_hosts = server_->empty_known_hosts();
  const Error error = refusal(unknown);
  EXPECT_EQ(error.code(), ErrorCode::denied);
  EXPECT_THAT(error.message(), HasSubstr("is unknown"));
  EXPECT_THAT(error.message(), HasSubstr("SHA256:")) << "so that it can be compared";
  unknown.known_hosts = "/nowhere/known_hosts";
  EXPECT_THAT(refusal(unknown).message(), HasSubstr("is unknown"));
}

TEST_F(SshTunnelTest, RefusesAServerWhoseKeyIsAnother) {
  SshSettings changed = settings(1);
  changed.known_hosts = server_->wrong_known_hosts();
  const Error error = refusal(changed);
  EXPECT_EQ(error.code(), ErrorCode::denied);
  EXPECT_THAT(error.message(), HasSubstr("is not the one that"));
}

TEST_F(SshTunnelTest, AsksForNoKeyOnlyWhereItIsToldTo) {
  const EchoServer echo;
  SshSettings careless = settings(echo.port());
  careless.known_hosts = server_->empty_known_hosts();
  careless.check_host_key = false;
  const auto tunnel = make_ssh_tunnel(careless, clock_);
  const auto path = tunnel(soon());
  ASSERT_TRUE(path) << path.error().message();
  EXPECT_EQ(talk(*path, "hello"), "hello");
}

TEST_F(SshTunnelTest, NamesAKeyOfOursThatIsRefused) {
  SshSettings stranger = settings(1);
  stranger.private_key = server_->other_key();
  const Error error = refusal(stranger);
  EXPECT_EQ(error.code(), ErrorCode::denied);
  EXPECT_THAT(error.message(), HasSubstr("does not accept the key"));
  stranger.private_key = "/nowhere/key";
  EXPECT_EQ(refusal(stranger).code(), ErrorCode::invalid);
  EXPECT_THAT(refusal(stranger).message(), HasSubstr("no such file"));
  stranger.private_key = server_->known_hosts();
  EXPECT_THAT(refusal(stranger).message(), HasSubstr("cannot read the private key"));
}

TEST_F(SshTunnelTest, NamesAlgorithmsThatTheServerLacks) {
  SshSettings other = settings(1);
  other.host_key_algorithms = {"rsa-sha2-512"};
  EXPECT_EQ(refusal(other).code(), ErrorCode::unavailable);
  EXPECT_THAT(refusal(other).message(), HasSubstr("no SSH session"));
  other.host_key_algorithms = {"no-such-kind"};
  EXPECT_EQ(refusal(other).code(), ErrorCode::invalid);
}

TEST_F(SshTunnelTest, LeavesNoDescriptorOpenWhereItCannotBeOpened) {
  const auto descriptors = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  SshSettings other = settings(1);
  for (const char* algorithm : {"rsa-sha2-512", "no-such-kind"}) {
    other.host_key_algorithms = {algorithm};
    const Tunnel tunnel = make_ssh_tunnel(other, clock_);
    EXPECT_TRUE(tunnel(soon()).has_error());
    const auto before = descriptors();
    EXPECT_TRUE(tunnel(soon()).has_error());
    EXPECT_EQ(descriptors(), before) << algorithm;
  }
}

TEST_F(SshTunnelTest, NamesAServerThatIsNotThere) {
  SshSettings nobody = settings(1);
  nobody.port = static_cast<std::uint32_t>(test::free_loopback_port());
  EXPECT_EQ(refusal(nobody).code(), ErrorCode::unavailable);
  EXPECT_THAT(refusal(nobody).message(), HasSubstr("Connection refused"));
  nobody.host = "no-such-machine.invalid";
  EXPECT_THAT(refusal(nobody).message(), HasSubstr("the name \"no-such-machine.invalid\" cannot be resolved"));
}

TEST_F(SshTunnelTest, SaysWhyTheDatabaseCannotBeReached) {
  const auto tunnel = make_ssh_tunnel(settings(test::free_loopback_port()), clock_);
  const auto path = tunnel(soon());
  ASSERT_TRUE(path) << path.error().message();
  EXPECT_EQ(talk(*path, "hello"), "") << "who is connected only sees the end";
  const auto second = tunnel(soon());
  ASSERT_TRUE(second.has_error());
  EXPECT_THAT(second.error().message(), HasSubstr("cannot reach 127.0.0.1:"));
  EXPECT_TRUE(tunnel(soon())) << "it is said once; the SSH session is good";
}

TEST_F(SshTunnelTest, IsOpenedAgainAfterItsServerWasGone) {
  const EchoServer echo;
  const auto tunnel = make_ssh_tunnel(settings(echo.port()), clock_);
  const auto path = tunnel(soon());
  ASSERT_TRUE(path) << path.error().message();
  const test::Descriptor client = connect_to(*path);
  ASSERT_EQ(::send(client.get(), "a", 1, MSG_NOSIGNAL), 1);
  char byte = 0;
  ASSERT_EQ(::recv(client.get(), &byte, 1, 0), 1);
  server_->kill();
  EXPECT_LE(::recv(client.get(), &byte, 1, 0), 0) << "whoever is connected sees the end";
  server_->restart();
  const auto again = tunnel(soon());
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, *path);
  EXPECT_EQ(talk(*again, "hello"), "hello");
}

// It was waited for until TCP had given it up, which takes a quarter of an hour.
TEST_F(SshTunnelTest, IsOpenedAgainWhenItsServerDoesNotAnswerAnyMore) {
  const EchoServer echo;
  test::AheadClock clock;
  const auto tunnel = make_ssh_tunnel(settings(echo.port()), clock);
  const auto later = [&clock] { return Deadline::after(clock, std::chrono::hours(1)); };
  const auto path = tunnel(later());
  ASSERT_TRUE(path) << path.error().message();
  EXPECT_EQ(talk(*path, "hello"), "hello");
  server_->freeze_sessions();
  const test::Descriptor client = connect_to(*path);
  for (pollfd end{client.get(), POLLIN, 0}; ::poll(&end, 1, 100) == 0;) {
    clock.advance(std::chrono::seconds(20));
    static_cast<void>(connect_to(*path));  // which has it look
  }
  const auto said = tunnel(later());
  ASSERT_TRUE(said.has_error());
  EXPECT_THAT(said.error().message(), HasSubstr("the SSH server does not answer"));
  const auto again = tunnel(later());
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(talk(*again, "hello"), "hello");
}

TEST_F(SshTunnelTest, EndsWhileItsServerDoesNotAnswer) {
  const test::Descriptor silent = test::listen_on_loopback();
  SshSettings stuck = settings(1);
  stuck.port = static_cast<std::uint32_t>(test::local_port(silent));
  const auto tunnel = make_ssh_tunnel(stuck, clock_);
  EXPECT_EQ(tunnel(Deadline::at(clock_.steady_now())).error().code(), ErrorCode::timeout);
}

}  // namespace
}  // namespace sluice::queue::outbox
