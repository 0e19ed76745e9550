#include "host/runtime/control_socket.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>

namespace sluice::runtime {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Deadline patience() { return Deadline::after(SystemClock(), std::chrono::seconds(20)); }

/// A folder for sockets and a server that answers with what it was asked.
class ControlSocketTest : public testing::Test {
 protected:
  ControlSocketTest() {
    std::array<char, 64> name{"/tmp/sluice-control-XXXXXX"};
    root_ = ::mkdtemp(name.data());
    folder_ = ControlFolder(root_ + "/control");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  std::unique_ptr<ControlSocket> serve() {
    auto opened = ControlSocket::open(folder_, [this](const ControlRequest& request, uid_t user) {
      user_ = user;
      return ControlAnswer{.text = std::string(to_string(request.verb)) + " " + request.message};
    });
    EXPECT_TRUE(opened) << opened.error().message();
    EXPECT_TRUE((*opened)->start());
    return std::move(*opened);
  }

  /// Tries again while more wait than the kernel keeps for a server that is not at it at this moment.
  static Descriptor connect(const std::string& file) {
    auto socket = ControlFolder::connect(file);
    while (!socket && socket.error().code() == ErrorCode::unavailable) {
      socket = ControlFolder::connect(file);
    }
    EXPECT_TRUE(socket) << socket.error().message();
    return std::move(*socket);
  }
  Descriptor connect() { return connect(folder_.sockets().front()); }

  /// What comes until the host hangs up.
  std::string rest_of(const Descriptor& socket) {
    ::fcntl(socket.get(), F_SETFL, 0);
    std::string text;
    std::array<char, 512> bytes;
    for (ssize_t got = 0; (got = ::recv(socket.get(), bytes.data(), bytes.size(), 0)) > 0;) {
      text.append(bytes.data(), static_cast<std::size_t>(got));
    }
    return text;
  }
  static void say(const Descriptor& socket, const std::string& text) {
    ASSERT_EQ(::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL), static_cast<ssize_t>(text.size()));
  }
  std::string answer_to(const ControlRequest& request) {
    auto call = ControlCall::open(folder_.sockets().front(), clock_);
    while (!call && call.error().code() == ErrorCode::unavailable) {
      call = ControlCall::open(folder_.sockets().front(), clock_);
    }
    EXPECT_TRUE(call) << call.error().message();
    const auto answer = call->ask(request, patience());
    EXPECT_TRUE(answer) << answer.error().message();
    return answer->text;
  }

