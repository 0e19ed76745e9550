// Batches of sends, which the embedded store puts down with a few statements each: nothing in one disturbs the others.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "tests/stores/sqlite/sqlite_rig.hpp"
#include "tests/support/fake_clock.hpp"

namespace sluice::test {
namespace {

using std::chrono_literals::operator""s;
using queue::NewMessage;
using queue::SendStatus;
using ::testing::ElementsAre;

class BulkSendTest : public ::testing::Test {
 public:
  ~BulkSendTest() override {
    store_.reset();
    EXPECT_EQ(broken_invariants(file_), std::vector<std::string>{});
  }

 protected:
  void open(const queue::SqliteOptions& options = {}) { store_ = open_store(file_, clock_, random_, options); }
  std::vector<queue::SendResult> send(const std::vector<NewMessage>& messages) {
    return store_->send("orders", messages, Deadline::never());
  }
  static std::vector<SendStatus> statuses(const std::vector<queue::SendResult>& results) {
    std::vector<SendStatus> all;
    all.reserve(results.size());
    for (const auto& result : results) {
      all.push_back(result.status);
    }
    return all;
  }
  queue::StoredMessage get(const std::string& id) {
    auto found = store_->get("orders", id, Deadline::never());
    EXPECT_TRUE(found) << id;
    return found ? std::move(*found) : queue::StoredMessage();
  }

