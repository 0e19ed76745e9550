#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <boost/json.hpp>
#include <csignal>
#include <fstream>
#include <sstream>

#include "host/stores/dynamodb/table.hpp"
#include "tests/cli/run_binary.hpp"
#include "tests/support/emulator.hpp"
#include "tests/support/loopback.hpp"

namespace sluice::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const std::map<std::string, std::string> kCareAws{{"AWS_ACCESS_KEY_ID", "test"},
                                              {"AWS_SECRET_ACCESS_KEY", "test"},
                                              {"AWS_REGION", "eu-west-1"},
                                              {"AWS_EC2_METADATA_DISABLED", "true"}};

Finished run_in(const HostFolder& folder, const std::vector<std::string>& words) {
  return run_binary(words, {.input = {}, .folder = folder.path(), .environment = kCareAws, .stdout_file = {}});
}

Finished run(const std::vector<std::string>& words) { return run_in(HostFolder(""), words); }

std::string file_text(const std::string& name) {
  const std::ifstream file(std::string(SLUICE_SOURCE_DIR) + "/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The policy.

TEST(TablePolicy, TheExampleIsWhatTheCommandPrints) {
  const Finished printed =
      run({"table", "policy", "--table", "dynamo-mq-table", "--region", "eu-west-1", "--account", "123456789012"});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_EQ(printed.out, file_text("config/examples/iam-policy.json"))
      << "make it anew: sluice table policy --table dynamo-mq-table --region eu-west-1 --account 123456789012";
}

TEST(TablePolicy, TheExampleTableIsWhatTheCommandPrints) {
  const Finished printed = run({"table", "create", "--table", "dynamo-mq-table", "--print-terraform"});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_EQ(printed.out, file_text("config/examples/table.tf"))
      << "make it anew: sluice table create --table dynamo-mq-table --print-terraform";
}

TEST(TablePolicy, EachRoleHasItsActionsAndNoWildcard) {
  for (const auto role : queue::dynamodb::kRoles) {
    const std::string name(to_string(role));
    const Finished printed = run({"table", "policy", "--table", "orders", "--role", name});
    ASSERT_EQ(printed.exit_code, 0) << printed.err;
    std::size_t actions = 0;
    const auto policy = boost::json::parse(printed.out);
    for (const auto& statement : policy.at("Statement").as_array()) {
      for (const auto& action : statement.at("Action").as_array()) {
        EXPECT_EQ(action.as_string().find('*'), std::string::npos);
        ++actions;
      }
      EXPECT_TRUE(statement.at("Resource").as_string().starts_with("arn:aws:dynamodb:*:*:table/orders"));
    }
    const auto permissions = queue::dynamodb::permissions_of(role);
    EXPECT_EQ(actions, permissions.table.size() + permissions.index.size()) << name;
  }
}

TEST(TablePolicy, PrintsBothWaysOfWriting) {
  const std::vector<std::string> single{"table",  "policy",   "--table",  "orders",
                                        "--role", "operator", "--writes", "single"};
  EXPECT_THAT(run(single).out, AllOf(HasSubstr("\"dynamodb:PutItem\""), HasSubstr("\"dynamodb:DeleteItem\""),
                                     Not(HasSubstr("PartiQL"))));
  EXPECT_THAT(run({"table", "policy", "--table", "orders", "--writes", "batched"}).out, HasSubstr("PartiQLUpdate"));
  EXPECT_EQ(run({"table", "policy", "--table", "orders", "--writes", "both"}).exit_code, 64);
}

TEST(TablePolicy, KnowsThePartitionOfARegion) {
  EXPECT_THAT(run({"table", "policy", "--table", "orders", "--region", "cn-north-1"}).out,
              HasSubstr("arn:aws-cn:dynamodb:cn-north-1:*:table/orders"));
}

TEST(TablePolicy, PrintsTerraform) {
  const Finished printed = run({"table", "policy", "--table", "orders", "--role", "producer", "--role", "reader",
                                "--role", "producer", "--format", "terraform"});
  EXPECT_EQ(printed.exit_code, 0) << printed.err;
  EXPECT_THAT(printed.out, AllOf(HasSubstr("data \"aws_iam_policy_document\" \"sluice_producer_reader\" {"),
                                 HasSubstr("      \"dynamodb:PartiQLInsert\",\n"),
                                 HasSubstr("resources = [\"arn:aws:dynamodb:*:*:table/orders/index/")));
}

TEST(TablePolicy, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(run({"table", "policy", "--table", "orders", "--role", "root"}).exit_code, 64);
  EXPECT_EQ(run({"table", "policy", "--table", "orders", "--account", "me"}).exit_code, 64);
  EXPECT_EQ(run({"table", "policy", "--table", "orders", "--format", "yaml"}).exit_code, 64);
  EXPECT_EQ(run({"table", "policy", "--table", "or\"ders"}).exit_code, 64);
  EXPECT_EQ(run({"table", "policy", "--table", "ab"}).exit_code, 64) << "shorter than any table's name";
}

TEST(TableTarget, IsNamedWithoutAHostFile) {
  const Finished policy = run({"table", "policy"});
  EXPECT_EQ(policy.exit_code, 64) << policy.out;
  EXPECT_THAT(policy.err, HasSubstr("which table? Write --table TABLE"));
  EXPECT_THAT(run({"table", "policy", "--queue", "orders"}).out, HasSubstr("table/orders"));
}

TEST(TableTarget, WithoutARegionIsWrongConfiguration) {
  const HostFolder folder("[store]\nkind = \"dynamodb\"\n[queues.orders]\n");
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"ls"}, {"table", "check"}, {"table", "create"}, {"stats", "--table", "orders"}}) {
    const Finished refused = run_binary(
        words,
        {.input = {}, .folder = folder.path(), .environment = {{"AWS_CONFIG_FILE", "/nowhere"}}, .stdout_file = {}});
    EXPECT_EQ(refused.exit_code, 78) << words.front();
    EXPECT_EQ(refused.err_lines().size(), 1U) << refused.err;
    EXPECT_THAT(refused.err, HasSubstr("no AWS region is named"));
  }
}

