// Requests that go wrong, seen through the real client.

#include <gtest/gtest.h>

#include "dynamo/client.hpp"
#include "tests/dynamodb_model/model_rig.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/dynamodb_model/transport.hpp"

namespace sluice::test::model {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class ModelFaults : public testing::Test {
 protected:
  ModelFaults() {
    dynamo::ClientOptions options;
    options.region = "us-east-1";
    options.max_attempts = 1;
    client = std::make_unique<dynamo::Client>(options, transport, credentials, rig.clock, random);
  }
  dynamo::Result<dynamo::ItemOutput> put(const std::string& id) {
    dynamo::ItemWrite request;
    request.table = "jobs";
    request.item = {{"id", id}};
    return client->write(request, Deadline::after(rig.clock, seconds(5)));
  }
  std::size_t stored() { return rig.model.items("jobs").size(); }

  ModelRig rig;
  ModelTransport transport{rig.model, rig.clock, [this](Duration span) { rig.clock.advance(span); }};
  FixedCredentials credentials;
  SeededRandom random{1};
  std::unique_ptr<dynamo::Client> client;
};

TEST_F(ModelFaults, TheClientWorksOnAModelWithoutThem) {
  EXPECT_TRUE(put("a"));
  EXPECT_EQ(stored(), 1u);
}

struct Case {
  Fault fault;
  bool takes_effect;
  bool outcome_unknown;
};

TEST_F(ModelFaults, EachDoesWhatItsNameSays) {
  for (const Case& known : {Case{Fault::refuse, false, false}, Case{Fault::lose, false, true},
                            Case{Fault::error_500, false, true}, Case{Fault::commit_then_500, true, true},
                            Case{Fault::commit_then_lose, true, true}, Case{Fault::commit_then_cut, true, true},
                            Case{Fault::bad_crc, true, true}, Case{Fault::throttle, false, false}}) {
    SCOPED_TRACE(to_string(known.fault));
    const std::size_t before = stored();
    rig.model.inject(known.fault);
    const auto answer = put(std::string(to_string(known.fault)));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().outcome_unknown, known.outcome_unknown);
    EXPECT_EQ(stored() - before, known.takes_effect ? 1u : 0u);
  }
}

TEST_F(ModelFaults, ALateRequestTakesEffectAfterItsCallerGaveUp) {
  rig.model.inject(Fault::late);
  const auto answer = put("a");
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().outcome_unknown);
  EXPECT_EQ(stored(), 0u);
  EXPECT_EQ(rig.model.under_way(), 1u);
  rig.clock.advance(seconds(5));
  EXPECT_EQ(stored(), 1u);
}

TEST_F(ModelFaults, AMatcherMeansSomeRequestsOnly) {
  rig.model.inject(Fault::error_500, [](const std::string& operation, const std::string& body) {
    return operation == "PutItem" && body.find("\"b\"") != std::string::npos;
  });
  EXPECT_TRUE(put("a"));
  EXPECT_FALSE(put("b"));
  EXPECT_TRUE(put("b"));
}

TEST_F(ModelFaults, RequestsTakeTheirTime) {
  ModelSettings settings;
  settings.faults.shortest = settings.faults.longest = milliseconds(7);
  rig.model.configure(settings);
  const SteadyTime before = rig.clock.steady_now();
  EXPECT_TRUE(put("a"));
  EXPECT_EQ(rig.clock.steady_now() - before, milliseconds(7));
}

TEST_F(ModelFaults, AnAnswerAfterTheDeadlineIsATimeout) {
  ModelSettings settings;
  settings.faults.shortest = settings.faults.longest = seconds(7);
  rig.model.configure(settings);
  const auto answer = put("a");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().kind, dynamo::ErrorKind::timeout);
  EXPECT_TRUE(answer.error().outcome_unknown);
  EXPECT_EQ(stored(), 1u);
}

// The client learns the service's time from the refusal's Date, and signs again.
TEST_F(ModelFaults, AWrongWallClockIsRefusedAndMended) {
  FakeClock wrong(rig.clock.wall_now() + std::chrono::hours(1));
  dynamo::ClientOptions options;
  options.region = "us-east-1";
  dynamo::Client other(options, transport, credentials, wrong, random);
  dynamo::ItemWrite request;
  request.table = "jobs";
  request.item = {{"id", "a"}};
  EXPECT_TRUE(other.write(request, Deadline::after(wrong, seconds(5))));
  EXPECT_EQ(rig.model.counters().errors["InvalidSignatureException"], 1u);
}

TEST_F(ModelFaults, ChanceRepeatsItself) {
  const auto run = [](std::uint64_t seed) {
    FakeClock clock;
    ModelSettings settings;
    settings.faults.error_500 = 0.3;
    settings.faults.lose = 0.3;
    Model model(clock, seed, settings);
    std::string out;
    for (int i = 0; i < 50; ++i) {
      const ModelAnswer answer = model.handle(request_of("DescribeTable", R"({"TableName":"none"})"));
      out += std::to_string(answer.response.status) + " ";
    }
    return out;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
}

TEST_F(ModelFaults, NothingGoesWrongForWhoIsSpared) {
  ModelSettings settings;
  settings.faults.error_500 = 1;
  settings.faults.part_throttle = 1;
  settings.limits.partition_write = 1;
  rig.model.configure(settings);
  EXPECT_FALSE(put("a"));
  rig.model.spare("AKIDEXAMPLE");
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(put("a"));
  }
}

TEST_F(ModelFaults, AnObserverSeesWhatReallyHappened) {
  std::string seen;
  rig.model.observe([&](const std::string& access_key, const std::string& table, const Item* before,
                        const Item* after) {
    seen += access_key + " " + table + (before != nullptr ? " before" : "") + (after != nullptr ? " after" : "") + "; ";
  });
  rig.model.inject(Fault::commit_then_lose);
  put("a");
  rig.ask("DeleteItem", R"({"TableName":"jobs","Key":{"id":{"S":"a"}}})");
  rig.ask("DeleteItem", R"({"TableName":"jobs","Key":{"id":{"S":"a"}}})");
  EXPECT_EQ(seen, "AKIDEXAMPLE jobs after; AKIDEXAMPLE jobs before; AKIDEXAMPLE jobs; ");
}

TEST_F(ModelFaults, KeysOfABatchAreLeftForLater) {
  put("a");
  put("b");
  rig.model.inject_part(PartFault::throttle);
  const Reply reply =
      rig.ask("BatchGetItem",
              R"({"RequestItems":{"jobs":{"ConsistentRead":true,"Keys":[{"id":{"S":"a"}},{"id":{"S":"b"}}]}}})");
  EXPECT_EQ(reply.body.at("Responses").at("jobs").as_array().size(), 1u);
  EXPECT_EQ(reply.body.at("UnprocessedKeys").at("jobs").at("Keys").as_array().size(), 1u);
  EXPECT_EQ(reply.body.at("UnprocessedKeys").at("jobs").at("ConsistentRead").as_bool(), true);
}

}  // namespace
}  // namespace sluice::test::model
