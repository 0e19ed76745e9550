// The real binary on a table that DynamoMQ's programs have written to: what it shows must be what they show.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>

#include "base/timestamp.hpp"
#include "tests/cli/run_binary.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"

namespace sluice::test {
namespace {

using dynamo::AttributeValue;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;
namespace json = boost::json;

/// No region: an endpoint makes up for it, as for Go's programs.
const std::map<std::string, std::string> kAws{{"AWS_ACCESS_KEY_ID", "test"},
                                              {"AWS_SECRET_ACCESS_KEY", "test"},
                                              {"AWS_CONFIG_FILE", "/nowhere"},
                                              {"AWS_SHARED_CREDENTIALS_FILE", "/nowhere"},
                                              {"AWS_EC2_METADATA_DISABLED", "true"}};

class BesideDynamoMq : public testing::Test {
 protected:
  void SetUp() override {
    if (shared_emulator() == nullptr) {
      GTEST_SKIP() << Emulator::absence();
    }
    client_ = std::make_unique<EmulatedHost>(clock_, "test", 1);
    make_table(client_->client(), table_, clock_);
  }

  Finished run(const Words& words, const std::string& program, const std::string& input = {}) const {
    const std::string folder = std::filesystem::path(SLUICE_BINARY).parent_path().string();
    return run_binary(words, {.input = input,
                              .folder = folder_.path(),
                              .environment = kAws,
                              .stdout_file = {},
                              .program = folder + "/" + program});
  }
  Finished dynamomq(Words words, const std::string& input = {}) const {
    words.insert(words.end(), {"--table-name", table_, "--endpoint-url", shared_emulator()->endpoint()});
    return run(words, "dynamomq", input);
  }
  Finished sluice(Words words) const {
    words.insert(words.end(), {"--table", table_, "--endpoint", shared_emulator()->endpoint()});
    return run(words, "sluice");
  }

  /// An item as Go's producer leaves it.
  dynamo::Item item(const std::string& id, Duration age = {}) const {
    const std::string sent = format_timestamp(clock_.wall_now() - age);
    return {{"id", id},
            {"data", "x"},
            {"receive_count", AttributeValue::number(0)},
            {"queue_type", "STANDARD"},
            {"version", AttributeValue::number(1)},
            {"created_at", sent},
            {"updated_at", sent},
            {"sent_at", sent},
            {"received_at", ""},
            {"invisible_until_at", ""}};
  }
  void put(dynamo::Item item) {
    dynamo::ItemWrite request;
    request.table = table_;
    request.item = std::move(item);
    const auto stored = client_->client().write(request, Deadline::after(clock_, std::chrono::seconds(30)));
    ASSERT_TRUE(stored) << stored.error().message;
  }

