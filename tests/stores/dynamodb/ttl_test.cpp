// DynamoDB's own removal of void marks and keys: looked at, switched on, and what is said where neither can be.

#include "host/stores/dynamodb/table.hpp"
#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using namespace queue::dynamodb;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TableTtl : public StoreOnEmulator {
 protected:
  TableSpec spec() const {
    TableSpec made;
    made.table = table();
    return made;
  }
  /// All that is said, as one line.
  static std::string text_of(const std::optional<queue::table::TableFinding>& finding) {
    EXPECT_TRUE(!finding || finding->level == queue::table::FindingLevel::advice) << "a queue works without it";
    return finding ? finding->what + "; " + finding->mend : "";
  }
  std::string examined() { return text_of(examine_ttl(host().client(), spec(), soon())); }
  std::string switched_on() { return text_of(switch_ttl_on(host().client(), spec(), soon())); }
  void break_operation(HttpFault fault, const std::string& operation) {
    host().faults().choose([fault, operation](const std::string& asked, const std::string&) {
      return asked == operation ? fault : HttpFault::none;
    });
  }
};

TEST_F(TableTtl, IsSwitchedOnByTheAttributeThatMarksAndKeysHave) {
  EXPECT_THAT(examined(), AllOf(HasSubstr("TTL is off"), HasSubstr("by the attribute sluice_key_expires")));
  EXPECT_EQ(switched_on(), "");
  EXPECT_EQ(examined(), "");
  EXPECT_EQ(switched_on(), "") << "where it is on nothing is asked for";
  EXPECT_EQ(host().usage().requests("UpdateTimeToLive"), 1U);
}

TEST_F(TableTtl, AnotherAttributeIsLeftToWhoeverChoseIt) {
  ASSERT_TRUE(host().client().enable_time_to_live(table(), "expires_at", soon()));
  EXPECT_THAT(examined(), HasSubstr("goes by the attribute 'expires_at'"));
  EXPECT_THAT(switched_on(), HasSubstr("a table has one attribute for it"));
  EXPECT_EQ(host().usage().requests("UpdateTimeToLive"), 1U);
}

TEST_F(TableTtl, ALostAnswerDoesNotMatter) {
  break_operation(HttpFault::commit_then_reset, "UpdateTimeToLive");
  EXPECT_EQ(switched_on(), "");
  EXPECT_EQ(examined(), "");
}

TEST_F(TableTtl, ARoleThatMayNotIsToldWhatItNeeds) {
  break_operation(HttpFault::deny, "UpdateTimeToLive");
  EXPECT_THAT(switched_on(),
              AllOf(HasSubstr("could not be switched on"), HasSubstr("allow dynamodb:UpdateTimeToLive")));
  break_operation(HttpFault::deny, "DescribeTimeToLive");
  EXPECT_THAT(examined(), AllOf(HasSubstr("could not be looked at"), HasSubstr("allow dynamodb:DescribeTimeToLive")));
  EXPECT_EQ(switched_on(), "") << "who may not look may switch it on all the same";
}

TEST_F(TableTtl, AnEndpointThatKnowsNoTtlIsNoFailure) {
  host().faults().choose([](const std::string& asked, const std::string&) {
    return asked.ends_with("TimeToLive") ? HttpFault::unknown_operation : HttpFault::none;
  });
  EXPECT_THAT(examined(), HasSubstr("this endpoint knows no TTL"));
  EXPECT_THAT(switched_on(), HasSubstr("nothing goes wrong by that"));
}

}  // namespace
}  // namespace sluice::test
