#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tests/cli/run_binary.hpp"
#include "tests/support/emulator.hpp"

namespace sluice::test {
namespace {

using testing::HasSubstr;

const std::map<std::string, std::string> kCredentials{{"AWS_ACCESS_KEY_ID", "test"},
                                                      {"AWS_SECRET_ACCESS_KEY", "test"},
                                                      {"AWS_REGION", "eu-west-1"},
                                                      {"AWS_EC2_METADATA_DISABLED", "true"}};

Finished run(const HostFolder& folder, const std::vector<std::string>& words, const std::string& input = {}) {
  return run_binary(words, {.input = input, .folder = folder.path(), .environment = kCredentials, .stdout_file = {}});
}

TEST(TableCreate, HasNothingToDoForSqlite) {
  const HostFolder folder;
  const Finished finished = run(folder, {"table", "create", "--queue", "orders"});
  EXPECT_EQ(finished.exit_code, 78);
  EXPECT_THAT(finished.err, HasSubstr("SQLite, which needs no tables"));
}

TEST(TableCreate, SaysThatNobodyAnswers) {
  const HostFolder folder("");
  const Finished finished = run(folder, {"table", "create", "--table", "jobs", "--endpoint", "http://127.0.0.1:1"});
  EXPECT_EQ(finished.exit_code, 1);
  EXPECT_EQ(finished.err_lines().size(), 1U) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("127.0.0.1"));
}

TEST(TableCreate, NeedsARegion) {
  const HostFolder folder("");
  const Finished finished =
      run_binary({"table", "create", "--table", "jobs"},
                 {.input = {}, .folder = folder.path(), .environment = {{"HOME", folder.path()}}, .stdout_file = {}});
  EXPECT_EQ(finished.exit_code, 78);
  EXPECT_THAT(finished.err, HasSubstr("AWS_REGION"));
}

// It said that an outbox in PostgreSQL lies in SQLite; and errors of outboxes ended with this very command.
TEST(TableCommands, MakeNoTableOfAnOutbox) {
  const HostFolder folder("[outbox.o]\nkind = \"postgres\"\nurl = \"postgres://nobody@127.0.0.1:1/none\"\n");
  folder.write("jobs.d/o.toml", "[job]\nsource = \"outbox:o\"\nhandler = \"log\"\n");
  const Finished refused = folder.run({"table", "create", "--queue", "outbox:o"});
  EXPECT_EQ(refused.exit_code, 78);
  EXPECT_EQ(refused.err,
            "sluice table create: the table of outbox o is the application's: `sluice outbox ddl o` prints what makes "
            "it, `sluice outbox status o` looks at it\n");
}

class Table : public testing::Test {
 protected:
  void SetUp() override {
    emulator_ = Emulator::start();
    if (!emulator_) {
      GTEST_SKIP() << Emulator::absence();
    }
    folder_ = std::make_unique<HostFolder>("[store]\nkind = \"dynamodb\"\n[dynamodb]\nendpoint = \"" +
                                           emulator_->endpoint() + "\"\n[queues.orders]\ntable = \"orders-table\"\n");
  }

  std::unique_ptr<Emulator> emulator_;
  std::unique_ptr<HostFolder> folder_;
};

TEST_F(Table, IsMadeOnceAndThenUsed) {
  const Finished missing = run(*folder_, {"send", "--queue", "orders", "--data", "1"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_EQ(missing.err_lines().size(), 1U) << missing.err;
  EXPECT_THAT(missing.err, AllOf(HasSubstr("orders-table"), HasSubstr("sluice table create")));

  const Finished created = run(*folder_, {"table", "create", "--queue", "orders"});
  ASSERT_EQ(created.exit_code, 0) << created.err;
  const auto answer = boost::json::parse(created.out);
  EXPECT_EQ(answer.at("table").as_string(), "orders-table");
  EXPECT_TRUE(answer.at("created").as_bool());
  EXPECT_EQ(answer.at("endpoint").as_string(), emulator_->endpoint());
  const Finished again = run(*folder_, {"table", "create", "--queue", "orders"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_FALSE(boost::json::parse(again.out).at("created").as_bool());

  ASSERT_EQ(run(*folder_, {"send", "--queue", "orders", "--id", "A-1", "--data", "{\"n\": 1}"}).out, "A-1\n");
  ASSERT_EQ(run(*folder_, {"send", "--queue", "orders", "-"}, "1\n2\n3\n").out_lines().size(), 3U);
  const auto shown = boost::json::parse(run(*folder_, {"get", "--queue", "orders", "--id", "A-1"}).out);
  EXPECT_EQ(shown.at("data").at("n").as_int64(), 1);
  const auto listed = boost::json::parse(run(*folder_, {"ls", "--queue", "orders", "--all"}).out);
  EXPECT_EQ(listed.at("statuses").as_array().size(), 4U);
  EXPECT_EQ(boost::json::parse(run(*folder_, {"stats", "--queue", "orders"}).out).at("total").as_int64(), 4);
  EXPECT_EQ(boost::json::parse(run(*folder_, {"purge", "--queue", "orders", "--yes"}).out).at("removed").as_int64(), 4);
}

TEST_F(Table, TheAuditIsItsQueuesByWhateverNameAnybodyWorked) {
  const HostFolder elsewhere("");
  const std::string& endpoint = emulator_->endpoint();
  ASSERT_EQ(run(*folder_, {"table", "create", "--queue", "orders"}).exit_code, 0);
  ASSERT_EQ(run(*folder_, {"send", "orders", "-"}, "1\n2\n").exit_code, 0);
  ASSERT_EQ(run(*folder_, {"purge", "orders", "--limit", "1", "--yes"}).exit_code, 0);
  ASSERT_EQ(run(elsewhere, {"purge", "--table", "orders-table", "--endpoint", endpoint, "--yes"}).exit_code, 0);
  for (const Finished& audit : {run(*folder_, {"audit", "orders"}),
                                run(elsewhere, {"audit", "--table", "orders-table", "--endpoint", endpoint})}) {
    const auto deeds = boost::json::parse(audit.out).as_array();
    ASSERT_EQ(deeds.size(), 2U) << audit.err;
    EXPECT_EQ(deeds[0].at("what").as_string(), "purge queue orders-table");
    EXPECT_EQ(deeds[1].at("what").as_string(), "purge queue orders");
  }
}

TEST_F(Table, MayBeNamedWithoutAHostFile) {
  const HostFolder elsewhere("");
  const Finished created = run(elsewhere, {"table", "create", "--table", "jobs", "--index", "by-type", "--endpoint",
                                           emulator_->endpoint(), "--no-deletion-protection"});
  ASSERT_EQ(created.exit_code, 0) << created.err;
  EXPECT_EQ(boost::json::parse(created.out).at("index").as_string(), "by-type");
  const Finished differs = run(elsewhere, {"table", "create", "--table", "jobs", "--endpoint", emulator_->endpoint()});
  EXPECT_EQ(differs.exit_code, 1) << "the index is not there under the default name";
  EXPECT_EQ(differs.err_lines().size(), 1U) << differs.err;
}

}  // namespace
}  // namespace sluice::test
