#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/random.hpp"
#include "dynamo/client.hpp"
#include "host/stores/dynamodb/table.hpp"
#include "tests/support/dynamodb_model/fixed_credentials.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/fake_transport.hpp"

namespace sluice::queue::dynamodb {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

dynamo::TableDescription right_table() {
  dynamo::TableDescription table;
  table.name = "orders";
  table.status = "ACTIVE";
  table.hash_key = "id";
  table.billing_mode = "PAY_PER_REQUEST";
  table.deletion_protection = true;
  table.attribute_types = {{"id", "S"}, {"queue_type", "S"}, {"sent_at", "S"}};
  dynamo::IndexDescription index;
  index.name = dynamomq::kDefaultIndexName;
  index.hash_key = "queue_type";
  index.range_key = "sent_at";
  index.projection = "ALL";
  index.status = "ACTIVE";
  table.indexes.push_back(index);
  return table;
}

struct Case {
  std::string name;
  std::function<void(dynamo::TableDescription&)> spoil;
  table::FindingLevel level;
  std::string what;
  std::string mend;
};

TEST(TableFindings, ARightTableHasNone) { EXPECT_THAT(examine_table(right_table(), {}), IsEmpty()); }

TEST(TableFindings, EachDifferenceIsOneWithItsMend) {
  using Table = dynamo::TableDescription;
  const std::vector<Case> cases{
      {"hash key", [](Table& t) { t.hash_key = "pk"; }, table::FindingLevel::unfit,
       "the hash key is 'pk' and must be 'id'", "another table"},
      {"range key", [](Table& t) { t.range_key = "sk"; }, table::FindingLevel::unfit,
       "the range key is 'sk' and must be none", "another table"},
      {"id type", [](Table& t) { t.attribute_types["id"] = "N"; }, table::FindingLevel::unfit,
       "the type of id is 'N' and must be 'S'", "another table"},
      {"no index", [](Table& t) { t.indexes.clear(); }, table::FindingLevel::unfit, "there is no index", "add one"},
      {"other index name", [](Table& t) { t.indexes[0].name = "by-type"; }, table::FindingLevel::unfit,
       "there is no index", "index 'by-type' has the right keys: name it as the queue's index"},
      {"index hash", [](Table& t) { t.indexes[0].hash_key = "x"; }, table::FindingLevel::unfit,
       "the index's hash key is 'x'", "delete the index"},
      {"index without range", [](Table& t) { t.indexes[0].range_key = ""; }, table::FindingLevel::unfit,
       "the index's range key is none", "delete the index"},
      {"projection", [](Table& t) { t.indexes[0].projection = "INCLUDE"; }, table::FindingLevel::unfit,
       "the index's projection is 'INCLUDE' and must be 'ALL'", "projection ALL"},
      {"sent_at type", [](Table& t) { t.attribute_types["sent_at"] = "N"; }, table::FindingLevel::unfit,
       "the type of sent_at", "delete the index"},
      {"creating", [](Table& t) { t.status = "CREATING"; }, table::FindingLevel::waiting, "the table is CREATING",
       "wait"},
      {"index creating", [](Table& t) { t.indexes[0].status = "CREATING"; }, table::FindingLevel::waiting,
       "the index is CREATING", "wait"},
      {"backfilling", [](Table& t) { t.indexes[0].backfilling = true; }, table::FindingLevel::waiting,
       "does not show all messages yet", "wait"},
      {"unprotected", [](Table& t) { t.deletion_protection = false; }, table::FindingLevel::advice, "not protected",
       "turn on"},
      {"provisioned", [](Table& t) { t.billing_mode = "PROVISIONED"; }, table::FindingLevel::advice, "provisioned",
       "PAY_PER_REQUEST"}};
  for (const Case& made : cases) {
    SCOPED_TRACE(made.name);
    auto table = right_table();
    made.spoil(table);
    const auto findings = examine_table(table, {});
    ASSERT_FALSE(findings.empty());
    EXPECT_EQ(findings.front().level, made.level);
    EXPECT_THAT(findings.front().what, HasSubstr(made.what));
    EXPECT_THAT(findings.front().mend, HasSubstr(made.mend));
    for (const table::TableFinding& finding : findings) {
      EXPECT_EQ((finding.what + finding.mend).find('\n'), std::string::npos);
    }
  }
}

TEST(TableFindings, AnIndexOfSomebodyElseCostsWrites) {
  auto table = right_table();
  table.indexes.push_back(table.indexes.front());
  table.indexes.back().name = "by-tenant";
  const auto findings = examine_table(table, {});
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].level, table::FindingLevel::advice);
  EXPECT_THAT(findings[0].what, HasSubstr("by-tenant"));
}

TEST(TableFindings, TheIndexThatIsRecommendedIsNotToBeDeleted) {
  TableSpec spec;
  spec.index = "misspelt";
  const auto findings = examine_table(right_table(), spec);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].level, table::FindingLevel::unfit);
  EXPECT_THAT(findings[0].mend, HasSubstr("has the right keys"));
}

TEST(TableFindings, ATableWaitsForItsIndexToo) {
  test::FakeTransport transport([](const dynamo::HttpRequest&) {
    return test::FakeTransport::response(200, R"({"Table":{"TableName":"orders","TableStatus":"ACTIVE",
                          "KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],
                          "AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},
                                                  {"AttributeName":"queue_type","AttributeType":"S"},
                                                  {"AttributeName":"sent_at","AttributeType":"S"}],
                          "GlobalSecondaryIndexes":[{"IndexName":"dynamo-mq-index-queue_type-sent_at",
                                                     "KeySchema":[{"AttributeName":"queue_type","KeyType":"HASH"},
                                                                  {"AttributeName":"sent_at","KeyType":"RANGE"}],
                                                     "Projection":{"ProjectionType":"ALL"},
                                                     "IndexStatus":"CREATING"}]}})");
  });
  test::FakeClock clock;
  SeededRandom random{1};
  test::model::FixedCredentials credentials;
  dynamo::Client client{{{.region = "eu-west-1"}}, transport, credentials, clock, random};
  TableSpec spec;
  spec.table = "orders";
  const auto checked = check_table(client, spec, Deadline::never());
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code(), ErrorCode::unavailable);
  EXPECT_EQ(checked.error().message(), "table 'orders': the index is CREATING; wait until it is ACTIVE");
}

}  // namespace
}  // namespace sluice::queue::dynamodb
