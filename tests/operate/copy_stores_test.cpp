#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/timestamp.hpp"
#include "dynamo/codec/json_codec.hpp"
#include "host/operate/bulk_run.hpp"
#include "host/operate/copy.hpp"
#include "host/operate/record_json.hpp"
#include "tests/operate/forgetful_operator.hpp"
#include "tests/stores/dynamomq/emulated_tables.hpp"
#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"
#include "tests/support/sim_queues.hpp"

namespace sluice::operate {
namespace {

using namespace std::chrono_literals;
using queue::Half;
using testing::HasSubstr;

constexpr const char* kQueue = "orders";

/// Queues to copy between. The clock stands still at the present, so that waits for the emulator end.
class CopyTest : public testing::Test {
 protected:
  CopyTest() { clock_.set_steady(SystemClock().steady_now()); }

  Deadline soon() { return Deadline::after(clock_, 60s); }

  std::vector<std::string> export_lines(test::Desk& store, std::vector<Half> halves = {Half::standard, Half::dlq}) {
    Exporter exporter(store.oper(kQueue), clock_, {.halves = std::move(halves)});
    std::string text;
    for (bool more = true; more;) {
      const auto step = exporter.step(text, soon());
      EXPECT_TRUE(step) << step.error().message();
      more = step && *step;
    }
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      lines.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    return lines;
  }

  Importer::Counts import_lines(test::Desk& store, const std::vector<std::string>& lines, bool keep_leases = true) {
    Importer importer(store.oper(kQueue), clock_, {.keep_leases = keep_leases});
    std::uint64_t number = 0;
    const auto flush = [&] {
      const auto refusals = importer.flush(soon());
      ASSERT_TRUE(refusals) << refusals.error().message();
      for (const auto& refusal : *refusals) {
        ADD_FAILURE() << "line " << refusal.line << ": " << refusal.reason;
      }
    };
    for (const std::string& line : lines) {
      const auto refusal = importer.add(++number, line);
      EXPECT_FALSE(refusal) << refusal->reason;
      if (importer.full()) {
        flush();
      }
    }
    flush();
    return importer.counts();
  }

  std::unique_ptr<test::StoreDesk> sqlite(const std::string& file) {
    return test::open_store(folder_.file(file), clock_, random_);
  }

  /// Messages in every state, with content of every kind.
  void fill(test::Desk& store) {
    std::vector<queue::NewMessage> messages(9);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      messages[i].id = "M-" + std::to_string(i);
      messages[i].body = R"({"n":12345678901234567890123456789012345678,"s":"\u00e9"})";
      messages[i].content_type = queue::kJson;
    }
    messages[1].body = std::string("\0\x01\xff", 3);
    messages[1].content_type = queue::kOctetStream;
    messages[2].body = "text\nwith lines";
    messages[2].content_type = queue::kTextPlain;
    messages[3].body = "<a/>";
    messages[3].content_type = "application/xml";
    messages[4].attributes = {{"tenant", "acme"}, {"empty", ""}};
    messages[4].group = "g-1";
    messages[5].delay = 2h;
    messages[6].body = "\"a string\"";
    for (const queue::NewMessage& message : messages) {
      ASSERT_EQ(store.send(kQueue, {&message, 1}, soon()).front().status, queue::SendStatus::sent);
      clock_.advance(1ms);
    }
    const queue::Failure failure{"no route to host", "greeter", "host-1", 3, clock_.wall_now()};
    ASSERT_TRUE(store.dead_letter(kQueue, "M-7", failure, soon()));
    const auto claims = store.claim({kQueue, Half::standard}, 1, 30s, soon());
    ASSERT_EQ(claims->size(), 1U);
    const queue::Completion retry{
        .receipt = claims->front().receipt, .action = queue::CompletionAction::retry, .delay = 1h, .failure = failure};
    ASSERT_EQ(store.settle({kQueue, Half::standard}, {&retry, 1}, soon()).front().status, queue::SettleStatus::applied);
    ASSERT_EQ(store.claim({kQueue, Half::standard}, 1, 1h, soon())->size(), 1U) << "one stays in flight";
  }

