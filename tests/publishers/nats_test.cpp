// The built plugin against the distribution's nats-server.

#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <thread>

#include "tests/plugins/live_host.hpp"
#include "tests/publishers/jet_stream.hpp"
#include "tests/support/nats_server.hpp"

namespace sluice::publishers {
namespace {

using shipped::creation_error;
using shipped::LiveHost;
using shipped::OptionMap;
using shipped::Result;
using shipped::Stop;
using shipped::TestMessage;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using Names = std::vector<std::string>;
using Map = std::map<std::string, std::string>;

/// A row of an outbox as its source hands it out.
TestMessage row(const std::string& id, const std::string& aggregate = "1:1", const std::string& body = "{}") {
  return {.body = body,
          .id = id,
          .queue = "outbox:orders",
          .content_type = "application/json",
          .attributes = {{"event", "order.created"},
                         {"aggregate_type", "rn::nats:::orders"},
                         {"aggregate_id", aggregate},
                         {"producer", "shop"}},
          .group = aggregate};
}

class NatsTest : public ::testing::Test {
 protected:
  /// Skips the test, loudly, where there is no server.
  void start(const std::string& configuration = "") {
    server_ = test::NatsServer::start(configuration);
    if (!server_) {
      GTEST_SKIP() << test::NatsServer::absence();
    }
  }
  OptionMap options(OptionMap others = {}) const {
    others.emplace("servers", Names{server_->url()});
    return others;
  }
  Result published(const TestMessage& message, OptionMap others = {}) const {
    return LiveHost("nats", options(std::move(others))).handle(message);
  }

  std::unique_ptr<test::NatsServer> server_;
};

#define START(...)    \
  start(__VA_ARGS__); \
  if (IsSkipped()) return

TEST_F(NatsTest, PublishesARowAsTheOriginalDoes) {
  START();
  JetStream stream(server_->url());
  stream.add_stream("ORDERS", {"orders.>"});
  TestMessage message = row("42", "1:1", R"({"total": 5})");
  message.attributes["traceparent"] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const Result result = published(message);
  EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
  const auto stored = stream.messages("ORDERS");
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].subject, "orders.1:1");
  EXPECT_EQ(stored[0].body, R"({"total": 5})");
  EXPECT_THAT(stored[0].headers,
              ElementsAre(Pair("Event", "order.created"), Pair("Nats-Msg-Id", "shop/outbox:orders/42"),
                          Pair("Producer", "shop"), Pair("traceparent", message.attributes["traceparent"])));
}

TEST_F(NatsTest, PublishesATombstoneAsAnEmptyBodyWithAHeader) {
  START();
  JetStream stream(server_->url());
  stream.add_stream("ORDERS", {"orders.>"});
  TestMessage message = row("42", "1:1", "");
  message.attributes["tombstone"] = "true";
  EXPECT_EQ(published(message).status, SLUICE_DONE);
  const auto stored = stream.messages("ORDERS");
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].body, "");
  EXPECT_THAT(stored[0].headers, ::testing::Contains(Pair("Tombstone", "true")));
}

TEST_F(NatsTest, PublishesWhatIsNoRow) {
  START();
  JetStream stream(server_->url());
  stream.add_stream("ANY", {"plain", "plain.>", "by.event"});
  LiveHost host("nats", options({{"subject", "plain"}, {"event", "made"}, {"producer", "me"}}));
  EXPECT_EQ(host.handle({.body = std::string("a\0b\xff", 4), .id = "m-1", .queue = "things"}).status, SLUICE_DONE);
  EXPECT_EQ(host.handle({.body = "", .id = "m-2", .queue = "things", .group = "g.1"}).status, SLUICE_DONE);
  const auto stored = stream.messages("ANY");
  ASSERT_EQ(stored.size(), 2U);
  EXPECT_EQ(stored[0].subject, "plain");
  EXPECT_EQ(stored[0].body, std::string("a\0b\xff", 4));
  EXPECT_THAT(stored[0].headers,
              ElementsAre(Pair("Event", "made"), Pair("Nats-Msg-Id", "me/things/m-1"), Pair("Producer", "me")));
  EXPECT_EQ(stored[1].subject, "plain.g.1");
  EXPECT_EQ(stored[1].body, "");
}

