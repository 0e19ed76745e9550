// Items as DynamoMQ v0.11.0 stores them, decoded and worked off: ours, and where the tree has them beside it those that
// DynamoMQ itself wrote.

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::test {
namespace {

using dynamo::Item;
using queue::CompletionAction;
using queue::Half;
using queue::MessageState;

// When the items were dumped; the states are as of then.
const WallTime kDumped = *parse_timestamp("2026-11-21T01:31:21Z");
const WallTime kAfterAllLeases = *parse_timestamp("2036-12-31T00:00:00Z");

struct Fixtures {
  std::map<std::string, Item> items;                       // by id
  std::map<std::string, std::vector<std::string>> groups;  // ids
};

Fixtures load(const std::string& folder) {
  Fixtures all;
  std::ifstream lines(folder + "/items.jsonl");
  for (std::string line; std::getline(lines, line);) {
    auto item = dynamo::decode_item(line);
    EXPECT_TRUE(item) << line.substr(0, 200);
    const std::string id = *dynamo::find<std::string>(*item, "id");
    all.items.emplace(id, std::move(*item));
  }
  std::ifstream file(folder + "/groups.json");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto groups = boost::json::parse(text);
  for (const auto& [group, ids] : groups.as_object()) {
    for (const auto& id : ids.as_array()) {
      all.groups[std::string(group)].emplace_back(id.as_string());
    }
  }
  return all;
}

/// Ours always; DynamoMQ's where they are.
std::vector<std::string> folders() {
  std::vector<std::string> found{SLUICE_SOURCE_DIR "/tests/fixtures/dynamomq"};
  if (std::string theirs = SLUICE_FIXTURES_DIR "/dynamomq"; std::filesystem::exists(theirs)) {
    found.push_back(std::move(theirs));
  }
  return found;
}

std::string name_of(const ::testing::TestParamInfo<std::string>& info) {
  return info.index == 0 ? "Ours" : "DynamoMqs";
}

/// Those of the test that runs; loaded once for each folder.
std::string folder_of_test;
const Fixtures& fixtures() {
  static std::map<std::string, Fixtures> loaded;
  auto found = loaded.find(folder_of_test);
  if (found == loaded.end()) {
    found = loaded.emplace(folder_of_test, load(folder_of_test)).first;
  }
  return found->second;
}
std::size_t size_of(const std::string& group) { return fixtures().groups.at(group).size(); }

std::set<std::string> ids_in(const std::vector<std::string>& groups) {
  std::set<std::string> ids;
  for (const auto& group : groups) {
    const auto& members = fixtures().groups.at(group);
    ids.insert(members.begin(), members.end());
  }
  return ids;
}

class DynamoMqRecord : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { folder_of_test = GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Items, DynamoMqRecord, ::testing::ValuesIn(folders()), name_of);

TEST_P(DynamoMqRecord, ReadsEveryItem) {
  EXPECT_GT(fixtures().items.size(), 100U);
  for (const auto& [id, item] : fixtures().items) {
    SCOPED_TRACE(id);
    const auto record = queue::dynamomq::decode_record(item);
    EXPECT_EQ(record.message.id, id);
    EXPECT_GE(record.version, 1);
    EXPECT_GT(record.created_at, *parse_timestamp("2023-11-30T00:00:00Z"));
    EXPECT_GE(record.message.sent_at, record.created_at);
    EXPECT_TRUE(record.failure.empty());
    EXPECT_TRUE(record.message.attributes.empty());
    const auto& data = item.at("data");
    if (const auto* text = data.get<std::string>()) {
      EXPECT_EQ(record.message.body, *text);
      EXPECT_EQ(record.message.content_type, queue::kTextPlain);
    } else if (const auto* binary = data.get<dynamo::Binary>()) {
      EXPECT_EQ(record.message.body, binary->bytes);
      EXPECT_EQ(record.message.content_type, queue::kOctetStream);
    } else {
      EXPECT_EQ(record.message.content_type, queue::kJson);
      boost::system::error_code failed;
      boost::json::parse_options options;
      options.max_depth = 100;
      boost::json::parse(record.message.body, failed, {}, options);
      EXPECT_FALSE(failed) << record.message.body.substr(0, 200);
    }
    if (const auto* number = data.get<dynamo::Number>()) {
      EXPECT_EQ(record.message.body, number->text);
    }
  }
}

TEST_P(DynamoMqRecord, KnowsTheStateOfEveryGroup) {
  const auto state_of = [](const std::string& id, WallTime at) {
    return queue::dynamomq::decode_record(fixtures().items.at(id)).state(at);
  };
  for (const auto& id : ids_in({"data", "ready-user", "ready-uuid", "expired", "retried", "retried-consumer",
                                "dlq-client", "dlq-consumer", "dlq-received-expired", "redriven",
                                "redriven-after-receive", "clock-trimmed", "replaced"})) {
    EXPECT_EQ(state_of(id, kDumped), MessageState::ready) << id;
  }
  for (const auto& id :
       ids_in({"processing-long", "processing-again", "dlq-received", "redriven-received", "delayed-received"})) {
    EXPECT_EQ(state_of(id, kDumped), MessageState::in_flight) << id;
    EXPECT_EQ(state_of(id, kAfterAllLeases), MessageState::ready) << id;
  }
  for (const auto& id : ids_in({"processing-30s"})) {
    EXPECT_EQ(state_of(id, kDumped + 31s), MessageState::ready) << id;
  }
  for (const auto& id : ids_in({"hidden-ready"})) {
    EXPECT_EQ(state_of(id, kDumped), MessageState::delayed) << id;
  }
  for (const auto& id : ids_in({"dlq-client", "dlq-consumer", "dlq-received", "dlq-received-expired"})) {
    EXPECT_EQ(queue::dynamomq::decode_record(fixtures().items.at(id)).half, Half::dlq) << id;
  }
}

class DynamoMqTable : public StoreOnEmulator, public ::testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    folder_of_test = GetParam();
    StoreOnEmulator::SetUp();
    if (IsSkipped()) {
      return;
    }
    clock().set_wall(kDumped + 31s);
    for (const auto& [id, item] : fixtures().items) {
      put(item);
    }
  }

  std::vector<queue::Delivery> claim_all(const queue::QueueAddress& address) {
    std::vector<queue::Delivery> all;
    for (;;) {
      auto claims = desk().claim(address, 40, 30s, soon());
      EXPECT_TRUE(claims) << (claims ? "" : claims.error().message());
      if (!claims || claims->empty()) {
        return all;
      }
      std::move(claims->begin(), claims->end(), std::back_inserter(all));
    }
  }
  // Works off what is due, and returns the ids.
  std::set<std::string> work_off(const queue::QueueAddress& address) {
    const auto claims = claim_all(address);
    std::vector<queue::Completion> completions;
    for (const auto& claimed : claims) {
      const auto before = queue::dynamomq::decode_record(fixtures().items.at(claimed.message.id));
      EXPECT_EQ(claimed.message.body, before.message.body) << claimed.message.id;
      // Of a delivery that ran out nobody knows whether it began: the next one stands in for it.
      const bool ran_out = before.received_at && before.invisible_until;
      EXPECT_EQ(claimed.suspect, ran_out) << claimed.message.id;
      EXPECT_EQ(claimed.message.attempt, before.message.attempt + (ran_out ? 0 : 1)) << claimed.message.id;
      EXPECT_EQ(claimed.receipt.version, before.version + 1) << claimed.message.id;
      completions.push_back(
          {.receipt = claimed.receipt, .action = CompletionAction::remove, .delay = {}, .failure = {}});
    }
    EXPECT_EQ(applied(desk().settle(address, completions, soon())), claims.size());
    return ids_of(claims);
  }
  void expect_untouched(const std::set<std::string>& ids) {
    for (const auto& id : ids) {
      EXPECT_EQ(raw(id), fixtures().items.at(id)) << id;
    }
  }

  static std::set<std::string> delayed_by(int place) {
    std::set<std::string> ids;  // 1 s, 600 s, a day, ten years, in turn
    const auto& all = fixtures().groups.at("delayed");
    for (std::size_t i = static_cast<std::size_t>(place); i < all.size(); i += 4) {
      ids.insert(all[i]);
    }
    return ids;
  }
  static std::set<std::string> ready() {
    auto ids = ids_in({"data", "ready-user", "ready-uuid", "processing-30s", "expired", "retried", "retried-consumer",
                       "redriven", "redriven-after-receive", "clock-trimmed", "replaced"});
    ids.insert({"A-101", "A-202", "A-303"});
    ids.merge(delayed_by(0));
    return ids;
  }
  static std::set<std::string> in_flight() {
    return ids_in({"processing-long", "processing-again", "hidden-ready", "redriven-received", "delayed-received"});
  }
  static std::set<std::string> dead() {
    auto ids = ids_in({"dlq-client", "dlq-consumer", "dlq-received-expired"});
    ids.insert("A-404");
    return ids;
  }
};