  test::FakeClock clock_;
  SeededRandom random_{7};
  test::TempFolder folder_;
};

std::multiset<std::string> sorted(const std::vector<std::string>& lines) { return {lines.begin(), lines.end()}; }

TEST_F(CopyTest, SqliteToSqliteIsTheSameLineForLine) {
  const auto from = sqlite("from.db");
  const auto to = sqlite("to.db");
  fill(*from);
  const auto lines = export_lines(*from);
  ASSERT_EQ(lines.size(), 9U);
  const auto counts = import_lines(*to, lines);
  EXPECT_EQ(counts.imported, 9U);
  EXPECT_EQ(export_lines(*to), lines);
  EXPECT_TRUE(test::broken_invariants(folder_.file("to.db")).empty());
}

TEST_F(CopyTest, SimToSqliteAndBackIsTheSame) {
  test::SimQueues sim_queues(clock_, random_);
  test::Desk sim(sim_queues);
  const auto file = sqlite("between.db");
  test::SimQueues again_queues(clock_, random_);
  test::Desk again(again_queues);
  fill(sim);
  const auto lines = export_lines(sim);
  import_lines(*file, lines);
  import_lines(again, export_lines(*file));
  EXPECT_EQ(sorted(export_lines(again)), sorted(lines));
}

TEST_F(CopyTest, ASecondRunDuplicatesNothingAndChangesNothing) {
  const auto from = sqlite("from.db");
  const auto to = sqlite("to.db");
  fill(*from);
  const auto lines = export_lines(*from);
  import_lines(*to, {lines.begin(), lines.begin() + 4});
  ASSERT_TRUE(to->remove(kQueue, "M-2", soon()));
  ASSERT_TRUE(to->dead_letter(kQueue, "M-1", {}, soon()));
  const auto counts = import_lines(*to, lines);
  EXPECT_EQ(counts.existing, 3U);
  EXPECT_EQ(counts.imported, 6U);
  EXPECT_EQ(to->get(kQueue, "M-1", soon())->half, Half::dlq) << "what is there stays as it is";
}

TEST_F(CopyTest, OnlyTheHalfThatIsAskedForIsWritten) {
  const auto store = sqlite("from.db");
  fill(*store);
  EXPECT_EQ(export_lines(*store, {Half::standard}).size(), 8U);
  const auto dead = export_lines(*store, {Half::dlq});
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_THAT(dead[0], HasSubstr(R"("failure":{"error":"no route to host","attempts":3,"handler":"greeter")"));
}

TEST_F(CopyTest, TheFilterAndTheLimitHold) {
  test::SimQueues store_queues(clock_, random_);
  test::Desk store(store_queues);
  fill(store);
  Exporter exporter(store.oper(kQueue), clock_,
                    {.halves = {Half::standard, Half::dlq},
                     .filter = *Filter::parse("content_type = 'application/json'"),
                     .limit = 2});
  std::string text;
  while (*exporter.step(text, soon())) {
  }
  EXPECT_EQ(exporter.exported(), 2U);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
}

TEST_F(CopyTest, WhatIsInFlightComesInVisibleAndNobodyElseCanSettleIt) {
  const auto store = sqlite("same.db");
  fill(*store);
  const auto held = store->get(kQueue, "M-1", soon());
  ASSERT_EQ(held->state(clock_.wall_now()), queue::MessageState::in_flight);
  const auto lines = export_lines(*store);
  BulkRun purge(store->oper(kQueue), clock_, BulkPlan::removal_of_all(Half::standard));
  while (!purge.complete()) {
    ASSERT_NE(purge.step().state, BulkRun::Step::State::failed);
  }
  import_lines(*store, lines, false);
  const auto back = store->get(kQueue, "M-1", soon());
  EXPECT_EQ(back->state(clock_.wall_now()), queue::MessageState::ready);
  EXPECT_EQ(back->message.attempt, held->message.attempt) << "its attempts count on";
  const queue::Completion stale{
      .receipt = {"M-1", held->version, 0}, .action = queue::CompletionAction::remove, .delay = {}, .failure = {}};
  EXPECT_EQ(store->settle({kQueue, Half::standard}, {&stale, 1}, soon()).front().status, queue::SettleStatus::lost);
  EXPECT_EQ(store->get(kQueue, "M-5", soon())->state(clock_.wall_now()), queue::MessageState::delayed);
  EXPECT_EQ(store->get(kQueue, "M-0", soon())->state(clock_.wall_now()), queue::MessageState::delayed)
      << "it waits for its retry";
}

TEST_F(CopyTest, APageFollowsTheWeightOfTheBodies) {
  const auto store = sqlite("heavy.db");
  std::vector<queue::NewMessage> messages(40);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    messages[i].id = std::to_string(i);
    messages[i].body = std::string(1'000'000, 'x');
  }
  store->send(kQueue, messages, soon());
  Exporter exporter(store->oper(kQueue), clock_, {.halves = {Half::standard}});
  std::string text;
  std::size_t largest_later = 0;
  for (bool more = true, first = true; more; first = false) {
    text.clear();
    more = *exporter.step(text, soon());
    largest_later = first ? 0 : std::max(largest_later, text.size());
  }
  EXPECT_EQ(exporter.exported(), 40U);
  EXPECT_LT(largest_later, 9'000'000U);
}