TEST_F(NatsTest, StoresAMessageThatIsPublishedTwiceOnce) {
  START();
  JetStream stream(server_->url());
  stream.add_stream("ORDERS", {"orders.>"});
  LiveHost host("nats", options());
  for (const char* id : {"1", "1", "2"}) {
    EXPECT_EQ(host.handle(row(id)).status, SLUICE_DONE);
  }
  EXPECT_EQ(stream.count("ORDERS"), 2U) << "equal bodies of different rows are two messages";
}

TEST_F(NatsTest, TakesThePayloadForItsIdWhereTheJobSaysSo) {
  START();
  JetStream stream(server_->url());
  stream.add_stream("ORDERS", {"orders.>"});
  LiveHost host("nats", options({{"message_id", "payload"}}));
  for (const char* id : {"1", "2"}) {
    EXPECT_EQ(host.handle(row(id, "1", "abc")).status, SLUICE_DONE);
  }
  const auto stored = stream.messages("ORDERS");
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].headers.at("Nats-Msg-Id"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  LiveHost without("nats", options({{"message_id", "none"}}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(without.handle(row("3", "1", "abc")).status, SLUICE_DONE);
  }
  EXPECT_EQ(stream.count("ORDERS"), 3U);
}

TEST_F(NatsTest, CarriesManyMessagesAtOnceOverOneConnection) {
  START();
  JetStream stream(server_->url());
  stream.add_stream("ORDERS", {"orders.>"});
  constexpr int kThreads = 32;
  constexpr int kEach = 50;
  LiveHost host("nats", options());
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&host, thread] {
        for (int i = 0; i < kEach; ++i) {
          const std::string id = std::to_string(thread * kEach + i);
          const Result result = host.handle(row(id, std::to_string(thread), id));
          EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
        }
      });
    }
  }
  std::map<std::string, std::vector<int>> by_subject;
  for (const StoredMessage& message : stream.messages("ORDERS")) {
    by_subject[message.subject].push_back(std::stoi(message.body));
  }
  EXPECT_EQ(by_subject.size(), static_cast<std::size_t>(kThreads));
  for (const auto& [subject, bodies] : by_subject) {
    EXPECT_EQ(bodies.size(), static_cast<std::size_t>(kEach)) << subject;
    EXPECT_TRUE(std::is_sorted(bodies.begin(), bodies.end())) << subject;
  }
  std::size_t connections = 0;
  for (const std::string& line : host.log()) {
    connections += line.find("connected to NATS") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(connections, 1U);
}

TEST_F(NatsTest, NamesASubjectThatNoStreamTakes) {
  START();
  JetStream(server_->url()).add_stream("ORDERS", {"orders.>"});
  TestMessage message = row("1");
  message.attributes["aggregate_type"] = "rn::nats:::invoices";
  const Result result = published(message);
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_THAT(result.reason, HasSubstr("no stream takes the subject \"invoices.1:1\""));
}

TEST_F(NatsTest, SaysThatAnAccountHasNoJetStream) {
  START("accounts { plain { users: [ { user: u, password: p } ] } }\n");
  const Result result = published(row("1"), {{"username", "u"}, {"password", "p"}});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_THAT(result.reason, HasSubstr("JetStream is not enabled for this account"));
}

TEST_F(NatsTest, AsksTheDomainThatTheJobNames) {
  START();
  JetStream stream(server_->url());
  stream.add_stream("ORDERS", {"orders.>"});
  EXPECT_EQ(published(row("1"), {{"domain", "hub"}}).status, SLUICE_DONE) << "messages find their stream without it";
  TestMessage message = row("2");
  message.attributes["aggregate_type"] = "rn::nats:::invoices";
  EXPECT_THAT(published(message, {{"domain", "hub"}}).reason, HasSubstr("not enabled in the domain \"hub\""));
}

TEST_F(NatsTest, RejectsWhatTheServerWouldNotTakeBeforeItIsSent) {
  START("max_payload: 1024\n");
  JetStream stream(server_->url());
  stream.add_stream("ORDERS", {"orders.>"});
  LiveHost host("nats", options());
  EXPECT_EQ(host.handle(row("1", "1", std::string(900, 'x'))).status, SLUICE_DONE);
  for (const std::size_t size : {1000U, 1'000'000U}) {
    const Result result = host.handle(row("2", "1", std::string(size, 'x')));
    EXPECT_EQ(result.status, SLUICE_REJECT) << size;
    EXPECT_THAT(result.reason, HasSubstr("the server takes 1024 (max_payload)"));
  }
  EXPECT_EQ(host.handle(row("3", "1", "x")).status, SLUICE_DONE) << "and the connection is as good as before";
  EXPECT_EQ(stream.count("ORDERS"), 2U);
}