  TempFolder folder_;
  const std::string file_ = folder_.file("store.db");
  FakeClock clock_;
  SeededRandom random_{1};
  std::unique_ptr<StoreDesk> store_;
};

// More than one transaction takes, one of them refused; and a repetition finds what there is.
TEST_F(BulkSendTest, FreshIdsAreKeptAndFoundByARepetition) {
  open({.max_body_bytes = 1000});
  std::vector<NewMessage> messages;
  messages.reserve(8'003);
  for (int number = 0; number < 8'003; ++number) {
    messages.push_back({.id = "fresh-" + std::to_string(number), .body = std::to_string(number)});
  }
  messages[8'001].body = std::string(2000, 'x');
  messages[8'002].id.clear();
  const auto results = store_->sender("orders").send_fresh(messages, Deadline::never());
  ASSERT_EQ(results.size(), messages.size());
  for (const std::size_t number : {0U, 7'999U, 8'000U}) {
    EXPECT_EQ(results[number].status, SendStatus::sent);
    EXPECT_EQ(results[number].id, messages[number].id);
    EXPECT_EQ(get(messages[number].id).message.body, messages[number].body);
  }
  EXPECT_EQ(results[8'001].status, SendStatus::failed);
  EXPECT_EQ(results[8'001].id, "fresh-8001");
  EXPECT_EQ(results[8'002].id.size(), 36U) << "one that has none gets one";
  messages.erase(messages.begin() + 1, messages.begin() + 8'000);
  messages.resize(2);
  EXPECT_THAT(statuses(send(messages)), ElementsAre(SendStatus::duplicate_id, SendStatus::duplicate_id));
}

TEST_F(BulkSendTest, EachMessageKeepsWhatIsItsOwn) {
  open();
  const std::string bytes("\0\xFF'\0", 4);
  const auto results = send({{.id = "plain"},
                             {.id = "full",
                              .body = bytes,
                              .content_type = "application/json",
                              .attributes = {{"k", "v"}, {"", bytes}},
                              .group = "g"},
                             {.id = {}, .body = "unnamed", .content_type = ""},
                             {.id = "late", .body = "later", .delay = 10s}});
  EXPECT_THAT(statuses(results), ElementsAre(SendStatus::sent, SendStatus::sent, SendStatus::sent, SendStatus::sent));
  const queue::Message plain = get("plain").message;
  EXPECT_EQ(plain.body, "");
  EXPECT_EQ(plain.content_type, queue::kTextPlain);
  EXPECT_EQ(plain.group, "");
  EXPECT_TRUE(plain.attributes.empty());
  const queue::Message full = get("full").message;
  EXPECT_EQ(full.body, bytes);
  EXPECT_EQ(full.content_type, "application/json");
  EXPECT_EQ(full.attributes, (queue::Attributes{{"k", "v"}, {"", bytes}}));
  EXPECT_EQ(full.group, "g");
  EXPECT_EQ(get(results[2].id).message.content_type, "");
  EXPECT_EQ(get("late").message.sent_at, clock_.wall_now() + 10s);
  EXPECT_EQ(store_->claim({"orders"}, 10, 30s, Deadline::never())->size(), 3U);
  clock_.advance(11s);
  EXPECT_EQ(store_->claim({"orders"}, 10, 30s, Deadline::never())->at(0).message.id, "late");
}

TEST_F(BulkSendTest, MessagesOfOneBatchStayInItsOrder) {
  open();
  std::vector<NewMessage> batch(9000);
  for (std::size_t i = 0; i < batch.size(); ++i) {
    batch[i].id = i % 3 == 0 ? std::string() : "n" + std::to_string(i);
    batch[i].body = std::to_string(i);
  }
  send(batch);
  std::size_t next = 0;
  while (next < batch.size()) {
    const auto claims = store_->claim({"orders"}, 1000, 30s, Deadline::never());
    ASSERT_TRUE(claims);
    ASSERT_FALSE(claims->empty());
    for (const queue::Delivery& claim : *claims) {
      ASSERT_EQ(claim.message.body, std::to_string(next++));
    }
  }
}

TEST_F(BulkSendTest, DuplicatesAreFoundInABatchOfAnySize) {
  open();
  send({{.id = "stored"}});
  std::vector<NewMessage> batch(8000, NewMessage{.id = "same"});
  batch[100].id = "stored";
  batch[7999].id = "last";
  const auto results = send(batch);
  std::size_t sent = 0;
  for (const auto& result : results) {
    sent += result.status == SendStatus::sent ? 1U : 0U;
  }
  EXPECT_EQ(sent, 2U);
  EXPECT_EQ(results[0].status, SendStatus::sent);
  EXPECT_EQ(results[100].status, SendStatus::duplicate_id);
  EXPECT_EQ(results[7999].status, SendStatus::sent);
  EXPECT_EQ(store_->stats({"orders"}, Deadline::never())->ready, 3U);
  EXPECT_THAT(statuses(send({{.id = "same"}, {.id = "stored"}})),
              ElementsAre(SendStatus::duplicate_id, SendStatus::duplicate_id));
}

TEST_F(BulkSendTest, ABatchThatDoesNotFitIsRefusedAsAWhole) {
  open({.path = {}, .max_file_bytes = 600 * 1024});
  ASSERT_EQ(send({{.id = "first", .body = "kept"}})[0].status, SendStatus::sent);
  for (int round = 0; round < 3; ++round) {
    for (const auto& result :
         send(std::vector<NewMessage>(4000, NewMessage{.id = {}, .body = std::string(300, 'x')}))) {
      ASSERT_EQ(result.status, SendStatus::failed);
      ASSERT_EQ(result.error.code(), ErrorCode::full) << result.error.message();
    }
    EXPECT_EQ(all_ids(*store_, "orders"), std::vector<std::string>{"first"});
  }
  for (const auto& result : send(std::vector<NewMessage>(500, NewMessage{.id = {}, .body = std::string(300, 'x')}))) {
    EXPECT_EQ(result.status, SendStatus::sent) << "a smaller one fits";
  }
}

TEST_F(BulkSendTest, SendersAtOneTimeShareATransactionAndKeepTheirIds) {
  open();
  constexpr int kThreads = 4;
  std::vector<std::vector<queue::SendResult>> results(kThreads);
  {
    std::vector<std::jthread> senders;
    senders.reserve(kThreads);
    for (int i = 0; i < kThreads; ++i) {
      senders.emplace_back([this, i, &results] {
        for (int round = 0; round < 20; ++round) {
          for (auto& result : send({{.id = "shared" + std::to_string(round)}, {.id = {}, .body = std::to_string(i)}})) {
            results[static_cast<std::size_t>(i)].push_back(std::move(result));
          }
        }
      });
    }
  }
  std::size_t sent = 0;
  for (const auto& of_thread : results) {
    for (const auto& result : of_thread) {
      sent += result.status == SendStatus::sent ? 1U : 0U;
    }
  }
  EXPECT_EQ(sent, 20U + kThreads * 20U) << "each shared id went in once";
  EXPECT_EQ(all_ids(*store_, "orders").size(), sent);
}

}  // namespace
}  // namespace sluice::test
