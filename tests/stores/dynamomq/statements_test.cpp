#include "host/stores/table/statements.hpp"

#include <gmock/gmock.h>

#include "base/timestamp.hpp"
#include "host/stores/dynamomq/record.hpp"
#include "host/stores/dynamomq/record_writes.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/nonce.hpp"
#include "tests/support/fake_random.hpp"

namespace sluice::queue::dynamomq {
namespace {

using dynamo::AttributeValue;

const WallTime kWritten = *parse_timestamp("2026-11-20T23:14:00Z");
constexpr std::string_view kTable = "my.table-1";

table::RecordWrite insert_of(dynamo::Item item) {
  return {.kind = table::RecordWrite::Kind::insert,
          .table = kTable,
          .expected = {"A", {}},
          .item = std::move(item),
          .names = &kNames};
}

std::size_t placeholders(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '?'));
}

table::RecordChange claimed_thrice() {
  return attributes_of(kNames, core::claim({.receives = 2}, {.now = kWritten, .until = kWritten}));
}

TEST(Statements, InsertNamesEveryAttribute) {
  const auto write = insert_of({{"data", "x"}, {"id", "A"}, {"version", AttributeValue::number(1)}});
  EXPECT_EQ(write.id(), "A");
  const auto insert = table::statement_of(write);
  EXPECT_EQ(insert.text, R"(INSERT INTO "my.table-1" VALUE {'data':?,'id':?,'version':?})");
  EXPECT_EQ(insert.parameters.size(), 3U);
}

TEST(Statements, ClaimIsConditionalOnVersionAndHalf) {
  const auto claim =
      table::statement_of(update_of(kNames, kTable, {"A", table::VersionMark::number_of(4), Half::standard},
                                    {"nonce", kWritten}, claimed_thrice(), true));
  EXPECT_EQ(claim.text,
            R"(UPDATE "my.table-1" SET "version"=?,"updated_at"=?,"sluice_nonce"=?,"receive_count"=?,"received_at"=?,)"
            R"("invisible_until_at"=? WHERE "id"=? AND "version"=? AND "queue_type"=? RETURNING ALL NEW *)");
  EXPECT_EQ(claim.parameters.size(), placeholders(claim.text));
  EXPECT_EQ(claim.parameters.front(), AttributeValue::number(5));
  EXPECT_EQ(claim.parameters[7], AttributeValue::number(4));
}

TEST(Statements, AbsentVersionIsAConditionToo) {
  const auto claim = table::statement_of(update_of(kNames, kTable, {"A", table::VersionMark{}, {}}, {"n", kWritten},
                                                   attributes_of(kNames, core::extension(kWritten))));
  EXPECT_THAT(claim.text, testing::HasSubstr(R"(WHERE "id"=? AND "version" IS MISSING)"));
  EXPECT_EQ(claim.parameters.size(), placeholders(claim.text));
}

TEST(Statements, OddVersionIsComparedAsItStands) {
  const auto mark = version_of({{"version", "seven"}});
  const auto remove = table::statement_of(removal_of(kNames, kTable, {"A", mark, Half::dlq}));
  EXPECT_EQ(remove.text,
            R"(DELETE FROM "my.table-1" WHERE "id"=? AND "version"=? AND "queue_type"=? RETURNING ALL OLD *)");
  EXPECT_EQ(remove.parameters[1], AttributeValue("seven"));
  EXPECT_EQ(remove.parameters[2], AttributeValue("DLQ"));
}

TEST(Statements, RemovedAttributesComeBeforeTheCondition) {
  table::RecordChange change = attributes_of(kNames, core::extension(kWritten));
  change.removed = {"sluice_group"};
  const auto edit = table::statement_of(
      update_of(kNames, kTable, {"A", table::VersionMark::number_of(1), {}}, {"n", kWritten}, change));
  EXPECT_THAT(edit.text, testing::HasSubstr(R"(=? REMOVE "sluice_group" WHERE "id"=?)"));
}

/// What it says once its placeholders are filled in.
std::string spelt(std::string text, const std::map<std::string, std::string>& names) {
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    for (auto at = text.find(name->first); at != std::string::npos; at = text.find(name->first)) {
      text.replace(at, name->first.size(), name->second);
    }
  }
  return text;
}

TEST(SingleWrites, InsertWantsAFreeId) {
  const auto put = request_of(insert_of({{"id", "A"}}));
  EXPECT_EQ(put.table, "my.table-1");
  EXPECT_EQ(spelt(put.condition, put.names), "attribute_not_exists(id)");
}

TEST(SingleWrites, AreConditionalOnWhatTheirStatementsAre) {
  table::Expected expected{"A", table::VersionMark::number_of(4), Half::standard};
  expected.sent_at = "2026";
  expected.visible_at = kWritten;
  table::RecordChange change = claimed_thrice();
  change.removed = {"sluice_group"};
  const auto update = request_of(update_of(kNames, kTable, expected, {"nonce", kWritten}, change, true));
  EXPECT_EQ(spelt(update.condition, update.names),
            "version = :0 AND queue_type = :1 AND sent_at = :2 AND invisible_until_at < :3");
  EXPECT_EQ(spelt(update.update, update.names),
            "SET version = :4, updated_at = :5, sluice_nonce = :6, receive_count = :7, received_at = :8, "
            "invisible_until_at = :9 REMOVE sluice_group");
  EXPECT_EQ(update.values.at(":0"), AttributeValue::number(4));
  EXPECT_EQ(update.values.at(":4"), AttributeValue::number(5));
  EXPECT_TRUE(update.returning);
  EXPECT_EQ(update.item, dynamo::Item({{"id", "A"}}));
}

TEST(SingleWrites, AbsentVersionIsNoAbsentRecord) {
  const auto remove = request_of(removal_of(kNames, kTable, {"A", table::VersionMark{}, {}}));
  EXPECT_EQ(spelt(remove.condition, remove.names), "attribute_exists(id) AND attribute_not_exists(version)");
  EXPECT_TRUE(remove.returning);
  table::RecordWrite whatever = removal_of(kNames, kTable, {"A", {}});
  whatever.whatever_it_is = true;
  EXPECT_EQ(request_of(whatever).condition, "");
}

TEST(NonceSource, TellsHostsApartAndNeverRepeats) {
  SeededRandom random(1);
  table::NonceSource a("worker-a", random);
  table::NonceSource b("worker-b", random);
  EXPECT_NE(a.tag(), b.tag());
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const std::string nonce = a.next();
    EXPECT_EQ(nonce.size(), 16U);
    EXPECT_EQ(table::NonceSource::tag_of(nonce), a.tag());
    EXPECT_TRUE(seen.insert(nonce).second);
  }
  EXPECT_EQ(table::NonceSource::tag_of("something else"), "");
  EXPECT_EQ(table::NonceSource::tag_of(""), "");
  EXPECT_NE(table::stable_hash("worker-a"), table::stable_hash("worker-b"));
}

}  // namespace
}  // namespace sluice::queue::dynamomq