TEST_F(NatsTest, RejectsWhatItsStreamWouldNotTake) {
  START();
  JetStream(server_->url()).add_stream("ORDERS", {"orders.>"}, 500);
  const Result result = published(row("1", "1", std::string(600, 'x')));
  EXPECT_EQ(result.status, SLUICE_REJECT);
  EXPECT_THAT(result.reason, HasSubstr("JetStream refused it: message size exceeds maximum allowed (error 10054)"));
}

TEST_F(NatsTest, InsistsOnTheStreamThatTheJobNames) {
  START();
  JetStream stream(server_->url());
  stream.add_stream("ORDERS", {"orders.>"});
  EXPECT_EQ(published(row("1"), {{"stream", "ORDERS"}}).status, SLUICE_DONE);
  const Result result = published(row("2"), {{"stream", "INVOICES"}});
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_THAT(result.reason, HasSubstr("expected stream does not match"));
  EXPECT_EQ(stream.count("ORDERS"), 1U);
}

TEST_F(NatsTest, SaysWhichPermissionIsMissing) {
  START(
      "accounts { a { jetstream: enabled, users: [ { user: u, password: p, permissions: { publish: { deny: "
      "\"orders.secret\" } } } ] } }\n");
  JetStream stream("nats://u:p@127.0.0.1:" + std::to_string(server_->port()));
  stream.add_stream("ORDERS", {"orders.>"});
  LiveHost host("nats", options({{"username", "u"}, {"password", "p"}, {"timeout", "1h"}}));
  const Result result = host.handle(row("1", "secret"));
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_THAT(result.reason, HasSubstr("the user may not publish there"));
  EXPECT_EQ(host.handle(row("2", "open")).status, SLUICE_DONE);
}

TEST_F(NatsTest, ShowsItsUserAndItsToken) {
  START("authorization { user: u, password: \"p w\" }\n");
  const std::string url = "nats://u:p%20w@127.0.0.1:" + std::to_string(server_->port());
  const OptionMap good{{"username", "u"}, {"password", "p w"}};
  EXPECT_THAT(published(row("1"), good).reason, HasSubstr("no stream takes"));
  const OptionMap soon{{"timeout", "100ms"}, {"outage", "retry"}};
  OptionMap bad = soon;
  bad.insert({{"username", "u"}, {"password", "other"}});
  const Result wrong = published(row("1"), bad);
  EXPECT_EQ(wrong.status, SLUICE_RETRY);
  EXPECT_THAT(wrong.reason, HasSubstr("Authorization Violation"));
  EXPECT_EQ(wrong.reason.find("other"), std::string::npos);
  server_.reset();
  START("authorization { token: secret }\n");
  EXPECT_THAT(published(row("1"), {{"token", "secret"}}).reason, HasSubstr("no stream takes"));
  bad = soon;
  bad.insert({"token", "x"});
  EXPECT_THAT(published(row("1"), bad).reason, HasSubstr("Authorization"));
}

TEST_F(NatsTest, WaitsForAServerThatIsNotThere) {
  START();
  { JetStream(server_->url()).add_stream("ORDERS", {"orders.>"}); }
  server_->kill();
  const OptionMap quick{
      {"timeout", "100ms"}, {"outage", "retry"}, {"reconnect_wait", "1ms"}, {"reconnect_jitter", "0s"}};
  LiveHost host("nats", options(quick));
  const Result result = host.handle(row("1"));
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_THAT(result.reason, HasSubstr("no server of NATS is connected"));
  LiveHost patient("nats", options({{"timeout", "100ms"}}));
  for (int i = 0; i < 3; ++i) {
    const Result snoozed = patient.handle(row("1"));
    EXPECT_EQ(snoozed.status, SLUICE_SNOOZE);
    EXPECT_EQ(snoozed.delay, std::chrono::seconds(1));
  }
  const auto lines = patient.log();
  EXPECT_EQ(std::count_if(lines.begin(), lines.end(),
                          [](const std::string& line) { return line.find("messages wait for it") != line.npos; }),
            1);
  Stop stop;
  stop.requested = true;
  EXPECT_EQ(host.handle(row("1"), stop).status, SLUICE_RELEASE);
  server_->restart();
  Result after = host.handle(row("1"));
  while (after.status != SLUICE_DONE) {
    after = host.handle(row("1"));
  }
  EXPECT_EQ(after.status, SLUICE_DONE);
}