TEST_F(CopyTest, AStepWritesNoMoreThanItMust) {
  const auto store = sqlite("escaped.db");
  std::vector<queue::NewMessage> messages(12);
  for (std::size_t i = 0; i < messages.size(); ++i) {
    messages[i].id = std::to_string(i);
    messages[i].body = std::string(700'000, '\x01');  // six bytes each in a line
  }
  store->send(kQueue, messages, soon());
  Exporter exporter(store->oper(kQueue), clock_, {.halves = {Half::standard}});
  std::string text;
  for (bool more = true; more;) {
    text.clear();
    more = *exporter.step(text, soon());
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 1);
  }
  EXPECT_EQ(exporter.exported(), 12U);
}

// The importer alone.

std::string line_of(const std::string& id) {
  queue::StoredMessage record;
  record.message.id = id;
  std::string line;
  append_record_line(line, record);
  line.pop_back();
  return line;
}

TEST_F(CopyTest, ABrokenLineIsNamedAndTheOthersGoOn) {
  test::SimQueues store_queues(clock_, random_);
  test::Desk store(store_queues);
  Importer importer(store.oper(kQueue), clock_, {});
  EXPECT_FALSE(importer.add(1, line_of("A")));
  const auto refused = importer.add(2, "{\"half\": ");
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->line, 2U);
  EXPECT_FALSE(importer.add(3, "   \r")) << "an empty line is nothing";
  EXPECT_FALSE(importer.add(4, line_of("B") + "\r")) << "Windows' line ends do no harm";
  ASSERT_TRUE(importer.flush(soon()));
  EXPECT_EQ(importer.counts().imported, 2U);
  EXPECT_EQ(importer.counts().refused, 1U);
}

TEST_F(CopyTest, AnIdTwiceInOneFileIsImportedOnce) {
  test::SimQueues store_queues(clock_, random_);
  test::Desk store(store_queues);
  Importer importer(store.oper(kQueue), clock_, {});
  importer.add(1, line_of("A"));
  importer.add(2, line_of("A"));
  EXPECT_TRUE(importer.full()) << "the second one cannot go in the same batch";
  ASSERT_TRUE(importer.flush(soon()));
  EXPECT_EQ(importer.counts().imported, 1U);
  EXPECT_EQ(importer.counts().existing, 1U);
}

TEST_F(CopyTest, ABatchIsBoundedByTheBytesOfCheckpoints) {
  test::SimQueues store_queues(clock_, random_);
  test::Desk store(store_queues);
  Importer importer(store.oper(kQueue), clock_, {});
  queue::StoredMessage record;
  record.message.checkpoint = std::string(queue::kMostCheckpointBytes, 'x');
  for (std::uint64_t line = 1; line <= 64; ++line) {
    EXPECT_FALSE(importer.full()) << line;
    record.message.id = std::to_string(line);
    std::string text;
    append_record_line(text, record);
    text.pop_back();
    EXPECT_FALSE(importer.add(line, text));
  }
  EXPECT_TRUE(importer.full()) << "they are 4 MiB";
}

TEST_F(CopyTest, ALostAnswerIsAskedForAgain) {
  test::SimQueues store_queues(clock_, random_);
  test::Desk store(store_queues);
  Importer importer(store.oper(kQueue), clock_, {});
  for (std::uint64_t i = 0; i < 10; ++i) {
    importer.add(i + 1, line_of("A-" + std::to_string(i)));
  }
  store_queues.apply_then_fail_next(test::StoreCall::put, 1);
  ASSERT_TRUE(importer.flush(soon()));
  EXPECT_EQ(importer.counts().imported, 10U) << "what the try wrote that was not answered, too";
  EXPECT_EQ(importer.counts().existing, 0U);
  EXPECT_EQ(test::all_ids(store, kQueue).size(), 10U);
}

