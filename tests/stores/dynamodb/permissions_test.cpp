
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <set>

#include "host/stores/dynamodb/table.hpp"
#include "tests/stores/dynamomq/store_on_emulator.hpp"

namespace sluice::queue::dynamodb {
namespace {

using namespace std::chrono_literals;
using Actions = std::set<std::string>;

constexpr const char* kBatch = "BatchExecuteStatement";

Actions sorted(const std::vector<std::string_view>& names) { return {names.begin(), names.end()}; }

Actions actions_of(const boost::json::value& statements) {
  Actions actions;
  for (const auto& statement : statements.as_array()) {
    const std::string text(statement.at("Statement").as_string());
    const std::string verb = text.substr(0, text.find(' '));
    actions.insert("PartiQL" + verb.substr(0, 1) + [&] {
      std::string rest = verb.substr(1);
      std::transform(rest.begin(), rest.end(), rest.begin(), [](char c) { return static_cast<char>(c - 'A' + 'a'); });
      return rest;
    }());
  }
  return actions;
}

/// A transaction needs the right to each of its actions.
Actions transacted(const boost::json::value& items) {
  Actions actions;
  for (const auto& item : items.as_array()) {
    const std::string verb(item.as_object().begin()->key());
    actions.insert(verb == "ConditionCheck" ? "ConditionCheckItem" : verb + "Item");
  }
  return actions;
}

/// What the store asks AWS for, as IAM sees it.
class PermissionsTest : public test::StoreOnEmulator {
 protected:
  void SetUp() override {
    test::StoreOnEmulator::SetUp();
    if (!IsSkipped()) {
      watch({});
    }
  }

  /// Notes every request from now on, and breaks the first of an operation if one is named.
  void watch(const std::string& lost) {
    table_.clear();
    index_.clear();
    auto broken = std::make_shared<bool>(false);
    host().faults().choose([this, lost, broken](const std::string& operation, const std::string& body) {
      const auto request = boost::json::parse(body);
      if (operation == kBatch && !without_batches_) {
        table_.merge(actions_of(request.at("Statements")));
      } else if (operation == "Query" && request.as_object().contains("IndexName")) {
        index_.insert(operation);
      } else if (operation == "TransactWriteItems") {
        table_.merge(transacted(request.at("TransactItems")));
      } else if (operation != kBatch) {
        table_.insert(operation);
      }
      if (operation == kBatch && without_batches_) {
        return test::HttpFault::deny;
      }
      const bool breaks = operation == lost && !*broken;
      *broken = *broken || breaks;
      return breaks ? test::HttpFault::commit_then_reset : test::HttpFault::none;
    });
  }

  void expect_exactly(Role role, WritesBy writes = WritesBy::batches) {
    const Permissions permissions = permissions_of(role, writes);
    EXPECT_EQ(table_, sorted(permissions.table)) << to_string(role);
    EXPECT_EQ(index_, sorted(permissions.index)) << to_string(role);
  }

  std::unique_ptr<NoticeBoard> board() { return *desk().queues().open_board("orders"); }

  std::unique_ptr<wake::WakePlace> wake_place() { return *desk().queues().open_wake_place("orders"); }

  void tell_of_a_host() {
    const auto told = board();
    ASSERT_TRUE(told->post(Topic::hosts, {.key = "h", .text = "{}"}, soon()));
    EXPECT_TRUE(told->read(Topic::steering, {}, soon()));
    EXPECT_TRUE(told->list(Topic::hosts, soon()));
    EXPECT_TRUE(told->take_down(Topic::hosts, "h", 1, soon()));
    const auto rung = wake_place();
    EXPECT_TRUE(rung->announce({.host = "h", .address = "127.0.0.1:1", .queues = {table()}, .every = 60s}, soon()));
    EXPECT_TRUE(rung->withdraw("h", soon()));
  }
  void look_who_is_to_be_rung() { EXPECT_TRUE(wake_place()->read(soon())); }