// A host sees it without a message, for it asks: from the start, when the server dies, and when it is back.
TEST_F(NatsTest, SaysHowItsServerFares) {
  START();
  { JetStream(server_->url()).add_stream("ORDERS", {"orders.>"}); }
  server_->kill();
  LiveHost host("nats", options({{"reconnect_wait", "20ms"}, {"reconnect_jitter", "0s"}, {"timeout", "300ms"}}));
  EXPECT_THAT(host.wait_for_broker(false), HasSubstr("no server of NATS is connected: "));
  server_->restart();
  EXPECT_EQ(host.wait_for_broker(true), "connected to " + server_->url());
  server_->kill();
  EXPECT_THAT(host.wait_for_broker(false), HasSubstr("trying again for ever"));
  server_->restart();
  EXPECT_EQ(host.wait_for_broker(true), "connected to " + server_->url());
  EXPECT_EQ(host.handle(row("1")).status, SLUICE_DONE);
  server_->freeze();
  EXPECT_EQ(host.handle(row("2")).status, SLUICE_RETRY);
  EXPECT_EQ(host.wait_for_broker(false), "connected to " + server_->url() + ", which acknowledges nothing");
  server_->thaw();
  Result after = host.handle(row("2"));
  while (after.status != SLUICE_DONE) {
    after = host.handle(row("2"));
  }
  EXPECT_EQ(host.wait_for_broker(true), "connected to " + server_->url());
}

TEST_F(NatsTest, SaysThatItsUserIsRefusedAndNotHowItLogsIn) {
  START("authorization { users: [{user: u, password: p}] }\n");
  LiveHost host("nats", options({{"username", "u"}, {"password", "other"}, {"reconnect_wait", "20ms"}}));
  const std::string refused = host.wait_for_broker(false);
  EXPECT_THAT(refused, HasSubstr("Authorization Violation"));
  EXPECT_EQ(refused.find("other"), std::string::npos);
}

TEST_F(NatsTest, ShowsNothingOfAPasswordInTheAddressOfAServer) {
  START("authorization { user: u, password: \"ge/he@im\" }\n");
  const std::string place = "@127.0.0.1:" + std::to_string(server_->port());
  {
    LiveHost host("nats", {{"servers", Names{"nats://u:ge/he@im" + place}}});
    EXPECT_THAT(host.handle(row("1")).reason, HasSubstr("no stream takes"));
    EXPECT_EQ(host.wait_for_broker(true), "connected to " + server_->url());
    EXPECT_TRUE(host.logged("connected to NATS at " + server_->url()));
  }
  for (const std::string user : {"u:heim", "u:4/heim", "u:heim?x", "u:%zzheim", "heim", "u:4@heim", "u:heim:"}) {
    LiveHost host("nats",
                  {{"servers", Names{"nats://" + user + place}}, {"reconnect_wait", "20ms"}, {"timeout", "100ms"}});
    const std::string refused = host.wait_for_broker(false);
    EXPECT_EQ(refused.find("heim"), std::string::npos) << refused;
    EXPECT_FALSE(host.logged("heim")) << user;
  }
  for (const std::string end : {":x", ":99999999", "", ":4222:x"}) {
    const std::string wrong = creation_error("nats", {{"servers", Names{"nats://u:4/heim@127.0.0.1" + end}}});
    EXPECT_EQ(wrong.find("heim"), std::string::npos) << wrong;
  }
}

