// Tables as others make them, on a real MariaDB: with UUIDs as texts and as bytes, and without columns that we know.

#include <gmock/gmock.h>

#include <thread>

#include "tests/stores/outbox_mysql/outbox_table.hpp"

namespace sluice::queue::outbox::mysql {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Texts = std::vector<std::string>;

constexpr const char* kBare =
    "CREATE TABLE outbox (id BIGINT PRIMARY KEY, aggregate_type VARCHAR(255) NOT NULL, aggregate_id VARCHAR(255) NOT "
    "NULL, event VARCHAR(255) NOT NULL, payload JSON NOT NULL, retry_at DATETIME NULL, retry_count INT NULL, sent_at "
    "DATETIME NULL)";

std::string uuid(char digit) { return std::string(8, digit) + "-0000-4000-8000-000000000000"; }

class MysqlTables : public OutboxTable {
 protected:
  void run_all(std::string ddl) {
    for (std::size_t end = 0; (end = ddl.find(";\n")) != std::string::npos; ddl.erase(0, end + 2)) {
      sql(ddl.substr(0, end));
    }
  }
  Texts findings(Database& database) {
    Texts texts;
    for (const Finding& finding : (*database.open_admin(soon()))->inspect(soon()).value()) {
      texts.push_back(finding.text);
    }
    return texts;
  }
  Page page(Database& database, std::size_t limit = 100, const Row* after = nullptr) {
    FetchRequest request{.buckets = all_buckets_, .filter = &everything_, .limit = limit};
    if (after != nullptr) {
      request.beyond = after->key();
    }
    return (*database.open_reader(soon()))->fetch(request, soon()).value();
  }
};

TEST_F(MysqlTables, TheDdlMayBeRunAgain) {
  make_table(settings());
  make_table(settings());
  EXPECT_THAT(findings(*database()), IsEmpty());
}

TEST_F(MysqlTables, ATableThatIsInUseIsCompletedAndItsColumnsAreUsedWithoutBeingNamed) {
  sql("DROP TABLE outbox");
  sql(kBare);
  Settings bare = settings();
  bare.config.columns = {};
  bare.config.attributes.clear();
  EXPECT_THAT(findings(*database(bare)), testing::Contains(HasSubstr("has no column for 'last_error'")));
  insert(1, "t", "a");
  insert(2, "t", "b");
  {
    const auto before = database(bare);
    const std::vector<RowEdit> marks{dead_mark({1}, 10, "never")};
    EXPECT_THAT((*before->open_locks(soon()))->mark(marks, soon()).value(), ElementsAre(MarkStatus::written));
  }
  for (int i = 0; i < 2; ++i) {
    run_all(database(bare)->ddl(true));
  }
  EXPECT_THAT(findings(*database(bare)), IsEmpty());
  const std::vector<RowEdit> marks{retry_mark({2}, 1, std::chrono::seconds(60), "later")};
  EXPECT_THAT((*database(bare)->open_locks(soon()))->mark(marks, soon()).value(), ElementsAre(MarkStatus::written));
  EXPECT_EQ(value("SELECT CONCAT(last_error,'|',failed_at IS NOT NULL) FROM outbox WHERE id=2"), "later|1");
  EXPECT_EQ(value("SELECT last_error IS NULL AND retry_count=10 FROM outbox WHERE id=1"), "1");
}

// As Hibernate keeps them, and as texts.
TEST_F(MysqlTables, UuidsGoOutInTheOrderOfTheirColumn) {
  for (const std::string type : {"CHAR(36)", "BINARY(16)", "UUID"}) {
    sql("DROP TABLE outbox");
    sql("CREATE TABLE outbox (id " + type +
        " NOT NULL PRIMARY KEY, aggregate_type VARCHAR(255) NOT NULL, aggregate_id VARCHAR(255) NOT NULL, event "
        "VARCHAR(255) NOT NULL, payload JSON, created_at DATETIME(6) NOT NULL)");
    Settings uuids = settings();
    uuids.config.columns = {};
    uuids.config.attributes.clear();
    uuids.config.columns.order_by = "created_at";
    run_all(database(uuids)->ddl(true));
    const auto outbox = database(uuids);
    EXPECT_THAT(findings(*outbox), IsEmpty()) << type;
    const bool bytes = type == "BINARY(16)";
    Texts ids;
    for (const char digit : {'f', '1', '9', '8'}) {
      std::string id = uuid(digit);
      const std::string second = digit == 'f' ? "01" : digit == '1' ? "02" : "03";  // the last two at one time
      sql("INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload,created_at) VALUES (" +
          (bytes ? "UNHEX(REPLACE('" + id + "','-',''))" : "'" + id + "'") + ",'t',IF('" + digit +
          "'='8','','a'),'e','{}','2026-01-02 03:04:" + second + ".000001')");
      if (bytes) {
        std::erase(id, '-');
      }
      ids.push_back(id);
    }
    const Page all = page(*outbox);
    ASSERT_EQ(all.rows.size(), 4U) << type;
    const Texts order{ids[0], ids[1], ids[3], ids[2]};
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(all.rows[i].text, order[i]) << type << " " << i;
    }
    EXPECT_EQ(page(*outbox, 2, &all.rows[2]).rows.at(0).text, order[3]) << type;
    const std::vector<Group> groups{{"t", "a"}};
    const FetchRequest request{.buckets = all_buckets_, .filter = &everything_, .limit = 2};
    const auto found = (*outbox->open_reader(soon()))->fetch_groups(groups, request, soon()).value();
    ASSERT_EQ(found.at(0).rows.size(), 2U) << type;
    EXPECT_EQ(found[0].rows[1].text, order[1]) << type;
    EXPECT_TRUE(found[0].more) << type;
    const std::vector<RowEdit> marks{sent_mark(all.rows[0].key()), dead_mark(all.rows[1].key(), 10, "never"),
                                     sent_mark({.text = uuid('7')})};
    EXPECT_THAT((*outbox->open_locks(soon()))->mark(marks, soon()).value(),
                ElementsAre(MarkStatus::written, MarkStatus::written, MarkStatus::gone))
        << type;
    const auto desk = outbox->open_admin(soon()).value();
    const auto dead = desk->list({.half = Half::dlq}, soon()).value();
    ASSERT_EQ(dead.size(), 1U) << type;
    EXPECT_EQ(dead[0].row.text, order[1]) << type;
    EXPECT_EQ(dead[0].last_error, "never") << type;
    const RowEdit redrive = edit_of(dead[0].row.key(), {.action = ChangeAction::redrive}, 10);
    EXPECT_THAT(desk->change(std::vector{redrive}, soon()).value(), ElementsAre(ChangeStatus::applied)) << type;
    EXPECT_EQ(desk->get({.text = order[2]}, soon()).value().row.text, order[2]) << type;
  }
}