  void look_at_everything() {
    EXPECT_TRUE(board()->list(Topic::hosts, soon()));
    EXPECT_TRUE(board()->list(Topic::audit, soon()));
    desk().get("orders", "m0", soon());
    desk().list("orders", {.half = standard().half, .limit = 10, .cursor = {}, .content = true, .native = true},
                soon());
    desk().list("orders", {.half = standard().half, .limit = 10, .cursor = {}, .content = false}, soon());
    desk().stats(standard(), soon());
    desk().oper("orders").stats({.half = standard().half, .consistent = true}, soon());
    desk().overview("orders", {.half = standard().half, .ids = 100, .errors = 5}, soon());
    EXPECT_TRUE(check_table(host().client(), spec(), soon()));
    examine_ttl(host().client(), spec(), soon());
  }

  void change_everything() {
    const auto change = [this](const std::string& id, ChangeAction action) {
      const Change made{.id = id, .action = action, .version = {}, .after = 1s, .failure = {}};
      EXPECT_EQ(desk().change("orders", {&made, 1}, soon()).front().status, ChangeStatus::applied);
    };
    change("m0", ChangeAction::set_visibility);
    change("m1", ChangeAction::delay);
    change("m1", ChangeAction::move_to_front);
    change("m2", ChangeAction::dead_letter);
    change("m2", ChangeAction::redrive);
    change("m3", ChangeAction::reset);
    const ContentEdit whole{.path = {std::string("data")}, .json = "{\"a\": 1}"};
    const auto edited = desk().edit("orders", "m3", get("m3").version, {&whole, 1}, soon());
    EXPECT_TRUE(edited) << edited.error().message();
    const std::array<ContentEdit, 3> parts{{{.path = {std::string("data"), std::string("a")}, .json = "2"},
                                            {.path = {std::string("attributes"), std::string("k")}, .json = "\"v\""},
                                            {.path = {std::string("group")}, .json = "\"g\""}}};
    const auto with_more = desk().edit("orders", "m3", edited->version, parts, soon());
    ASSERT_TRUE(with_more) << with_more.error().message();
    // No statement takes more than one attribute away.
    const std::array<ContentEdit, 2> gone{{{.path = parts[1].path, .json = {}}, {.path = parts[2].path, .json = {}}}};
    EXPECT_TRUE(desk().edit("orders", "m3", with_more->version, gone, soon()));
    StoredMessage record = get("m3");
    EXPECT_EQ(desk().put("orders", {&record, 1}, PutMode::replace, soon()).front().status, PutStatus::written);
    const auto again = desk().put("orders", {&record, 1}, PutMode::insert, soon()).front();
    EXPECT_EQ(again.status, PutStatus::exists) << again.error.message();
    record.message.id = "new";
    EXPECT_EQ(desk().put("orders", {&record, 1}, PutMode::insert, soon()).front().status, PutStatus::written);
    change("m4", ChangeAction::remove);
    EXPECT_GT(purge(), 0U);
  }

  TableSpec spec() const {
    TableSpec spec;
    spec.table = table();
    return spec;
  }

  /// Does what a host does. Each kind of write once with its answer lost, which is when the host reads back.
  void work_as_a_host(const std::string& lost);