// The server dies again and again while many publish: every message is stored, and once.
TEST_F(NatsTest, LosesNothingWhileTheServerDies) {
  START();
  { JetStream(server_->url()).add_stream("ORDERS", {"orders.>"}); }
  constexpr int kThreads = 8;
  constexpr int kEach = 100;
  LiveHost host("nats", options({{"reconnect_wait", "5ms"}, {"reconnect_jitter", "5ms"}, {"timeout", "2s"}}));
  std::atomic<int> done{0};
  {
    std::vector<std::jthread> threads;
    threads.reserve(kThreads);
    for (int thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < kEach; ++i) {
          const std::string id = std::to_string(thread * kEach + i);
          while (host.handle(row(id, std::to_string(thread), id)).status != SLUICE_DONE) {
          }
          ++done;
        }
      });
    }
    for (int kills = 0; kills < 3; ++kills) {
      const int before = done;
      while (done < std::min(before + 50, kThreads * kEach)) {
        std::this_thread::yield();
      }
      server_->kill();
      server_->restart();
    }
  }
  JetStream stream(server_->url());
  std::set<std::string> ids;
  std::size_t count = 0;
  std::map<std::string, int> last;
  for (const StoredMessage& message : stream.messages("ORDERS")) {
    ids.insert(message.headers.at("Nats-Msg-Id"));
    ++count;
    const int number = std::stoi(message.body);
    const auto [at, first] = last.try_emplace(message.subject, number);
    EXPECT_TRUE(first || at->second < number) << message.subject << ": " << number << " behind " << at->second;
    at->second = number;
  }
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(kThreads * kEach));
  EXPECT_EQ(count, ids.size());
}

TEST_F(NatsTest, GivesUpAServerThatHangsAndStoresTheMessageOnce) {
  START();
  JetStream stream(server_->url());
  stream.add_stream("ORDERS", {"orders.>"});
  LiveHost host("nats", options({{"timeout", "200ms"}}));
  while (host.handle(row("1")).status != SLUICE_DONE) {
  }
  server_->freeze();
  const Result result = host.handle(row("2"));
  EXPECT_EQ(result.status, SLUICE_RETRY);
  EXPECT_THAT(result.reason, HasSubstr("no acknowledgement within 200 ms"));
  server_->thaw();
  while (host.handle(row("2")).status != SLUICE_DONE) {
  }
  EXPECT_EQ(stream.count("ORDERS"), 2U);
}

TEST_F(NatsTest, RejectsSubjectsThatMeanSomethingElse) {
  START();
  JetStream(server_->url()).add_stream("ALL", {"orders.>"});
  LiveHost host("nats", options());
  const std::map<std::string, std::string> bad = {
      {"a b", "a space"},         {"*", "the wildcard *"},  {"a.>", "the wildcard >"},         {".a", "an empty token"},
      {"a..b", "an empty token"}, {"a.", "an empty token"}, {"a\r\nb", "a control character"},
  };
  for (const auto& [id, why] : bad) {
    const Result result = host.handle(row("1", id));
    EXPECT_EQ(result.status, SLUICE_REJECT) << id;
    EXPECT_THAT(result.reason, HasSubstr(why));
  }
  for (const char* topic : {"rn::nats:::$JS.API.STREAM.DELETE", "rn::nats:::_INBOX.x"}) {
    TestMessage message = row("1", "ALL");
    message.attributes["aggregate_type"] = topic;
    EXPECT_THAT(host.handle(message).reason, HasSubstr("belongs to the server")) << topic;
  }
  EXPECT_EQ(JetStream(server_->url()).count("ALL"), 0U);
}

TEST_F(NatsTest, EncodesThemWhereTheJobSaysSo) {
  START();
  JetStream stream(server_->url());
  stream.add_stream("ALL", {"orders.>"});
  LiveHost host("nats", options({{"bad_subject", "encode"}}));
  for (const char* id : {"a b", "*", "a..b", "50%", "plain.two", "é"}) {
    const Result result = host.handle(row(id, id));
    EXPECT_EQ(result.status, SLUICE_DONE) << id << result.reason;
  }
  Names subjects;
  for (const StoredMessage& message : stream.messages("ALL")) {
    subjects.push_back(message.subject);
  }
  EXPECT_THAT(subjects, ElementsAre("orders.a%20b", "orders.%2A", "orders.a%2E%2Eb", "orders.50%25", "orders.plain.two",
                                    "orders.é"));
}