INSTANTIATE_TEST_SUITE_P(Items, DynamoMqTable, ::testing::ValuesIn(folders()), name_of);

TEST_P(DynamoMqTable, IsWorkedOffGroupByGroupAndNothingIsLost) {
  EXPECT_EQ(work_off(standard()), ready());
  expect_untouched(in_flight());
  expect_untouched(delayed_by(1));
  expect_untouched(dead());

  EXPECT_EQ(work_off(dlq()), dead());
  expect_untouched(ids_in({"dlq-received"}));

  clock().advance(600s);
  EXPECT_EQ(work_off(standard()), delayed_by(1));
  clock().advance(86'400s);
  EXPECT_EQ(work_off(standard()), delayed_by(2));
  EXPECT_TRUE(work_off(dlq()).empty());
  expect_untouched(in_flight());

  clock().advance(kAfterAllLeases - clock().wall_now());
  auto last = in_flight();
  last.merge(delayed_by(3));
  EXPECT_EQ(work_off(standard()), last);
  EXPECT_EQ(work_off(dlq()), ids_in({"dlq-received"}));
  EXPECT_EQ(desk().stats(standard(), soon())->total(), 0U);
  EXPECT_EQ(desk().stats(dlq(), soon())->total(), 0U);
}

TEST_P(DynamoMqTable, IsCountedAndListed) {
  const auto standard_stats = desk().stats(standard(), soon());
  ASSERT_TRUE(standard_stats);
  EXPECT_EQ(standard_stats->ready, ready().size());
  const auto flying = ids_in({"processing-long", "processing-again", "redriven-received", "delayed-received"}).size();
  EXPECT_EQ(standard_stats->in_flight, flying);
  EXPECT_EQ(standard_stats->delayed, size_of("hidden-ready") + size_of("delayed") * 3 / 4) << "a quarter is due";
  const auto dlq_stats = desk().stats(dlq(), soon());
  ASSERT_TRUE(dlq_stats);
  EXPECT_EQ(dlq_stats->ready, dead().size());
  EXPECT_EQ(dlq_stats->in_flight, size_of("dlq-received"));

  std::set<std::string> listed;
  queue::ListRequest request{.half = standard().half, .limit = 33, .cursor = {}};
  do {
    const auto page = desk().list("orders", request, soon());
    ASSERT_TRUE(page) << page.error().message();
    for (const auto& stored : page->messages) {
      EXPECT_TRUE(listed.insert(stored.message.id).second) << stored.message.id;
    }
    request.cursor = page->next;
  } while (!request.cursor.empty());
  EXPECT_EQ(listed.size(), standard_stats->total());
}

TEST_P(DynamoMqTable, SurvivesRetryDeadLetterAndRedriveUnchanged) {
  const auto claims = claim_all(standard());
  ASSERT_EQ(claims.size(), ready().size());
  EXPECT_EQ(applied(settle(desk(), claims, CompletionAction::dead_letter)), claims.size());
  for (const auto& claimed : claims) {
    const auto moved = desk().redrive("orders", claimed.message.id, soon());
    EXPECT_TRUE(moved) << claimed.message.id << ": " << (moved ? "" : moved.error().message());
  }
  clock().advance(1ms);
  for (const auto& id : ready()) {
    const Item now = raw(id);
    EXPECT_EQ(now.at("data"), fixtures().items.at(id).at("data")) << id;
    EXPECT_EQ(now.at("created_at"), fixtures().items.at(id).at("created_at")) << id;
  }
  EXPECT_EQ(claim_all(standard()).size(), ready().size());
}

}  // namespace
}  // namespace sluice::test