TEST(TableTarget, IsTheHostFilesOnlyQueueOrHasToBeNamed) {
  const HostFolder one("[store]\nkind = \"dynamodb\"\n[queues.orders]\ntable = \"orders-table\"\n");
  EXPECT_THAT(run_in(one, {"table", "policy"}).out, HasSubstr("table/orders-table"));
  const HostFolder two("[store]\nkind = \"dynamodb\"\n[queues.orders]\n[queues.mails]\n");
  const Finished unnamed = run_in(two, {"table", "policy"});
  EXPECT_EQ(unnamed.exit_code, 64);
  EXPECT_THAT(unnamed.err, HasSubstr("--queue is missing; write --queue QUEUE, one of mails, orders"));
}

TEST(TableTerraform, MakesANameOfEveryTable) {
  const Finished printed =
      run({"table", "create", "--table", "7-orders.x", "--print-terraform", "--no-deletion-protection"});
  EXPECT_THAT(printed.out, AllOf(HasSubstr("\"aws_dynamodb_table\" \"_7_orders_x\""), HasSubstr("= \"7-orders.x\""),
                                 HasSubstr("deletion_protection_enabled = false")));
}

TEST(TableCreate, EndsOnCtrlCWhileItWaits) {
  const Descriptor silent = listen_on_loopback();
  const HostFolder folder("");
  RunningBinary create(
      {"table", "create", "--table", "orders", "--endpoint", "http://127.0.0.1:" + std::to_string(local_port(silent))},
      {.input = {}, .folder = folder.path(), .environment = kCareAws, .stdout_file = {}});
  const Descriptor asked(::accept(silent.get(), nullptr, nullptr));  // it waits for an answer that does not come
  create.signal(SIGINT);
  const Finished finished = create.finish();
  EXPECT_EQ(finished.exit_code, 130);
  EXPECT_EQ(finished.err_lines().size(), 1U) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr("stopped before table orders was ready"));
}

// What is asked of a table.

class TableCare : public testing::Test {
 protected:
  void SetUp() override {
    emulator_ = Emulator::start();
    if (!emulator_) {
      GTEST_SKIP() << Emulator::absence();
    }
  }

