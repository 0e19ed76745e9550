#include <map>

#include "tests/contract/order_contract.hpp"

// Priorities: each has its turns by weight, none starves, and within one the oldest goes first.
namespace sluice::test {

using queue::CompletionAction;
using queue::NewMessage;
using queue::Priority;
using ::testing::ElementsAre;
using ::testing::SizeIs;

namespace {

std::vector<NewMessage> messages(const std::string& prefix, Priority priority, int count) {
  std::vector<NewMessage> made;
  made.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    made.push_back({.id = prefix + std::to_string(i), .body = "x", .priority = priority});
  }
  return made;
}

/// The ids that begin with this letter.
std::vector<std::string> of(const std::vector<std::string>& ids, char letter) {
  std::vector<std::string> some;
  for (const std::string& id : ids) {
    if (id.front() == letter) {
      some.push_back(id);
    }
  }
  return some;
}

}  // namespace

TEST_P(PriorityContract, TurnsGoByWeightAndNoneStarves) {
  for (const auto& [prefix, priority] : std::map<std::string, Priority>{
           {"l", Priority::low}, {"n", Priority::normal}, {"h", Priority::high}, {"c", Priority::critical}}) {
    for (const auto& sent : desk().send(queue_name(), messages(prefix, priority, 30), soon())) {
      EXPECT_EQ(sent.status, queue::SendStatus::sent) << sent.error.message();
    }
    clock().advance(1ms);
  }
  std::vector<std::string> order;
  for (int i = 0; i < 15; ++i) {
    const auto one = claim(standard(), 1);
    ASSERT_THAT(one, SizeIs(1));
    order.push_back(one.front().message.id);
    EXPECT_EQ(one.front().message.priority, get(order.back()).message.priority);
    EXPECT_EQ(settle(standard(), one.front().receipt, CompletionAction::remove), queue::SettleStatus::applied);
  }
  EXPECT_THAT(of(order, 'c'), ElementsAre("c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"));
  EXPECT_THAT(of(order, 'h'), ElementsAre("h0", "h1", "h2", "h3"));
  EXPECT_THAT(of(order, 'n'), ElementsAre("n0", "n1"));
  EXPECT_THAT(of(order, 'l'), ElementsAre("l0"));
  const auto many = claim(standard(), 15);
  EXPECT_THAT(of(ids_of(many), 'l'), SizeIs(1)) << "a batch is shared in the same way";
  EXPECT_THAT(of(ids_of(many), 'c'), SizeIs(8));
  EXPECT_THAT(claim(standard(), 200), SizeIs(90));
}

TEST_P(PriorityContract, WeightsAreTheJobs) {
  desk().send(queue_name(), messages("n", Priority::normal, 40), soon());
  desk().send(queue_name(), messages("l", Priority::low, 40), soon());
  const auto some = ids_of(claim_as(standard(), {.max = 10, .rules = {.weights = {1, 1, 1, 4}}}).deliveries);
  EXPECT_THAT(of(some, 'l'), SizeIs(8));
  EXPECT_THAT(of(some, 'n'), SizeIs(2));
}

TEST_P(PriorityContract, APriorityStaysWithItsMessage) {
  const NewMessage urgent{.id = "u", .body = "x", .priority = Priority::critical};
  const NewMessage later{.id = "d", .body = "x", .delay = 5s, .priority = Priority::low};
  desk().send(queue_name(), std::span(&urgent, 1), soon());
  desk().send(queue_name(), std::span(&later, 1), soon());
  EXPECT_EQ(settle(standard(), claim_one(standard()).receipt, CompletionAction::retry), queue::SettleStatus::applied);
  clock().advance(1ms);
  claim_and_die(standard());
  const auto suspect = claim_one(standard());
  EXPECT_TRUE(suspect.suspect);
  EXPECT_EQ(suspect.message.priority, Priority::critical);
  EXPECT_EQ(settle(standard(), suspect.receipt, CompletionAction::dead_letter, {}, failure("no")),
            queue::SettleStatus::applied);
  EXPECT_EQ(get("u").message.priority, Priority::critical);
  EXPECT_EQ(claim_one(dlq()).message.priority, Priority::critical);
  clock().advance(60s);
  EXPECT_EQ(change({.id = "u", .action = queue::ChangeAction::redrive}).status, queue::ChangeStatus::applied);
  std::map<std::string, Priority> seen;
  for (const auto& delivery : claim(standard(), 10)) {
    seen.emplace(delivery.message.id, delivery.message.priority);
  }
  EXPECT_EQ(seen, (std::map<std::string, Priority>{{"u", Priority::critical}, {"d", Priority::low}}));
}

TEST_P(PriorityContract, AMessageIsListedCountedAndEditedWhateverItsPriority) {
  for (const auto& [id, priority] :
       std::map<std::string, Priority>{{"1", Priority::low}, {"2", Priority::critical}, {"3", Priority::normal}}) {
    const NewMessage message{.id = id, .body = "x", .priority = priority};
    desk().send(queue_name(), std::span(&message, 1), soon());
    clock().advance(1ms);
  }
  std::vector<std::string> ids;
  for (const auto& stored : list_all(standard())) {
    ids.push_back(stored.message.id);
  }
  EXPECT_THAT(ids, ElementsAre("1", "2", "3"));
  EXPECT_EQ(stats(standard()).ready, 3U);
  const auto edited = edit("3", {{.path = {std::string("priority")}, .json = "\"high\""}});
  ASSERT_TRUE(edited) << edited.error().message();
  EXPECT_EQ(edited->message.priority, Priority::high);
  EXPECT_FALSE(edit("3", {{.path = {std::string("priority")}, .json = "\"urgent\""}}));
  auto copy = get("2");
  copy.message.id = "4";
  EXPECT_EQ(desk().put(queue_name(), std::span(&copy, 1), queue::PutMode::insert, soon()).front().status,
            queue::PutStatus::written);
  EXPECT_EQ(get("4").message.priority, Priority::critical);
  EXPECT_EQ(change({.id = "1", .action = queue::ChangeAction::remove}).status, queue::ChangeStatus::applied);
  EXPECT_THAT(ids_of(claim(standard(), 10)), ::testing::UnorderedElementsAre("2", "3", "4"));
}

}  // namespace sluice::test
