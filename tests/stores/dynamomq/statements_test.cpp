#include "host/stores/dynamomq/statements.hpp"

#include <gmock/gmock.h>

#include "base/timestamp.hpp"
#include "host/stores/dynamomq/nonce.hpp"
#include "tests/support/fake_random.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::AttributeValue;

const WallTime kNow = *parse_timestamp("2026-11-20T23:14:00Z");
const StatementBuilder kBuild("my.table-1");

std::size_t placeholders(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '?'));
}

TEST(Statements, InsertNamesEveryAttribute) {
  const auto insert = kBuild.insert("A", {{"data", "x"}, {"id", "A"}, {"version", AttributeValue::number(1)}});
  EXPECT_EQ(insert.id, "A");
  EXPECT_EQ(insert.statement.text, R"(INSERT INTO "my.table-1" VALUE {'data':?,'id':?,'version':?})");
  EXPECT_EQ(insert.statement.parameters.size(), 3U);
}

TEST(Statements, ClaimIsConditionalOnVersionAndHalf) {
  const auto claim = kBuild.update({"A", VersionMark::number_of(4), Half::standard}, {"nonce", kNow},
                                   claim_change(3, false, kNow, kNow), true);
  EXPECT_EQ(claim.statement.text,
            R"(UPDATE "my.table-1" SET "version"=?,"updated_at"=?,"sluice_nonce"=?,"receive_count"=?,"received_at"=?,)"
            R"("invisible_until_at"=? WHERE "id"=? AND "version"=? AND "half"=? RETURNING ALL NEW *)");
  EXPECT_EQ(claim.statement.parameters.size(), placeholders(claim.statement.text));
  EXPECT_EQ(claim.statement.parameters.front(), AttributeValue::number(5));
  EXPECT_EQ(claim.statement.parameters[7], AttributeValue::number(4));
}

TEST(Statements, AbsentVersionIsAConditionToo) {
  const auto claim = kBuild.update({"A", VersionMark{}, {}}, {"n", kNow}, extend_change(kNow));
  EXPECT_THAT(claim.statement.text, testing::HasSubstr(R"(WHERE "id"=? AND "version" IS MISSING)"));
  EXPECT_EQ(claim.statement.parameters.size(), placeholders(claim.statement.text));
}

TEST(Statements, OddVersionIsComparedAsItStands) {
  const auto mark = VersionMark::of({{"version", "seven"}});
  const auto remove = kBuild.remove({"A", mark, Half::dlq}, true);
  EXPECT_EQ(remove.statement.text,
            R"(DELETE FROM "my.table-1" WHERE "id"=? AND "version"=? AND "half"=? RETURNING ALL OLD *)");
  EXPECT_EQ(remove.statement.parameters[1], AttributeValue("seven"));
  EXPECT_EQ(remove.statement.parameters[2], AttributeValue("DLQ"));
}

TEST(Statements, RemovedAttributesComeBeforeTheCondition) {
  RecordChange change = extend_change(kNow);
  change.removed = "sluice_group";
  const auto edit = kBuild.update({"A", VersionMark::number_of(1), {}}, {"n", kNow}, change);
  EXPECT_THAT(edit.statement.text, testing::HasSubstr(R"(=? REMOVE "sluice_group" WHERE "id"=?)"));
}

TEST(NonceSource, TellsHostsApartAndNeverRepeats) {
  SeededRandom random(1);
  NonceSource a("worker-a", random);
  NonceSource b("worker-b", random);
  EXPECT_NE(a.tag(), b.tag());
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string nonce = a.next();
    EXPECT_EQ(nonce.size(), 16U);
    EXPECT_EQ(NonceSource::tag_of(nonce), a.tag());
    EXPECT_TRUE(seen.insert(nonce).second);
  }
  EXPECT_EQ(NonceSource::tag_of("something else"), "");
  EXPECT_EQ(NonceSource::tag_of(""), "");
  EXPECT_NE(stable_hash("worker-a"), stable_hash("worker-b"));
}

}  // namespace
}  // namespace sluice::queue::dynamomq
