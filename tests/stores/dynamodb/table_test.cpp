#include "host/stores/dynamodb/table.hpp"

#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using namespace queue::dynamodb;
using ::testing::HasSubstr;

class QueueTableMaking : public StoreOnEmulator {
 protected:
  Result<TableOutcome> make(const TableSpec& spec) {
    return create_queue_table(host().client(), spec, clock(), soon());
  }
  void make_wrong_table(const std::string& name, bool with_index) {
    dynamo::CreateTableRequest request;
    request.name = name;
    request.hash_key = "pk";
    request.range_key = "sk";
    request.attribute_types = {{"pk", "S"}, {"sk", "S"}};
    if (with_index) {
      dynamo::IndexDescription index;
      index.name = queue::dynamomq::kDefaultIndexName;
      index.hash_key = "queue_type";
      index.range_key = "pk";
      index.projection = "KEYS_ONLY";
      request.indexes = {index};
      request.attribute_types["queue_type"] = "N";
    }
    const auto made = host().client().create_table(request, soon());
    ASSERT_TRUE(made) << made.error().message;
  }
};

TEST_F(QueueTableMaking, MakesWhatDynamoMqDescribes) {
  TableSpec spec;
  spec.table = fresh_table_name("made");
  const auto made = make(spec);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(*made, TableOutcome::created);
  const auto table = host().client().describe_table(spec.table, soon());
  ASSERT_TRUE(table);
  EXPECT_EQ(table->status, "ACTIVE");
  EXPECT_EQ(table->hash_key, "id");
  EXPECT_EQ(table->range_key, "");
  EXPECT_EQ(table->billing_mode, "PAY_PER_REQUEST");
  ASSERT_EQ(table->indexes.size(), 1U);
  EXPECT_EQ(table->indexes[0].name, "dynamo-mq-index-queue_type-sent_at");
  EXPECT_EQ(table->indexes[0].hash_key, "queue_type");
  EXPECT_EQ(table->indexes[0].range_key, "sent_at");
  EXPECT_EQ(table->indexes[0].projection, "ALL");
  EXPECT_TRUE(check_table(host().client(), spec, soon()));
}

TEST_F(QueueTableMaking, ExistingRightTableIsASuccess) {
  TableSpec spec;
  spec.table = table();
  const auto again = make(spec);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(*again, TableOutcome::exists);
}

TEST_F(QueueTableMaking, ExistingWrongTableIsListedDifferenceByDifference) {
  TableSpec spec;
  spec.table = fresh_table_name("wrong");
  make_wrong_table(spec.table, true);
  const auto made = make(spec);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::invalid);
  const std::string text = made.error().message();
  EXPECT_THAT(text, HasSubstr("the hash key is 'pk' and must be 'id'"));
  EXPECT_THAT(text, HasSubstr("the range key is 'sk' and must be none"));
  EXPECT_THAT(text, HasSubstr("the index's range key is 'pk' and must be 'sent_at'"));
  EXPECT_THAT(text, HasSubstr("the index's projection is 'KEYS_ONLY' and must be 'ALL'"));
  EXPECT_THAT(text, HasSubstr("the type of queue_type is 'N' and must be 'S'"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto checked = check_table(host().client(), spec, soon());
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().message(), text);
}

TEST_F(QueueTableMaking, MissingIndexIsADifference) {
  TableSpec spec;
  spec.table = fresh_table_name("bare");
  make_wrong_table(spec.table, false);
  const auto made = make(spec);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), HasSubstr("there is no index 'dynamo-mq-index-queue_type-sent_at'"));
}

TEST_F(QueueTableMaking, CheckOfAMissingTableNamesIt) {
  TableSpec spec;
  spec.table = "nowhere";
  const auto checked = check_table(host().client(), spec, soon());
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code(), ErrorCode::queue_missing);
  EXPECT_THAT(checked.error().message(), HasSubstr("'nowhere' does not exist"));
}

TEST_F(QueueTableMaking, LostAnswerOfTheCreationDoesNotMatter) {
  TableSpec spec;
  spec.table = fresh_table_name("lost");
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "CreateTable" ? HttpFault::commit_then_reset : HttpFault::none;
  });
  const auto made = make(spec);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(*made, TableOutcome::created);
}

TEST_F(QueueTableMaking, EndsWhenStopped) {
  TableSpec spec;
  spec.table = fresh_table_name("stopped");
  // The table never becomes visible.
  host().faults().choose([](const std::string& operation, const std::string&) {
    return operation == "CreateTable" ? HttpFault::error_500 : HttpFault::none;
  });
  std::stop_source stop;
  stop.request_stop();
  const auto made = create_queue_table(host().client(), spec, clock(), soon(), stop.get_token());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), ErrorCode::cancelled);
  const auto late = create_queue_table(host().client(), spec, clock(), Deadline::after(clock(), 0s));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), ErrorCode::timeout);
}

}  // namespace
}  // namespace sluice::test
