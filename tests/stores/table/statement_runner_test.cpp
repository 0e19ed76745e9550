// The runner against scripted answers.

#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "host/stores/dynamomq/record_writes.hpp"
#include "host/stores/table/statements.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_transport.hpp"

namespace sluice::queue::table {
namespace {

using namespace std::chrono_literals;
using dynamo::HttpRequest;
using dynamo::HttpResult;
using test::FakeTransport;

class Running : public ::testing::Test {
 protected:
  using Answer = std::function<std::string(const std::string& id)>;  // one statement's result as JSON

  // Answers every statement by `answer`, which is given the statement's only parameter.
  void answer_each(const Answer& answer) {
    respond_ = [answer](const boost::json::array& statements) -> HttpResult {
      std::string body = R"({"Responses":[)";
      for (std::size_t i = 0; i < statements.size(); ++i) {
        body += (i == 0 ? "" : ",") + answer(id_of(statements[i]));
      }
      return FakeTransport::response(200, body + "]}");
    };
  }
  static std::string id_of(const boost::json::value& statement) {
    return std::string(statement.at("Parameters").at(0).at("S").as_string());
  }
  static std::string failure(const std::string& code) {
    return R"({"Error":{"Code":")" + code + R"(","Message":"x"}})";
  }

  static std::vector<RecordWrite> removals(const std::vector<std::string>& ids) {
    std::vector<RecordWrite> all;
    all.reserve(ids.size());
    for (const auto& id : ids) {
      all.push_back(removal_of(dynamomq::kNames, "t", {id, {}}));
      all.back().whatever_it_is = true;
    }
    return all;
  }
  static std::vector<std::string> numbered(std::size_t count) {
    std::vector<std::string> ids;
    for (std::size_t i = 0; i < count; ++i) {
      ids.push_back("m" + std::to_string(i));
    }
    return ids;
  }

  std::vector<StatementOutcome> run(const std::vector<std::string>& ids,
                                    Repetition repetition = Repetition::until_known,
                                    Deadline deadline = Deadline::never()) {
    return runner_.run(removals(ids), repetition, deadline);
  }

  std::function<HttpResult(const boost::json::array&)> respond_;
  std::vector<std::size_t> batches_;
  std::size_t largest_ = 0;
  test::FakeClock clock_;
  SeededRandom random_{1};
  test::AnyCredentials credentials_;
  FakeTransport transport_{[this](const HttpRequest& request) {
    const auto body = boost::json::parse(request.body);
    const auto& sent = body.at("Statements").as_array();
    batches_.push_back(sent.size());
    largest_ = std::max(largest_, request.body.size());
    return respond_(sent);
  }};
  dynamo::Client client_{
      {{.region = "eu-west-1", .endpoint = "http://127.0.0.1:1"}}, transport_, credentials_, clock_, random_};
  StatementRunner runner_{client_, clock_, random_};
};

TEST_F(Running, CutsIntoBatchesOf25) {
  answer_each([](const std::string&) { return "{}"; });
  const auto outcomes = run(numbered(260));
  EXPECT_EQ(outcomes.size(), 260U);
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.fate, StatementFate::done);
    EXPECT_FALSE(outcome.repeated);
  }
  EXPECT_EQ(batches_.size(), 11U);
  EXPECT_EQ(batches_.back(), 10U);
  EXPECT_TRUE(run({}).empty());
}