TEST_F(NatsTest, PutsAsideWhatHasNoRouteAndGoesOn) {
  START();
  JetStream stream(server_->url());
  stream.add_stream("ALL", {"orders.>", "bills.>"});
  const OptionMap others{
      {"routes", Map{{"invoice*", "bills"}}}, {"skip_events", Names{"order.seen"}}, {"unroutable", "reject"}};
  LiveHost host("nats", options(others));
  TestMessage odd = row("1");
  odd.attributes["aggregate_type"] = "order";
  EXPECT_EQ(LiveHost("nats", options()).handle(odd).status, SLUICE_SNOOZE);
  EXPECT_EQ(host.handle(odd).status, SLUICE_REJECT);
  EXPECT_THAT(host.handle(odd).reason, HasSubstr("\"order\" is no ARN or RN, and no rule fits it"));
  TestMessage elsewhere = row("2");
  elsewhere.attributes["aggregate_type"] = "arn:aws:sns:eu-west-1:123456789012:orders";
  EXPECT_THAT(host.handle(elsewhere).reason, HasSubstr("is of the service \"sns\", and this job publishes to nats"));
  TestMessage seen = row("3");
  seen.attributes["event"] = "order.seen";
  EXPECT_EQ(host.handle(seen).status, SLUICE_DISCARD);
  TestMessage invoice = row("4");
  invoice.attributes["aggregate_type"] = "invoice.v2";
  EXPECT_EQ(host.handle(invoice).status, SLUICE_DONE);
  EXPECT_EQ(host.handle(row("5")).status, SLUICE_DONE);
  EXPECT_EQ(stream.messages("ALL").at(0).subject, "bills.1:1");
  EXPECT_EQ(LiveHost("nats", options({{"unroutable", "retry"}})).handle(odd).status, SLUICE_RETRY);
}

TEST_F(NatsTest, LetsNoValueBreakOutOfItsHeader) {
  START();
  JetStream stream(server_->url());
  stream.add_stream("ORDERS", {"orders.>"});
  TestMessage message = row("1\r\nEvil: 1");
  message.attributes["event"] = "a\r\nEvil: 2";
  const Result result = published(message);
  EXPECT_EQ(result.status, SLUICE_DONE) << result.reason;
  const auto stored = stream.messages("ORDERS");
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].headers.at("Event"), "a  Evil: 2");
  EXPECT_EQ(stored[0].headers.at("Nats-Msg-Id"), "shop/outbox:orders/1  Evil: 1");
}

TEST(NatsOptions, AreCheckedBeforeTheJobStarts) {
  const std::vector<std::pair<OptionMap, std::string>> wrong = {
      {{{"servers", Names{}}}, "\"servers\" is empty"},
      {{{"servers", Names{"http://user:secret@a"}}}, "\"nats://127.0.0.1:4222\""},
      {{{"message_id", "uuid"}}, "must be one of \"row\", \"payload\", \"none\"; it is \"uuid\""},
      {{{"timeout", "0s"}}, "\"timeout\" must be from 1ms"},
      {{{"username", "u"}, {"token", "t"}}, "exclude each other"},
      {{{"password", "p"}}, "needs \"username\""},
      {{{"ca_file", "/nowhere.pem"}}, "names \"/nowhere.pem\", which cannot be read"},
      {{{"ca_file", "/dev/null"}}, "\"ca_file\""},
      {{{"ca_file", "/nowhere\x1b[2J.pem"}}, "\"ca_file\" has a control character in it"},
      {{{"key_file", "/nowhere\n.pem"}}, "\"key_file\" has a control character in it"},
      {{{"credentials_file", "/nowhere.creds"}}, "which cannot be read"},
      {{{"certificate_file", "/dev/null"}}, "belong together"},
      {{{"tls_verify", false}}, "no meaning without TLS"},
      {{{"attributes", Names{"a:b"}}}, "cannot be the name of a header"},
      {{{"attributes", Names{"Nats-Msg-Id"}}}, "cannot be the name of a header"},
      {{{"routes", Map{{"a", "arn:aws:sns:eu-west-1:123456789012:b"}}}}, "is of the service \"sns\""},
      {{{"routes", Map{{"", "b"}}}}, "a rule for an empty text"},
  };
  for (const auto& [options, why] : wrong) {
    EXPECT_THAT(creation_error("nats", options), HasSubstr(why));
  }
  EXPECT_EQ(creation_error("nats", {{"servers", Names{"http://user:secret@a"}}}).find("secret"), std::string::npos);
  EXPECT_EQ(creation_error("nats", {}), "") << "nothing is asked of a server before the first message";
}

}  // namespace
}  // namespace sluice::publishers