TEST_F(CopyTest, AStoreThatCannotGoOnEndsTheRunAtALineAndARerunCompletesIt) {
  test::SimQueues store_queues(clock_, random_);
  test::Desk store(store_queues);
  Importer importer(store.oper(kQueue), clock_, {});
  for (std::uint64_t i = 0; i < 10; ++i) {
    importer.add(100 + i, line_of("A-" + std::to_string(i)));
  }
  store_queues.fail_next(test::StoreCall::put, 1, Error(ErrorCode::throttled, "slow down"));
  const auto failed = importer.flush(soon());
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code(), ErrorCode::throttled);
  EXPECT_EQ(importer.unwritten_line(), 100U);
  ASSERT_TRUE(importer.flush(soon())) << "nothing of the batch is lost";
  EXPECT_EQ(importer.counts().imported, 10U);
}

TEST_F(CopyTest, ARecordWithoutAResultIsNotTakenForImported) {
  test::SimQueues store_queues(clock_, random_);
  test::Desk store(store_queues);
  test::ForgetfulOperator forgetful(store.oper(kQueue));
  Importer importer(forgetful, clock_, {});
  importer.add(7, line_of("A-1"));
  importer.add(8, line_of("A-2"));
  const auto failed = importer.flush(soon());
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message(), testing::HasSubstr("gave no result for this message"));
  EXPECT_EQ(importer.counts().imported, 1U);
  EXPECT_EQ(importer.unwritten_line(), 8U);
}

// Tables.

class TableCopyTest : public CopyTest {
 protected:
  void SetUp() override {
    if (test::shared_emulator() == nullptr) {
      GTEST_SKIP() << test::Emulator::absence();
    }
  }

  struct Table {
    std::string name;
    std::unique_ptr<test::EmulatedHost> host;
  };
  Table make() {
    Table table{test::fresh_table_name("copy"), nullptr};
    queue::dynamomq::DynamoMqOptions options;
    options.queues[kQueue].table = table.name;
    table.host = std::make_unique<test::EmulatedHost>(clock_, "worker-a", 1, options);
    test::make_table(table.host->client(), table.name, clock_);
    return table;
  }
  void put(Table& table, dynamo::Item item) {
    dynamo::ItemWrite request;
    request.table = table.name;
    request.item = std::move(item);
    const auto done = table.host->client().write(request, soon());
    ASSERT_TRUE(done) << done.error().message;
  }
  /// Every item of the table as DynamoDB JSON, by id. Nonces are of the write that made them, and differ; a time may
  /// get more digits on the way, because only nine of them sort.
  std::map<std::string, std::string> items(Table& table) {
    std::map<std::string, std::string> found;
    dynamo::ScanRequest request;
    request.table = table.name;
    request.consistent = true;
    auto page = table.host->client().scan(request, soon());
    EXPECT_TRUE(page);
    for (dynamo::Item& item : page->items) {
      item.erase("sluice_nonce");
      for (const char* name : {"created_at", "updated_at", "sent_at"}) {
        const auto* text = dynamo::find<std::string>(item, name);
        if (const auto time = text == nullptr ? std::nullopt : parse_timestamp(*text)) {
          item[name] = format_timestamp(*time);
        }
      }
      found.emplace(*dynamo::find<std::string>(item, "id"), dynamo::encode_item(item));
    }
    return found;
  }
  static dynamo::Item go_item(const std::string& id, dynamo::AttributeValue data) {
    return {{"id", id},
            {"data", std::move(data)},
            {"receive_count", dynamo::AttributeValue::number(0)},
            {"queue_type", "STANDARD"},
            {"version", dynamo::AttributeValue::number(1)},
            {"created_at", "2023-12-01T00:00:00Z"},
            {"updated_at", "2023-12-01T00:00:00.1Z"},
            {"sent_at", "2023-12-01T00:00:00.123456789Z"},
            {"received_at", ""},
            {"invisible_until_at", ""}};
  }
};

TEST_F(TableCopyTest, SqliteToDynamoDbToSqliteKeepsEverything) {
  const auto from = sqlite("from.db");
  const auto to = sqlite("to.db");
  Table table = make();
  fill(*from);
  const auto lines = export_lines(*from);
  EXPECT_EQ(import_lines(table.host->desk(), lines).imported, 9U);
  EXPECT_EQ(import_lines(*to, export_lines(table.host->desk())).imported, 9U);
  for (int i = 0; i < 9; ++i) {
    SCOPED_TRACE(i);
    const auto before = from->get(kQueue, "M-" + std::to_string(i), soon());
    const auto after = to->get(kQueue, "M-" + std::to_string(i), soon());
    ASSERT_TRUE(before);
    ASSERT_TRUE(after);
    EXPECT_EQ(before->message.content_type, after->message.content_type);
    EXPECT_EQ(before->message.attributes, after->message.attributes);
    EXPECT_EQ(before->message.group, after->message.group);
    EXPECT_EQ(before->message.attempt, after->message.attempt);
    EXPECT_EQ(before->message.sent_at, after->message.sent_at);
    EXPECT_EQ(before->version, after->version);
    EXPECT_EQ(before->created_at, after->created_at);
    EXPECT_EQ(before->updated_at, after->updated_at);
    EXPECT_EQ(before->received_at, after->received_at);
    EXPECT_EQ(before->invisible_until, after->invisible_until);
    EXPECT_EQ(before->half, after->half);
    EXPECT_EQ(before->failure.error, after->failure.error);
    EXPECT_EQ(before->failure.failed_at, after->failure.failed_at);
    if (before->message.content_type != queue::kJson) {
      EXPECT_EQ(before->message.body, after->message.body);
    }
  }
  const auto json = to->get(kQueue, "M-8", soon());
  EXPECT_THAT(json->message.body, HasSubstr("12345678901234567890123456789012345678")) << "every digit";
}