  const std::string table_ = fresh_table_name("beside");
  SystemClock clock_;
  HostFolder folder_{""};
  std::unique_ptr<EmulatedHost> client_;
};

TEST_F(BesideDynamoMq, AMissingTableFailsAndTheMendCanBePasted) {
  for (const char* command : {"enqueue-test", "purge", "ls", "qstat", "receive"}) {
    const Finished finished =
        run({command, "--table-name", "gone", "--endpoint-url", shared_emulator()->endpoint()}, "dynamomq");
    EXPECT_EQ(finished.exit_code, 1) << command;
    EXPECT_THAT(finished.out, HasSubstr("ERROR: Failed DynamoDB API: table 'gone' does not exist in this region. Make "
                                        "it with: sluice table create --table gone --endpoint " +
                                        shared_emulator()->endpoint() + "\n"))
        << command;
  }
}

TEST_F(BesideDynamoMq, CountsDelayedMessagesOfGoSendersAsGoDoes) {
  put(item("delayed", -std::chrono::hours(1)));
  put(item("ready"));
  const json::value stats = json::parse(dynamomq({"qstat"}).out);
  EXPECT_EQ(stats.at("first_100_IDs_in_queue_processing").as_array().size(), 0U);
  EXPECT_EQ(stats.at("total_messages_in_queue_processing").as_int64(), 0);
  EXPECT_EQ(stats.at("total_messages_in_queue_ready").as_int64(), 2);
  const json::value listed = json::parse(dynamomq({"ls"}).out);
  for (const auto& status : listed.at("statuses").as_array()) {
    EXPECT_EQ(status.at("status").as_string(), "READY");
  }
  EXPECT_EQ(json::parse(sluice({"stats"}).out).at("delayed").as_int64(), 1) << "our own word for it stays";
}

TEST_F(BesideDynamoMq, BinaryDataKeepsItsShapeWhateverItsBytes) {
  for (const auto& [id, bytes, text] : {std::tuple("text", "hello", "aGVsbG8="), {"odd", "\xff\xfe", "//4="}}) {
    dynamo::Item binary = item(id);
    binary["data"] = dynamo::Binary{bytes};
    put(binary);
    EXPECT_EQ(json::parse(dynamomq({"get", "--id", id}).out).at("data").as_string(), text);
  }
}

TEST_F(BesideDynamoMq, InventsNoValuesForOddItems) {
  dynamo::Item odd = item("odd");
  odd.erase("queue_type");
  odd.erase("created_at");
  odd["updated_at"] = "yesterday";
  put(odd);
  const json::value shown = json::parse(dynamomq({"get", "--id", "odd"}).out);
  EXPECT_EQ(shown.at("queue_type").as_string(), "");
  EXPECT_EQ(shown.at("created_at").as_string(), "");
  EXPECT_EQ(shown.at("updated_at").as_string(), "yesterday");
  for (const char* output : {"json", "text"}) {
    const Finished ours = sluice({"get", "--id", "odd", "--output", output});
    EXPECT_EQ(ours.exit_code, 0) << ours.err;
    EXPECT_THAT(ours.out, Not(HasSubstr("1970")));
    EXPECT_THAT(ours.out, Not(HasSubstr("STANDARD")));
  }
}

TEST_F(BesideDynamoMq, TableCheckNamesTheItemsThatNoQueueShows) {
  dynamo::Item lost = item("lost");
  lost.erase("queue_type");
  dynamo::Item custom = item("custom");
  custom["queue_type"] = "CUSTOM";
  put(lost);
  put(custom);
  put(item("seen"));
  put({{"id", "sluice:fleet/hosts/a"}, {"sluice_notice", "{}"}});
  const Finished checked = sluice({"table", "check"});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  const json::value items = json::parse(checked.out).at("items");
  EXPECT_EQ(items.at("read").as_int64(), 4);
  EXPECT_EQ(items.at("outside").as_int64(), 2);
  EXPECT_EQ(items.at("host_records").as_int64(), 1);
  EXPECT_TRUE(items.at("all").as_bool());
  EXPECT_THAT(
      sluice({"table", "check", "--output", "text"}).out,
      testing::AllOf(HasSubstr("advice: 2 items are in neither half"), HasSubstr("'lost' (it has no queue_type)"),
                     HasSubstr("'custom' (its queue_type is 'CUSTOM')")));
  EXPECT_EQ(sluice({"get", "--id", "sluice:fleet/hosts/a"}).exit_code, 1) << "that is no message";
  sluice({"delete", "--id", "sluice:fleet/hosts/a"});
  EXPECT_THAT(sluice({"table", "check"}).out, HasSubstr("\"host_records\": 1"));
}

TEST_F(BesideDynamoMq, MovingToTheFrontMakesNoMessageOld) {
  put(item("old", std::chrono::hours(2)));
  put(item("new"));
  ASSERT_EQ(sluice({"move-to-front", "--id", "new"}).exit_code, 0);
  const Finished listed = sluice({"ls", "--where", "age > 1h"});
  EXPECT_THAT(listed.out, testing::AllOf(HasSubstr("\"old\""), Not(HasSubstr("\"new\""))));
  const Finished purged = sluice({"purge", "--older-than", "1h", "--yes"});
  EXPECT_EQ(purged.exit_code, 0) << purged.err;
  EXPECT_EQ(sluice({"get", "--id", "new"}).exit_code, 0) << "it is not older than it was";
  EXPECT_EQ(sluice({"get", "--id", "old"}).exit_code, 1);
}

TEST_F(BesideDynamoMq, TheDialogueKnowsTheNamesOfDynamoMqsReadme) {
  const Finished finished = dynamomq({}, "et\nqstats\nid A-101\nsys\nquit\n");
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  EXPECT_THAT(finished.out,
              testing::AllOf(HasSubstr("Send a message with IDs:\n* ID: A-101"), HasSubstr("Queue status:"),
                             HasSubstr("ID's system info:"), Not(HasSubstr("unrecognized"))));
  EXPECT_THAT(finished.out, HasSubstr("AWSRegion: \nTableName: " + table_ + "\n")) << "none is named";
}

TEST_F(BesideDynamoMq, EmptyListsAreGosInItsShapesAndListsInOurs) {
  EXPECT_EQ(dynamomq({"ls"}).out, "{\n  \"statuses\": null\n}\n");
  EXPECT_EQ(dynamomq({"purge"}).out, "{\n  \"successes\": null,\n  \"failures\": null\n}\n");
  EXPECT_EQ(json::parse(sluice({"ls"}).out).at("statuses"), json::array());
  const json::value purged = json::parse(sluice({"purge", "--yes"}).out);
  EXPECT_EQ(purged.at("successes"), json::array());
  EXPECT_EQ(purged.at("failures"), json::array());
}

}  // namespace
}  // namespace sluice::test