TEST_F(Running, WhatIsNotTriedAgainForWantOfTimeSaysWhyItWasRefused) {
  for (const char* why : {"ValidationException", "AccessDeniedException"}) {
    respond_ = [&](const boost::json::array&) {
      clock_.advance(std::chrono::seconds(2));
      return FakeTransport::response(400, R"({"__type":"x#)" + std::string(why) + R"(","message":"not like that"})");
    };
    for (const auto& outcome :
         run(numbered(2), Repetition::until_known, Deadline::after(clock_, std::chrono::seconds(1)))) {
      EXPECT_EQ(outcome.fate, StatementFate::failed);
      EXPECT_THAT(outcome.error.message, ::testing::HasSubstr("not like that")) << why;
    }
  }
}

TEST_F(Running, CutsLargeStatementsIntoRequestsThatDynamoDbTakes) {
  constexpr std::size_t kMostOfARequest = 16'000'000;
  answer_each([](const std::string&) { return "{}"; });
  std::vector<RecordWrite> large;
  for (const auto& id : numbered(30)) {
    large.push_back({.kind = RecordWrite::Kind::insert,
                     .table = "t",
                     .expected = {id, {}},
                     .item = {{"data", std::string(390'000, '\x01')}},  // six bytes each in JSON
                     .names = &dynamomq::kNames});
  }
  for (const auto& outcome : runner_.run(std::move(large), Repetition::until_known, Deadline::never())) {
    EXPECT_EQ(outcome.fate, StatementFate::done);
  }
  EXPECT_EQ(batches_.size(), 5U);
  EXPECT_LE(largest_, kMostOfARequest);
}

TEST_F(Running, NeverNamesARecordTwiceInOneBatch) {
  std::vector<std::string> order;
  respond_ = [&](const boost::json::array& sent) -> HttpResult {
    std::set<std::string> ids;
    std::string body = R"({"Responses":[)";
    for (const auto& statement : sent) {
      EXPECT_TRUE(ids.insert(id_of(statement)).second);
      body += (ids.size() == 1 ? "" : ",") + std::string("{}");
    }
    return FakeTransport::response(200, body + "]}");
  };
  EXPECT_EQ(run({"a", "b", "a", "a", "c"}).size(), 5U);
  EXPECT_THAT(batches_, testing::ElementsAre(3U, 1U, 1U));
}

TEST_F(Running, RepeatsThrottledStatementsAndNoOthers) {
  std::map<std::string, int> tries;
  answer_each([&](const std::string& id) {
    ++tries[id];
    if (id == "refused") {
      return failure("ConditionalCheckFailed");
    }
    return id == "slow" && tries[id] < 4 ? failure("ThrottlingError") : std::string("{}");
  });
  const auto outcomes = run({"slow", "refused", "quick"});
  EXPECT_EQ(outcomes[0].fate, StatementFate::done);
  EXPECT_FALSE(outcomes[0].repeated) << "a throttle has no effect";
  EXPECT_EQ(outcomes[1].fate, StatementFate::refused);
  EXPECT_EQ(tries["slow"], 4);
  EXPECT_EQ(tries["refused"], 1);
  EXPECT_EQ(tries["quick"], 1);
}

TEST_F(Running, GivesUpThrottledOnesAtTheLimit) {
  int tries = 0;
  answer_each([&](const std::string&) {
    ++tries;
    return failure("ProvisionedThroughputExceeded");
  });
  const auto outcomes = run({"a"});
  EXPECT_EQ(outcomes[0].fate, StatementFate::failed);
  EXPECT_EQ(outcomes[0].error.kind, dynamo::ErrorKind::throttled);
  EXPECT_EQ(tries, StatementRunner::kMaxTries);
  tries = 0;
  EXPECT_EQ(run({"a"}, Repetition::none)[0].fate, StatementFate::failed);
  EXPECT_EQ(tries, 1);
}

TEST_F(Running, RepeatsAnUnknownOutcomeAndSaysSo) {
  int requests = 0;
  respond_ = [&](const boost::json::array& sent) -> HttpResult {
    if (++requests == 1) {
      return FakeTransport::response(500, "{}");
    }
    EXPECT_EQ(sent.size(), 1U);
    return FakeTransport::response(200, R"({"Responses":[)" + failure("ConditionalCheckFailed") + "]}");
  };
  const auto outcome = run({"a"})[0];
  EXPECT_EQ(outcome.fate, StatementFate::refused);
  EXPECT_TRUE(outcome.repeated);
}

TEST_F(Running, WithoutRepetitionAnUnknownOutcomeStaysUnknown) {
  respond_ = [](const boost::json::array&) -> HttpResult { return FakeTransport::response(500, "{}"); };
  const auto outcome = run({"a"}, Repetition::none)[0];
  EXPECT_EQ(outcome.fate, StatementFate::unknown);
  EXPECT_EQ(batches_.size(), 1U);
}

TEST_F(Running, AfterAnUnknownOutcomeNoLaterFailureMakesItKnown) {
  int requests = 0;
  respond_ = [&](const boost::json::array&) -> HttpResult {
    if (++requests == 1) {
      return FakeTransport::response(500, "{}");
    }
    return dynamo::Error(dynamo::ErrorKind::transport, "refused");
  };
  EXPECT_EQ(run({"a"})[0].fate, StatementFate::unknown);
}

TEST_F(Running, BatchThatIsRejectedForOneStatementIsSentOneByOne) {
  respond_ = [&](const boost::json::array& sent) -> HttpResult {
    for (const auto& statement : sent) {
      if (id_of(statement) == "bad") {
        return FakeTransport::response(400, R"({"__type":"x#ValidationException","message":"number overflow"})");
      }
    }
    std::string body = R"({"Responses":[{})";
    for (std::size_t i = 1; i < sent.size(); ++i) {
      body += ",{}";
    }
    return FakeTransport::response(200, body + "]}");
  };
  for (const Repetition repetition : {Repetition::none, Repetition::until_known}) {
    const auto outcomes = run({"a", "bad", "b"}, repetition);
    EXPECT_EQ(outcomes[0].fate, StatementFate::done);
    EXPECT_EQ(outcomes[1].fate, StatementFate::failed);
    EXPECT_EQ(outcomes[1].error.kind, dynamo::ErrorKind::validation);
    EXPECT_EQ(outcomes[2].fate, StatementFate::done);
  }
}

TEST_F(Running, AfterTheDeadlineNothingIsSent) {
  answer_each([](const std::string&) { return "{}"; });
  const auto outcomes = run(numbered(30), Repetition::until_known, Deadline::at(clock_.steady_now()));
  EXPECT_TRUE(batches_.empty());
  for (const auto& outcome : outcomes) {
    EXPECT_EQ(outcome.fate, StatementFate::failed);
    EXPECT_EQ(outcome.error.kind, dynamo::ErrorKind::timeout);
  }
}

}  // namespace
}  // namespace sluice::queue::table