  std::string root_;
  ControlFolder folder_{""};
  SystemClock clock_;
  std::uint32_t user_ = 77;
};

TEST_F(ControlSocketTest, AnswersAndKnowsWhoAsks) {
  const auto server = serve();
  EXPECT_EQ(answer_to({ControlVerb::cancel_running, "A-1"}), "cancel_running A-1");
  EXPECT_EQ(user_, ::geteuid());
}

TEST_F(ControlSocketTest, IsForItsOwnerAlone) {
  const auto server = serve();
  struct stat seen {};
  ASSERT_EQ(::stat(server->file().c_str(), &seen), 0);
  EXPECT_TRUE(S_ISSOCK(seen.st_mode));
  EXPECT_EQ(seen.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat(folder_.path().c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 0777U, 0700U);
}

TEST_F(ControlSocketTest, RefusesAnotherUserWhoGotHold) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can become somebody else";
  }
  // The server is somebody else's: root itself may always ask.
  std::array<int, 2> ready{};
  ASSERT_EQ(::pipe(ready.data()), 0);
  ::chmod(root_.c_str(), 0755);
  const auto server = serve();
  ::chmod(folder_.path().c_str(), 0755);
  ::chmod(server->file().c_str(), 0666);
  const pid_t child = ::fork();
  if (child == 0) {
    std::array<char, 256> bytes{};
    if (::setuid(65534) != 0) {
      ::_exit(1);
    }
    const auto socket = ControlFolder::connect(server->file());
    const bool said = socket && ::send(socket->get(), "{\"command\":\"drain\"}\n", 20, MSG_NOSIGNAL) == 20;
    ::fcntl(socket->get(), F_SETFL, 0);
    const bool refused = said && ::recv(socket->get(), bytes.data(), bytes.size() - 1, 0) > 0 &&
                         std::string(bytes.data()).find("user 65534 may not steer this host") != std::string::npos;
    ::_exit(refused ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(user_, 77U) << "nobody was asked";
}

TEST_F(ControlSocketTest, GarbageGetsALineThatSaysSo) {
  const auto server = serve();
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\n"), std::string("\n"), std::string("{\"command\":\"explode\"}\n"),
        std::string("\0\xff\xfe\n", 4), std::string(5000, 'x'), std::string(100'000, '[') + "\n"}) {
    const Descriptor socket = connect();
    ::send(socket.get(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    EXPECT_THAT(rest_of(socket), HasSubstr("{\"ok\":false,\"error\":")) << garbage.substr(0, 30);
  }
  EXPECT_EQ(answer_to({}), "about ") << "it works on";
}

TEST_F(ControlSocketTest, HalfALineGetsNothing) {
  const auto server = serve();
  const Descriptor socket = connect();
  say(socket, "{\"command\":\"drain\"}");
  ::shutdown(socket.get(), SHUT_WR);
  EXPECT_EQ(rest_of(socket), "");
  EXPECT_EQ(user_, 77U);
}

TEST_F(ControlSocketTest, ACallerThatShutItsSideIsAnswered) {
  const auto server = serve();
  const Descriptor socket = connect();
  say(socket, "{\"command\":\"look\"}\n");
  ::shutdown(socket.get(), SHUT_WR);
  EXPECT_EQ(rest_of(socket), "{\"ok\":true,\"text\":\"look \"}\n");
}

TEST_F(ControlSocketTest, ManyWhoSayNothingKeepNobodyOut) {
  const auto server = serve();
  std::vector<Descriptor> silent;
  for (std::size_t i = 0; i < 3 * ControlSocket::kMostCallers; ++i) {
    silent.push_back(connect(server->file()));
  }
  EXPECT_EQ(answer_to({}), "about ");
  EXPECT_EQ(rest_of(silent.front()), "") << "the oldest has made room";
}

TEST_F(ControlSocketTest, CallersThatComeAndGoAtAnyMomentHurtNobody) {
  const auto server = serve();
  for (int round = 0; round < 300; ++round) {
    const Descriptor socket = connect();
    if (round % 3 == 1) {
      say(socket, "{\"command\":\"drain\",\"wait\":true}\n");
    } else if (round % 3 == 2) {
      say(socket, "{\"comm");
    }
  }
  EXPECT_EQ(answer_to({}), "about ");
}

TEST_F(ControlSocketTest, TellsThoseWhoWaitHowTheHostEnded) {
  const auto server = serve();
  auto drains = ControlCall::open(server->file(), clock_);
  ASSERT_EQ(drains->ask({.verb = ControlVerb::drain, .message = {}, .wait = true}, patience())->text, "drain ");
  auto reloads = ControlCall::open(server->file(), clock_);
  ASSERT_TRUE(reloads->ask({.verb = ControlVerb::reload, .message = {}, .wait = true}, patience()));
  server->farewell({.status = 75, .certificate = "drained"});
  EXPECT_EQ(drains->next(patience())->ending->status, 75);
  EXPECT_EQ(reloads->next(patience())->ending->certificate, "drained");
  EXPECT_THAT(folder_.sockets(), IsEmpty()) << "nobody finds it any more";
}

TEST_F(ControlSocketTest, TellsEachOnlyWhatItWaitsFor) {
  const auto server = serve();
  auto drains = ControlCall::open(server->file(), clock_);
  ASSERT_TRUE(drains->ask({.verb = ControlVerb::drain, .message = {}, .wait = true}, patience()));
  auto reloads = ControlCall::open(server->file(), clock_);
  ASSERT_TRUE(reloads->ask({.verb = ControlVerb::reload, .message = {}, .wait = true}, patience()));
  server->reload_begins();
  server->reload_ended(ControlAnswer::refusal("a bad file"));
  EXPECT_EQ(reloads->next(patience())->error, "a bad file");
  EXPECT_EQ(drains->next(Deadline::at(clock_.steady_now())).error().code(), ErrorCode::timeout);
  auto late = ControlCall::open(server->file(), clock_);
  ASSERT_TRUE(late->ask({.verb = ControlVerb::reload, .message = {}, .wait = true}, patience()));
  EXPECT_EQ(late->next(Deadline::at(clock_.steady_now())).error().code(), ErrorCode::timeout) << "it was over by then";
  server->reload_begins();
  server->reload_ended({.text = "reloaded"});
  EXPECT_EQ(late->next(patience())->text, "reloaded");
}

// A host may be in the middle of a reload when it ends, and its main thread tells of that afterwards.
TEST_F(ControlSocketTest, WhoComesToWaitForTheEndIsToldOfItWhateverIsToldAfterwards) {
  const auto server = serve();
  auto late = ControlCall::open(server->file(), clock_);
  ASSERT_TRUE(late);
  server->farewell({.status = 75, .certificate = "drained"});
  server->reload_begins();
  server->reload_ended({.text = "reloaded"});
  ASSERT_TRUE(late->ask({.verb = ControlVerb::drain, .message = {}, .wait = true}, patience()));
  const auto told = late->next(patience());
  ASSERT_TRUE(told) << told.error().message();
  EXPECT_EQ(told->ending->status, 75);
}

TEST_F(ControlSocketTest, AnAnswerThatNobodyTakesHoldsUpNoOther) {
  auto opened = ControlSocket::open(folder_, [](const ControlRequest& request, uid_t) {
    return ControlAnswer{.text = request.verb == ControlVerb::about ? std::string(3'000'000, 'x') : "quick"};
  });
  ASSERT_TRUE((*opened)->start());
  const Descriptor deaf = connect();
  say(deaf, "{\"command\":\"about\"}\n");
  EXPECT_EQ(answer_to({.verb = ControlVerb::look, .message = {}, .wait = false}), "quick");
  EXPECT_THAT(rest_of(deaf), SizeIs(3'000'000 + std::string("{\"ok\":true,\"text\":\"\"}\n").size()));
  (*opened)->stop();
}

TEST_F(ControlSocketTest, StopsAtOnceWhateverItsCallersAreAt) {
  auto server = serve();
  const Descriptor silent = connect();
  auto waits = ControlCall::open(server->file(), clock_);
  ASSERT_TRUE(waits->ask({.verb = ControlVerb::drain, .message = {}, .wait = true}, patience()));
  const SteadyTime before = clock_.steady_now();
  server->stop();
  server->stop();
  EXPECT_LT(clock_.steady_now() - before, std::chrono::seconds(4)) << "it waited for a request's time";
  EXPECT_THAT(folder_.sockets(), IsEmpty());
  server.reset();
  EXPECT_EQ(waits->next(patience()).error().code(), ErrorCode::unavailable) << "the host has hung up";
}

TEST_F(ControlSocketTest, ADeadHostsFileIsInNobodysWay) {
  ASSERT_TRUE(serve());
  const pid_t child = ::fork();
  if (child == 0) {
    const auto left = ControlFolder(folder_.path()).listen();
    ::_exit(left ? 0 : 1);  // without a destructor, as a host that is killed
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_THAT(folder_.sockets(), SizeIs(1));
  EXPECT_EQ(ControlFolder::connect(folder_.sockets().front()).error().code(), ErrorCode::not_found);
  EXPECT_THAT(find_local_hosts(folder_, clock_).speechless, IsEmpty());
  const auto server = serve();
  EXPECT_THAT(folder_.sockets(), SizeIs(1)) << "the next host removes it";
  EXPECT_EQ(answer_to({}), "about ");
}

TEST_F(ControlSocketTest, ASocketThatADeadHostNeverFinishedIsRemoved) {
  ASSERT_TRUE(serve());
  const std::string unfinished = folder_.path() + "/1-1.sock.new";
  std::ofstream(unfinished) << "";
  std::filesystem::last_write_time(unfinished, std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  ASSERT_TRUE(serve());
  EXPECT_FALSE(std::filesystem::exists(unfinished));
}

TEST_F(ControlSocketTest, LeavesTheSocketsOfLivingHostsAlone) {
  const auto one = serve();
  const auto other = serve();
  EXPECT_THAT(folder_.sockets(), SizeIs(2));
  EXPECT_TRUE(ControlFolder::connect(one->file()));
  EXPECT_TRUE(ControlFolder::connect(other->file()));
}

TEST_F(ControlSocketTest, ThePathMayBeLongerThanAnAddressHasRoomFor) {
  folder_ = ControlFolder(root_ + "/" + std::string(120, 'd') + "/" + std::string(120, 'e') + "/control");
  std::filesystem::create_directories(std::filesystem::path(folder_.path()).parent_path());
  const auto server = serve();
  EXPECT_EQ(answer_to({}), "about ");
}

TEST_F(ControlSocketTest, AFolderThatCannotBeMadeIsAnError) {
  std::ofstream(root_ + "/file") << "x";
  const auto opened = ControlFolder(root_ + "/file/control").listen();
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), ErrorCode::denied);
}

TEST_F(ControlSocketTest, AHostThatIsStoppedIsToldApartFromADeadOne) {
  const auto socket = folder_.listen();  // and nobody serves it
  ASSERT_TRUE(socket);
  auto call = ControlCall::open(socket->file, clock_);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->ask({}, Deadline::at(clock_.steady_now())).error().code(), ErrorCode::timeout);
}

TEST_F(ControlSocketTest, WaitsForTheEndOfTheProcess) {
  std::array<int, 2> end{};
  std::array<int, 2> up{};
  ASSERT_EQ(::pipe(end.data()), 0);
  ASSERT_EQ(::pipe(up.data()), 0);
  char byte = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto socket = folder_.listen();
    ::close(end[1]);
    const auto told = ::write(up[1], "x", 1);
    const auto got = ::read(end[0], &byte, 1);
    ::_exit(told == 1 && got == 0 ? 0 : 1);
  }
  ASSERT_EQ(::read(up[0], &byte, 1), 1);
  auto call = ControlCall::open(folder_.sockets().front(), clock_);
  ASSERT_TRUE(call);
  EXPECT_FALSE(call->wait_for_exit(Deadline::at(clock_.steady_now())));
  ::close(end[1]);
  EXPECT_TRUE(call->wait_for_exit(patience()));
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  for (const int descriptor : {end[0], up[0], up[1]}) {
    ::close(descriptor);
  }
}

}  // namespace
}  // namespace sluice::runtime
