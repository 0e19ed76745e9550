#include "host/observe/http_endpoint.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <set>
#include <thread>
#include <vector>

#include "tests/support/loopback.hpp"

namespace sluice::observe {
namespace {

using std::string_literals::operator""s;
using test::connect_to_loopback;
using test::Descriptor;
using testing::HasSubstr;
using testing::StartsWith;

/// An endpoint on a free port, whose answers a test may change.
struct Site {
  std::atomic<bool> healthy{true};
  std::atomic<bool> ready{true};
  std::unique_ptr<HttpEndpoint> endpoint;
  int port = 0;

  Site() {
    HttpHandlers handlers;
    handlers.health = [this] { return ProbeResult{healthy, healthy ? "ok" : "handler stuck: orders"}; };
    handlers.ready = [this] { return ProbeResult{ready, ready ? "ready" : "draining"}; };
    handlers.metrics = [] { return std::string("metric_a 1\n") + std::string(300'000, '#') + "\n"; };
    endpoint = *HttpEndpoint::open("127.0.0.1:0", std::move(handlers));
    const std::string address = endpoint->address();
    port = std::stoi(address.substr(address.rfind(':') + 1));
    endpoint->start();
  }
};

void put(const Descriptor& socket, std::string_view text) {
  while (!text.empty()) {
    const auto sent = ::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0) {
      return;  // the endpoint has closed; what it answered is read next
    }
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

std::string rest_of(const Descriptor& socket) {
  std::string text;
  char bytes[4096];
  for (;;) {
    const auto size = ::recv(socket.get(), bytes, sizeof(bytes), 0);
    if (size <= 0) {
      return text;
    }
    text.append(bytes, static_cast<std::size_t>(size));
  }
}

std::string ask(const Site& site, std::string_view request) {
  const Descriptor socket = connect_to_loopback(site.port);
  put(socket, request);
  return rest_of(socket);
}

std::string get(const Site& site, const std::string& path) {
  return ask(site, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
}

TEST(HttpEndpoint, AnswersProbesAndMetrics) {
  Site site;
  EXPECT_THAT(get(site, "/healthz"), testing::AllOf(StartsWith("HTTP/1.1 200 "), testing::EndsWith("\r\n\r\nok\n")));
  EXPECT_THAT(get(site, "/readyz?verbose=1"), testing::EndsWith("\r\n\r\nready\n"));
  site.ready = false;
  EXPECT_THAT(get(site, "/readyz"), testing::AllOf(StartsWith("HTTP/1.1 503 "), HasSubstr("\r\n\r\ndraining\n")));
  site.healthy = false;
  EXPECT_THAT(get(site, "/healthz"), StartsWith("HTTP/1.1 503 "));
  const std::string metrics = get(site, "/metrics");
  EXPECT_THAT(metrics, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(metrics, HasSubstr("\r\n\r\nmetric_a 1\n"));
  EXPECT_GT(metrics.size(), 300'000U);
}

TEST(HttpEndpoint, AnswersAutoscalersByQueue) {
  HttpHandlers handlers;
  handlers.scale = [](std::string_view queue) {
    return HttpReply{queue == "outbox:a" ? 200U : 404U, "{\"queue\": \"" + std::string(queue) + "\"}\n"};
  };
  const auto endpoint = *HttpEndpoint::open("127.0.0.1:0", std::move(handlers));
  ASSERT_TRUE(endpoint->start());
  const std::string address = endpoint->address();
  const auto port = static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  const auto got = [port](const std::string& path) {
    const Descriptor socket = connect_to_loopback(port);
    put(socket, "GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
    return rest_of(socket);
  };
  for (const char* path : {"/scale/outbox:a", "/scale/outbox%3Aa", "/scale/outbox%3aa?pretty"}) {
    EXPECT_THAT(got(path), testing::AllOf(StartsWith("HTTP/1.1 200 "), HasSubstr("Content-Type: application/json\r\n"),
                                          HasSubstr("\"outbox:a\"")))
        << path;
  }
  for (const char* path : {"/scale/", "/scale/%", "/scale/%3", "/scale/%zz", "/scale/b"}) {
    EXPECT_THAT(got(path), StartsWith("HTTP/1.1 404 ")) << path;
  }
}

TEST(HttpEndpoint, HeadHasTheLengthAndNoBody) {
  Site site;
  const std::string answer = ask(site, "HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 3\r\n"));
  EXPECT_THAT(answer, testing::EndsWith("\r\n\r\n"));
}

TEST(HttpEndpoint, RefusesOtherPathsAndMethods) {
  Site site;
  for (const char* path : {"/", "/metrics/", "/../etc/passwd", "/healthz%00", "//healthz", "*"}) {
    EXPECT_THAT(get(site, path), StartsWith("HTTP/1.1 404 ")) << path;
  }
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "BREW"}) {
    const std::string answer =
        ask(site, std::string(method) + " /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbody");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 ")) << method;
    EXPECT_THAT(answer, HasSubstr("Allow: GET, HEAD\r\n")) << method;
  }
}

TEST(HttpEndpoint, SurvivesWhatIsNotARequest) {
  Site site;
  const std::vector<std::string> requests = {
      "\r\n\r\n\0\0\0"s,
      "\x16\x03\x01\x02"s + std::string(500, 'x') + "\r\n\r\n",  // a TLS client
      "GET /healthz\r\n\r\n",
      "GET /healthz HTTP/9.9\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nbroken header\r\n\r\n",
      "GET /healthz HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
      std::string(4096, '\n'),
  };
  for (const auto& request : requests) {
    EXPECT_THAT(ask(site, request), StartsWith("HTTP/1.1 400 ")) << request.substr(0, 40);
  }
  EXPECT_THAT(get(site, "/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpEndpoint, RefusesHugeHeaders) {
  Site site;
  const std::string huge = "GET /healthz HTTP/1.1\r\nX: " + std::string(20'000, 'a') + "\r\n\r\n";
  EXPECT_THAT(ask(site, huge), StartsWith("HTTP/1.1 431 "));
  const std::string target = "GET /" + std::string(20'000, 'a') + " HTTP/1.1\r\n\r\n";
  EXPECT_THAT(ask(site, target), StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(get(site, "/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpEndpoint, AnswersWhileManyClientsHang) {
  Site site;
  std::vector<Descriptor> hanging;
  for (int client = 0; client < 200; ++client) {
    hanging.push_back(connect_to_loopback(site.port));
    put(hanging.back(), client % 2 == 0 ? "GET /heal" : "");
  }
  EXPECT_THAT(get(site, "/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(rest_of(hanging.front()), "") << "the oldest made room";
}

TEST(HttpEndpoint, AnswersWhileAClientDoesNotRead) {
  Site site;
  std::vector<Descriptor> deaf;
  for (int client = 0; client < 8; ++client) {
    deaf.push_back(connect_to_loopback(site.port));
    put(deaf.back(), "GET /metrics HTTP/1.1\r\n\r\n");
  }
  EXPECT_THAT(get(site, "/healthz"), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpEndpoint, SaysThatAPortIsInUse) {
  Site site;
  const auto second = HttpEndpoint::open(site.endpoint->address(), HttpHandlers{});
  ASSERT_TRUE(second.has_error());
  EXPECT_EQ(second.error().code(), ErrorCode::conflict);
  EXPECT_THAT(second.error().message(), HasSubstr(site.endpoint->address() + ": the port is in use"));
}

TEST(HttpEndpoint, SaysWhatIsWrongWithAnAddress) {
  for (const char* listen : {"", "9464", "localhost", "localhost:", "localhost:http", "localhost:65536", "localhost:-1",
                             "::1:80", "localhost: 80"}) {
    const auto endpoint = HttpEndpoint::open(listen, HttpHandlers{});
    ASSERT_TRUE(endpoint.has_error()) << listen;
    EXPECT_EQ(endpoint.error().code(), ErrorCode::invalid) << listen;
    EXPECT_THAT(endpoint.error().message(), HasSubstr("host:port")) << listen;
  }
  const auto elsewhere = HttpEndpoint::open("192.0.2.1:0", HttpHandlers{});
  ASSERT_TRUE(elsewhere.has_error());
  EXPECT_EQ(elsewhere.error().code(), ErrorCode::unavailable);
}

TEST(HttpEndpoint, ListensOnAllInterfacesByPortAlone) {
  HttpHandlers handlers;
  handlers.health = [] { return ProbeResult{}; };
  const auto endpoint = *HttpEndpoint::open(":0", std::move(handlers));
  endpoint->start();
  const std::string address = endpoint->address();
  Descriptor socket = connect_to_loopback(std::stoi(address.substr(address.rfind(':') + 1)));
  put(socket, "GET /healthz HTTP/1.0\r\n\r\n");
  EXPECT_THAT(rest_of(socket), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpEndpoint, StopEndsAtOnceWithClientsConnected) {
  Site site;
  std::vector<Descriptor> hanging;
  for (int client = 0; client < 20; ++client) {
    hanging.push_back(connect_to_loopback(site.port));
    put(hanging.back(), "GET /metrics HTTP/1.1\r\n");
  }
  const auto begin = std::chrono::steady_clock::now();
  site.endpoint->stop();
  // Far below the five seconds that a hanging client may take.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(3));
  EXPECT_FALSE(connect_to_loopback(site.port)) << "the port is free again";
  site.endpoint->stop();
}

// A program that a plugin starts would keep the port after the host's end.
TEST(HttpEndpoint, HandsNoSocketToWhatTheHostStarts) {
  const auto inherited = [] {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      const int number = std::stoi(entry.path().filename());
      const int flags = ::fcntl(number, F_GETFD);
      if (flags >= 0 && (flags & FD_CLOEXEC) == 0) {
        names.insert(entry.path().filename());
      }
    }
    return names;
  };
  const auto before = inherited();
  Site site;
  const Descriptor socket = connect_to_loopback(site.port);
  ::fcntl(socket.get(), F_SETFD, FD_CLOEXEC);
  put(socket, "GET /readyz HTTP/1.1\r\nHost: x\r\n");
  EXPECT_THAT(get(site, "/readyz"), HasSubstr("ready")) << "the one before is connected by now";
  EXPECT_EQ(inherited(), before);
}

TEST(HttpEndpoint, StopBeforeStartMakesStartDoNothing) {
  const auto endpoint = *HttpEndpoint::open("127.0.0.1:0", HttpHandlers{});
  endpoint->stop();
  endpoint->start();
  endpoint->stop();
}

TEST(HttpEndpoint, MayBeStoppedByManyThreadsAtOnce) {
  for (int round = 0; round < 10; ++round) {
    Site site;
    const Descriptor client = connect_to_loopback(site.port);
    std::vector<std::jthread> threads;
    threads.reserve(4);
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&site] { site.endpoint->stop(); });
    }
  }
}

}  // namespace
}  // namespace sluice::observe