  bool without_batches_ = false;
  Actions table_;
  Actions index_;
};

void PermissionsTest::work_as_a_host(const std::string& lost) {
  send(8);
  watch(lost);
  const auto claims = claim(6);
  ASSERT_EQ(claims.size(), 6U);
  std::vector<Receipt> receipts;
  receipts.reserve(claims.size());
  for (const Delivery& claim : claims) {
    receipts.push_back(claim.receipt);
  }
  auto held = claims;
  const auto extended = desk().extend(standard(), receipts, 60s, soon());
  for (std::size_t i = 0; i < held.size(); ++i) {
    ASSERT_EQ(extended[i].status, SettleStatus::applied);
    held[i].receipt = extended[i].receipt;
  }
  const std::array<CompletionAction, 4> actions{CompletionAction::remove, CompletionAction::retry,
                                                CompletionAction::release, CompletionAction::dead_letter};
  for (std::size_t i = 0; i < actions.size(); ++i) {
    EXPECT_EQ(applied(settle(desk(), {held[i]}, actions[i])), 1U);
  }
  desk().stats(standard(), soon());
  desk().oper("orders").stats({.half = standard().half, .consistent = true}, soon());  // whether it is empty
  tell_of_a_host();
}

TEST_F(PermissionsTest, AHostClaimsExtendsAndSettles) {
  work_as_a_host(kBatch);
  expect_exactly(Role::host);
}

TEST_F(PermissionsTest, WithoutPartiQlTheSameByRequestsOfTheirOwn) {
  without_batches_ = true;
  watch({});
  work_as_a_host("UpdateItem");
  expect_exactly(Role::host, WritesBy::singles);
  watch("PutItem");
  send(3, 20, "n");
  look_who_is_to_be_rung();
  expect_exactly(Role::producer, WritesBy::singles);
  watch("UpdateItem");
  send(3, 20, "o");
  look_at_everything();
  desk().remove("orders", "n0", soon());
  StoredMessage record = get("n1");
  EXPECT_EQ(desk().put("orders", {&record, 1}, PutMode::replace, soon()).front().status, PutStatus::written);
  desk().dead_letter("orders", "n2", {}, soon());
  expect_exactly(Role::operations, WritesBy::singles);
}

TEST_F(PermissionsTest, AProducerSends) {
  watch("BatchExecuteStatement");
  send(3);
  send(2, 20, "n");
  const NewMessage keyed{.id = "k", .body = "x", .dedup_id = "order 7", .unique_key = "order 7"};
  EXPECT_EQ(desk().send("orders", {&keyed, 1}, soon()).front().status, SendStatus::sent);
  const NewMessage again{.id = "l", .body = "x", .dedup_id = "order 7", .unique_key = "order 7"};
  EXPECT_EQ(desk().send("orders", {&again, 1}, soon()).front().status, SendStatus::deduplicated);
  look_who_is_to_be_rung();
  expect_exactly(Role::producer);
}

TEST_F(PermissionsTest, AReaderLooks) {
  send(3);
  ASSERT_TRUE(board()->post(Topic::hosts, {.key = "h", .text = "{}"}, soon()));
  watch({});
  look_at_everything();
  expect_exactly(Role::reader);
}

TEST_F(PermissionsTest, AnOperatorDoesWhatTheCommandsDo) {
  watch("BatchExecuteStatement");
  send(6);
  ASSERT_EQ(claim(1).size(), 1U);
  look_at_everything();
  change_everything();
  EXPECT_TRUE(board()->post(Topic::steering, {.text = "{}"}, soon()));
  EXPECT_TRUE(board()->take_down(Topic::steering, {}, 1, soon()));
  const auto keys = *desk().queues().open_keys("orders");
  EXPECT_TRUE(keys->list({}, 10, {}, soon()));
  EXPECT_TRUE(keys->forget("job", "order 7", soon()));
  expect_exactly(Role::operations);
}

TEST_F(PermissionsTest, SetupMakesTheTable) {
  watch({});
  TableSpec made;
  made.table = test::fresh_table_name("permitted");
  ASSERT_TRUE(create_queue_table(host().client(), made, clock(), soon()));
  EXPECT_FALSE(switch_ttl_on(host().client(), made, soon()));
  EXPECT_FALSE(examine_ttl(host().client(), made, soon())) << "it is on";
  expect_exactly(Role::setup);
}

TEST(Permissions, RolesHaveTheirNames) {
  for (const Role role : kRoles) {
    EXPECT_EQ(role_of(to_string(role)), role);
  }
  EXPECT_EQ(to_string(Role::operations), "operator");
  EXPECT_FALSE(role_of("admin"));
  EXPECT_FALSE(role_of(""));
}

}  // namespace
}  // namespace sluice::queue::dynamodb