  Finished table(const std::string& command, std::vector<std::string> more = {}) {
    std::vector<std::string> words{"table", command, "--endpoint", emulator_->endpoint()};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  std::unique_ptr<Emulator> emulator_;
};

TEST_F(TableCare, DescribesInJson) {
  ASSERT_EQ(table("create", {"--table", "orders"}).exit_code, 0);
  const Finished shown = table("describe", {"--table", "orders"});
  ASSERT_EQ(shown.exit_code, 0) << shown.err;
  const auto described = boost::json::parse(shown.out).as_object();
  std::vector<std::string> keys;
  for (const auto& [key, value] : described) {
    keys.emplace_back(key);
  }
  EXPECT_THAT(
      keys, ElementsAre("table", "region", "arn", "status", "billing_mode", "read_units", "write_units", "table_class",
                        "deletion_protection", "stream", "item_count", "size_bytes", "storage_per_month", "currency",
                        "as_of", "hash_key", "range_key", "attribute_types", "indexes"));
  EXPECT_EQ(described.at("as_of").as_string(), "2026-11-01");
  EXPECT_EQ(described.at("table").as_string(), "orders");
  EXPECT_EQ(described.at("hash_key").as_string(), "id");
  EXPECT_TRUE(described.at("range_key").is_null());
  EXPECT_EQ(described.at("billing_mode").as_string(), "PAY_PER_REQUEST");
  EXPECT_TRUE(described.at("read_units").is_null()) << "paid by request";
  EXPECT_EQ(described.at("attribute_types").at("sent_at").as_string(), "S");
  EXPECT_EQ(described.at("indexes").at(0).at("projection").as_string(), "ALL");
}

TEST_F(TableCare, DescribesInTextWithoutColours) {
  ASSERT_EQ(table("create", {"--table", "orders"}).exit_code, 0);
  const Finished shown = table("describe", {"--table", "orders", "--output", "text"});
  EXPECT_THAT(shown.out,
              AllOf(HasSubstr("keys"), HasSubstr("id (S)"), HasSubstr("queue_type (S), sent_at (S)"),
                    HasSubstr("PROJECTION"), HasSubstr(" a month, indexes included"), Not(HasSubstr("\x1b"))));
}

TEST_F(TableCare, AMissingTableIsOneLineWithTheMend) {
  for (const char* command : {"describe", "check"}) {
    const Finished shown = table(command, {"--table", "nowhere"});
    EXPECT_EQ(shown.exit_code, 1);
    EXPECT_EQ(shown.out, "");
    EXPECT_EQ(shown.err_lines().size(), 1U) << shown.err;
    EXPECT_THAT(shown.err, AllOf(HasSubstr("nowhere"), HasSubstr("sluice table create")));
  }
}

TEST_F(TableCare, ChecksARightTable) {
  ASSERT_EQ(table("create", {"--table", "orders"}).exit_code, 0);
  const Finished checked = table("check", {"--table", "orders"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  EXPECT_TRUE(boost::json::parse(checked.out).at("ok").as_bool());
  EXPECT_THAT(checked.err, IsEmpty());
  const Finished text = table("check", {"--table", "orders", "--output", "text"});
  EXPECT_EQ(text.exit_code, 0);
  EXPECT_THAT(text.out, HasSubstr("table orders with index dynamo-mq-index-queue_type-sent_at holds a queue\n"));
}

TEST_F(TableCare, SwitchesTheRemovalOfVoidItemsOnUnlessItIsToldNotTo) {
  ASSERT_EQ(table("create", {"--table", "orders", "--no-ttl"}).exit_code, 0);
  const Finished off = table("check", {"--table", "orders", "--output", "text"});
  EXPECT_EQ(off.exit_code, 0) << "nothing goes wrong without it";
  EXPECT_THAT(off.out, HasSubstr("advice: DynamoDB's TTL is off"));
  EXPECT_THAT(off.out, HasSubstr("sluice_key_expires"));
  const Finished again = table("create", {"--table", "orders"});
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.err, IsEmpty());
  EXPECT_THAT(table("check", {"--table", "orders", "--output", "text"}).out, Not(HasSubstr("TTL")));
  const Finished printed = table("create", {"--table", "orders", "--no-ttl", "--print-terraform"});
  EXPECT_THAT(printed.out, Not(HasSubstr("ttl")));
}

TEST_F(TableCare, ChecksAWrongOne) {
  ASSERT_EQ(table("create", {"--table", "orders", "--index", "by-type"}).exit_code, 0);
  const Finished checked = table("check", {"--table", "orders"});
  EXPECT_EQ(checked.exit_code, 1);
  const auto report = boost::json::parse(checked.out);
  EXPECT_FALSE(report.at("ok").as_bool());
  EXPECT_EQ(report.at("findings").at(0).at("level").as_string(), "error");
  ASSERT_EQ(checked.err_lines().size(), 1U) << checked.err;
  EXPECT_THAT(checked.err, AllOf(HasSubstr("there is no index"), HasSubstr("index 'by-type' has the right keys")));
  const Finished text = table("check", {"--table", "orders", "--output", "text"});
  EXPECT_EQ(text.exit_code, 1);
  EXPECT_THAT(text.out, HasSubstr("error: there is no index"));
  EXPECT_EQ(text.err, "");
}

TEST_F(TableCare, TakesTheNamesThatQueueCommandsUse) {
  const Finished created =
      run({"table", "create", "--table", "jobs", "--index", "by-type", "--endpoint", emulator_->endpoint()});
  EXPECT_EQ(created.exit_code, 0) << created.err;
  EXPECT_EQ(boost::json::parse(created.out).at("index").as_string(), "by-type");
}

}  // namespace
}  // namespace sluice::test
