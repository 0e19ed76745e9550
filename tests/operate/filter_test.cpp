#include "host/operate/filter.hpp"

#include <gtest/gtest.h>

#include "base/timestamp.hpp"

namespace sluice::operate {
namespace {

const WallTime kNow = *parse_timestamp("2026-03-01T12:00:00Z");

/// An invoice, sent 20 minutes ago, that failed four times and waits.
queue::StoredMessage invoice() {
  queue::StoredMessage stored;
  stored.message.id = "A-101";
  stored.message.body =
      R"({"type":"invoice","amount":9007199254740993,"net":10.50,"paid":false,"note":null,"tags":["x","y"],)"
      R"("lines":[{"sku":"s-1"},{"sku":"s-2","n":2}],"odd key":1,"due":"2026-04-01T00:00:00+02:00","and":7})";
  stored.message.content_type = queue::kJson;
  stored.message.attributes = {{"tenant", "acme"}, {"trace-id", "9"}};
  stored.message.attempt = 4;
  stored.message.sent_at = kNow - std::chrono::minutes(20);
  stored.version = 12;
  stored.created_at = kNow - std::chrono::hours(2);
  stored.updated_at = kNow - std::chrono::minutes(1);
  stored.received_at = kNow - std::chrono::minutes(2);
  stored.half = queue::Half::dlq;
  stored.failure = {.error = "connect: timeout after 5s",
                    .handler = "bill",
                    .host = "h1",
                    .attempts = 4,
                    .failed_at = kNow - std::chrono::minutes(1)};
  return stored;
}

/// "yes", "no", or the error.
std::string ask(const std::string& text, const queue::StoredMessage& message = invoice()) {
  const auto filter = Filter::parse(text);
  if (filter.has_error()) {
    return std::to_string(filter.error().column) + ": " + filter.error().message;
  }
  return filter->matches(message, kNow) ? "yes" : "no";
}

TEST(Filter, WhatMatches) {
  for (const char* const text : {
           R"(receive_count > 3 and data.type = "invoice")",
           "id = 'A-101'",
           "receive_count = 4.0",
           "receive_count >= 4",
           "4 <= receive_count",
           "version != 11",
           "data.amount = 9007199254740993",
           "data.amount > 9007199254740992",
           "data.amount < 9007199254740994",
           "data.net = 10.5",
           "data.net = 1.05e1",
           "-1 < data.net",
           "data.paid = false",
           "data.note = null",
           "data.paid != true",
           R"(data["odd key"] = 1)",
           "data.and = 7",
           "data.lines[1].n = 2",
           R"(data.lines[0].sku in ("s-0", "s-1"))",
           R"(data.type not in ("order", "refund"))",
           "queue_type = \"DLQ\"",
           "state = 'ready'",
           "age > 10m",
           "age < 3h",
           "age = 2h",
           "7200s = age",
           "sent_at < 2026-03-01T11:50:00Z",
           "sent_at = '2026-03-01T11:40:00.000Z'",
           "sent_at > 2026-03-01",
           "created_at < sent_at",
           "data.due < 2026-04-01",
           "data.due > 2026-03-31T21:59:59Z",
           "exists(received_at)",
           "not exists(invisible_until_at)",
           "exists(data.lines[1].n)",
           "exists(data.note)",
           "not exists(data.lines[2])",
           "exists(failure)",
           "exists(attributes)",
           "exists(attributes.tenant)",
           "attributes.tenant = 'acme'",
           "attributes.trace-id = '9'",
           R"(attributes["trace-id"] = "9")",
           "error like '*timeout*'",
           "error ~ 'connect*5s'",
           "failure.error like '*'",
           "failure.attempts >= 4",
           "failure.handler = 'bill'",
           "failure.failed_at > 2026-03-01",
           "error not like '*refused*'",
           "not error like 'timeout'",
           "data.type like 'in*ce'",
           "content_type = 'application/json'",
           "(id = 'x' or id = 'A-101') and not (state = 'delayed')",
           "id='A-101'&&!(version=1||version=2)",
           "id = 'x' or id = 'y' or id = 'A-101'",
           "NOT id = 'x' AND TRUE = true",
           "null = null",
           "data.type = 'invoice' or data.type = 'x' and id = 'y'",
           "not not id = 'A-101'",
           "id <> 'B'",
           "id == 'A-101'",
           "data.tags[1] = 'y'",
           "data.lines[0].sku < data.lines[1].sku",
           "10 > 9",
           "'10' < '9'",
           "5m = 300s",
           "'a*' like 'a\\*'",
       }) {
    EXPECT_EQ(ask(text), "yes") << text;
  }
}

TEST(Filter, WhatDoesNot) {
  for (const char* const text : {
           "receive_count > 4",
           "receive_count > 3 and data.type = 'x'",
           "data.amount = 9007199254740992",
           "data.paid = 'false'",
           "data.net = '10.50'",
           "data.type = 1",
           "data.note = 'null'",
           "data.note = false",
           "id = 'a-101'",
           "id like 'A'",
           "id like 'a*'",
           "age > 2h",
           "state = 'in_flight'",
           // What is not there compares with nothing.
           "data.none = 1",
           "data.none != 1",
           "data.none < 1",
           "data.none >= 1",
           "data.none = null",
           "data.none in (1)",
           "data.none like '*'",
           "group = 'g'",
           "group != 'g'",
           "attributes.none != 'x'",
           "exists(data.lines[2].sku)",
           "exists(group)",
           "invisible_until_at < 2030-01-01",
           "data.type.x = 1",
           "data[0] = 1",
           // What is of different kinds, or has parts, is neither less nor equal nor more.
           "data.tags = 'x'",
           "data.lines >= 0",
           "data.type < 5",
           "data.type >= 5",
           "data.paid < true",
           "data.paid >= true",
           "data.due < 'x' and data.due > 'x'",
           "data.amount like '9*'",
           "not (id = 'A-101')",
           "'ab' like 'a\\*'",
           "'x' in ('y')",
       }) {
    EXPECT_EQ(ask(text), "no") << text;
  }
  EXPECT_EQ(ask("data.tags != 'x'"), "yes") << "there, and something else";
}

// `ls --dlq` showed RECEIVES 4, and `receive_count >= 1` found nothing: the record begins anew in the dead-letter half.
TEST(Filter, ADeadLetterWasReceivedAsOftenAsItIsShown) {
  queue::StoredMessage dead = invoice();
  dead.message.attempt = 0;
  EXPECT_EQ(ask("receive_count = 4", dead), "yes");
  dead.half = queue::Half::standard;
  EXPECT_EQ(ask("receive_count = 0", dead), "yes") << "redriven, it begins anew";
}

TEST(Filter, ATextBodyIsOneText) {
  queue::StoredMessage message = invoice();
  message.message.content_type = queue::kTextPlain;
  message.message.body = R"({"type":"invoice"})";
  EXPECT_EQ(ask("data.type = 'invoice'", message), "no");
  EXPECT_EQ(ask("data like '*invoice*'", message), "yes");
  EXPECT_EQ(ask("exists(data)", message), "yes");
  message.message.content_type = queue::kJson;
  message.message.body = "{broken";
  EXPECT_EQ(ask("data = '{broken'", message), "yes");
}

TEST(Filter, StatesFollowTheClock) {
  queue::StoredMessage message = invoice();
  message.invisible_until = kNow;
  EXPECT_EQ(ask("state = 'in_flight'", message), "yes");
  message.invisible_until = kNow - Duration(1);
  EXPECT_EQ(ask("state = 'ready'", message), "yes");
  message.message.sent_at = kNow + Duration(1);
  EXPECT_EQ(ask("state = 'delayed' and age = 2h", message), "yes");
}

TEST(Filter, LikeTakesAnyTextForAStar) {
  struct Case {
    const char* text;
    const char* pattern;
    bool matches;
  };
  for (const Case& one : {Case{"", "", true}, Case{"", "*", true}, Case{"a", "", false}, Case{"abc", "a*c", true},
                          Case{"abc", "*b*", true}, Case{"aab", "*ab", true}, Case{"ababc", "a*abc", true},
                          Case{"abcd", "a*c", false}, Case{"abc", "***", true}, Case{"mississippi", "m*iss*ip*", true},
                          Case{"mississippi", "m*iss*x*", false}, Case{"übung", "ü*g", true}, Case{"ab", "ab*b", false},
                          Case{"ab", "a*b*b", false}, Case{"abb", "a*b*b", true}}) {
    EXPECT_EQ(ask("'" + std::string(one.text) + "' like '" + one.pattern + "'"), one.matches ? "yes" : "no")
        << one.text << " like " << one.pattern;
  }
}

// An outbox without a column for it does not know when a message was created or has failed.
TEST(Filter, ATimeThatNobodyKnowsIsBeforeNoOther) {
  queue::StoredMessage message = invoice();
  message.created_at = message.updated_at = message.failure.failed_at = {};
  for (const std::string field : {"created_at", "updated_at", "failure.failed_at"}) {
    EXPECT_EQ(ask(field + " < 2026-03-02"), "yes") << field;
    EXPECT_EQ(ask(field + " < 2026-03-02", message), "no") << field;
    EXPECT_EQ(ask("exists(" + field + ")", message), "no") << field;
  }
}

TEST(Filter, AHostilePatternDoesNotTakeForever) {
  queue::StoredMessage message = invoice();
  message.failure.error = std::string(2000, 'a');
  std::string pattern;
  for (int stars = 0; stars < 500; ++stars) {
    pattern += "*a";
  }
  EXPECT_EQ(ask("error like '" + pattern + "*b'", message), "no");
}

TEST(Filter, ShortFormsCombineWithAnd) {
  const Filter everything;
  EXPECT_TRUE(everything.empty());
  EXPECT_TRUE(everything.matches(invoice(), kNow));
  EXPECT_TRUE(everything.also(everything).empty());
  const Filter old = Filter::older_than(std::chrono::minutes(10));
  const Filter refused = Filter::error_like("refused");
  EXPECT_TRUE(everything.also(old).matches(invoice(), kNow));
  EXPECT_TRUE(old.also(Filter::error_like("timeout*5s")).matches(invoice(), kNow));
  EXPECT_FALSE(old.also(refused).matches(invoice(), kNow));
  EXPECT_FALSE(Filter::older_than(std::chrono::hours(3)).matches(invoice(), kNow));
}

TEST(Filter, KnowsWhetherItReadsContent) {
  const auto reads = [](const char* text) { return Filter::parse(text)->reads_content(); };
  EXPECT_FALSE(Filter().reads_content());
  EXPECT_FALSE(reads("id = 'x' and error like '*' and age > 1m and exists(received_at)"));
  for (const char* const text : {"data = 1", "id = 'x' or not (1 = data.x)", "exists(attributes.x)", "group = 'g'",
                                 "content_type in ('x')", "'x' in (attributes.y)"}) {
    EXPECT_TRUE(reads(text)) << text;
  }
}

}  // namespace
}  // namespace sluice::operate