TEST_F(TableCopyTest, TableToSqliteToTableIsEqualItemForItem) {
  Table from = make();
  Table to = make();
  const auto between = sqlite("between.db");
  using dynamo::AttributeValue;
  put(from, go_item("plain", "text"));
  put(from, go_item("number", dynamo::Number{"1234567890123456789012345678901234567.8"}));
  put(from, go_item("binary", dynamo::Binary{std::string("\0\xff", 2)}));
  put(from, go_item("null", dynamo::Null{}));
  put(from, go_item("nested", dynamo::Map{{"b", dynamo::Binary{"\x01"}},
                                          {"ss", dynamo::StringSet{{"a", "b"}}},
                                          {"ns", dynamo::NumberSet{{"1", "12345678901234567890123456789012345678"}}},
                                          {"bs", dynamo::BinarySet{{"x", "y"}}},
                                          {"l", dynamo::List{dynamo::Number{"1E-130"}, true, dynamo::Null{}}}}));
  auto foreign = go_item("foreign", dynamo::Map{{"a", dynamo::Number{"1"}}});
  foreign.emplace("ttl", dynamo::Number{"1700000000"});
  foreign.emplace("tags", dynamo::StringSet{{"x"}});
  foreign.emplace("blob", dynamo::Binary{"\xff"});
  put(from, foreign);
  auto odd = go_item("odd", "x");
  odd.erase("version");
  odd["receive_count"] = "many";
  odd["invisible_until_at"] = dynamo::Null{};
  put(from, odd);
  auto dead = go_item("dead", "x");
  dead["queue_type"] = "DLQ";
  put(from, dead);

  const auto lines = export_lines(from.host->desk());
  ASSERT_EQ(lines.size(), 8U);
  import_lines(*between, lines);
  EXPECT_EQ(import_lines(to.host->desk(), export_lines(*between)).imported, 8U);
  const auto before = items(from);
  const auto after = items(to);
  for (const auto& [id, item] : before) {
    ASSERT_TRUE(after.contains(id)) << id;
    EXPECT_EQ(after.at(id), item) << id;
  }
}

TEST_F(TableCopyTest, ImportTakesTwentyFiveRecordsARequest) {
  Table table = make();
  std::vector<std::string> lines;
  lines.reserve(500);
  for (int i = 0; i < 500; ++i) {
    lines.push_back(line_of("A-" + std::to_string(i)));
  }
  table.host->usage().reset();
  EXPECT_EQ(import_lines(table.host->desk(), lines).imported, 500U);
  EXPECT_EQ(table.host->usage().requests(), 20U);
  table.host->usage().reset();
  EXPECT_EQ(export_lines(table.host->desk()).size(), 500U);
  EXPECT_LE(table.host->usage().requests(), 8U) << "pages grow from 16 to 250, and one look at the DLQ";
}

TEST_F(TableCopyTest, ARecordThatNoTableTakesIsRefusedAlone) {
  Table table = make();
  Importer importer(table.host->desk().oper(kQueue), clock_, {});
  queue::StoredMessage huge;
  huge.message.id = "huge";
  huge.message.body = std::string(500'000, 'x');
  std::string line;
  append_record_line(line, huge);
  importer.add(1, line_of("A"));
  importer.add(2, line);
  importer.add(3, line_of("B"));
  const auto refusals = importer.flush(soon());
  ASSERT_TRUE(refusals) << refusals.error().message();
  ASSERT_EQ(refusals->size(), 1U);
  EXPECT_EQ(refusals->front().line, 2U);
  EXPECT_EQ(importer.counts().imported, 2U);
}

}  // namespace
}  // namespace sluice::operate