// With a million rows a page took half a minute, which is longer than a read may take.
TEST_F(MysqlTables, APageOfUuidsSortsNoMoreThanThePage) {
  for (const std::string order : {"position", "created_at"}) {
    sql("DROP TABLE IF EXISTS outbox");
    Settings uuids = settings();
    uuids.config.columns = {};
    uuids.config.attributes.clear();
    uuids.config.columns.order_by = order;
    run_all(database(uuids)->ddl(false));
    sql("INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload) SELECT UUID(),'t','a','e','{}' FROM "
        "seq_1_to_2000");
    sql("UPDATE outbox SET created_at = '2026-01-01' + INTERVAL (CRC32(id) MOD 200) SECOND");
    const auto outbox = database(uuids);
    const auto sorted = [&] {
      return std::stoi(
          value("SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS "
                "WHERE VARIABLE_NAME = 'Sort_rows'"));
    };
    std::size_t seen = 0;
    Page read{.more = true};
    const int before = sorted();
    while (read.more) {
      const Row last = read.rows.empty() ? Row() : read.rows.back();
      read = page(*outbox, 250, seen == 0 ? nullptr : &last);
      seen += read.rows.size();
    }
    EXPECT_EQ(seen, 2000U) << order;
    EXPECT_LE(sorted() - before, 2200) << order;
    const auto desk = outbox->open_admin(soon()).value();
    const auto newest = desk->list({.newest_first = true, .limit = 30}, soon()).value();
    EXPECT_EQ(newest.size(), 30U);
    EXPECT_EQ(desk->list({.beyond = newest.back().row.key(), .newest_first = true, .limit = 3000}, soon())->size(),
              1970U);
    EXPECT_EQ(desk->list({.beyond = newest.back().row.key(), .limit = 3000}, soon())->size(), 29U);
  }
}

// The first rows of a table are those that are just being sent, and who lists takes a short page for the last one.
TEST_F(MysqlTables, APageOfUuidsIsFullThoughRowsOfItAreSentMeanwhile) {
  sql("DROP TABLE outbox");
  Settings uuids = settings();
  uuids.config.columns.order_by = "position";
  run_all(database(uuids)->ddl(false));
  sql("INSERT INTO outbox (id,aggregate_type,aggregate_id,event,payload) SELECT UUID(),'t','a','e','{}' FROM "
      "seq_1_to_8000");
  const auto first = sql("SELECT id FROM outbox ORDER BY position LIMIT 5000");
  const auto desk = database(uuids)->open_admin(soon()).value();
  const std::jthread relay([&](const std::stop_token& stop) {
    for (std::size_t i = 0; i < first.size() && !stop.stop_requested(); ++i) {
      sql("UPDATE outbox SET sent_at = UTC_TIMESTAMP() WHERE id = '" + *first[i][0] + "'");
    }
  });
  for (int page = 0; page < 20; ++page) {
    EXPECT_EQ(desk->list({.limit = 2000}, soon())->size(), 2000U) << page;
  }
}

TEST_F(MysqlTables, AUuidWithoutAColumnForTheOrderIsNamed) {
  sql("DROP TABLE outbox");
  sql("CREATE TABLE outbox (id CHAR(36) PRIMARY KEY, aggregate_type VARCHAR(255) NOT NULL, aggregate_id VARCHAR(255) "
      "NOT "
      "NULL, event VARCHAR(255) NOT NULL, payload JSON, retry_at DATETIME, retry_count INT, sent_at DATETIME)");
  EXPECT_THAT(findings(*database()), testing::Contains(HasSubstr("'order_by' in [outbox.NAME.columns]")));
}

TEST_F(MysqlTables, TheDdlMakesATableOfUuidsToo) {
  for (const std::string order : {"position", "created_at"}) {
    sql("DROP TABLE outbox");
    Settings uuids = settings();
    uuids.config.columns.order_by = order;
    run_all(database(uuids)->ddl(false));
    EXPECT_THAT(findings(*database(uuids)), IsEmpty()) << order;
  }
}

}  // namespace
}  // namespace sluice::queue::outbox::mysql
