#include "host/stores/dynamodb/permissions.hpp"

#include <algorithm>

namespace sluice::queue::dynamodb {
namespace {

/// What a role may do, where writes are PartiQL statements; actions with blanks between them.
struct RoleActions {
  Role role;
  std::string_view name;
  std::string_view on_table;  ///< of DynamoMQ's layout
  std::string_view on_index;
  std::string_view leased;  ///< on a table of the leased layout
};

// Writes of hosts are PartiQL statements; BatchGetItem finds out what became of a write whose answer was lost, and what
// time it is. GetItem, PutItem, UpdateItem and DeleteItem are for the board on which hosts tell of themselves, and how
// they are woken, and read what operators want. Scan is for looks that must not lag behind, such as whether a queue is
// empty. What has a deduplication id or a unique key, and what handlers and schedules send, is put in a transaction,
// which asks for PutItem. A producer reads which hosts are to be woken: an item of DynamoMQ's table, a partition of a
// leased one.
constexpr std::array<RoleActions, kRoles.size()> kActions{{
    {Role::host, "host", "BatchGetItem DeleteItem GetItem PartiQLDelete PartiQLUpdate PutItem Scan UpdateItem", "Query",
     "BatchGetItem ConditionCheckItem DeleteItem GetItem PartiQLDelete PartiQLUpdate PutItem Query UpdateItem"},
    {Role::producer, "producer", "BatchGetItem GetItem PartiQLInsert PutItem", "",
     "BatchGetItem ConditionCheckItem GetItem PartiQLInsert PutItem Query"},
    {Role::reader, "reader", "BatchGetItem DescribeTable DescribeTimeToLive GetItem Scan", "Query",
     "BatchGetItem DescribeTable DescribeTimeToLive GetItem Query Scan"},
    {Role::operations, "operator",
     "BatchGetItem BatchWriteItem DescribeTable DescribeTimeToLive GetItem PartiQLDelete PartiQLInsert PartiQLUpdate "
     "PutItem Scan UpdateItem",
     "Query",
     "BatchGetItem ConditionCheckItem DeleteItem DescribeTable DescribeTimeToLive GetItem PartiQLDelete PartiQLInsert "
     "PartiQLUpdate PutItem Query Scan UpdateItem"},
    {Role::setup, "setup", "CreateTable DescribeTable DescribeTimeToLive UpdateTimeToLive", "",
     "CreateTable DescribeTable DescribeTimeToLive UpdateTimeToLive"},
    {Role::effects, "effects", "ConditionCheckItem DeleteItem PutItem UpdateItem", "",
     "ConditionCheckItem DeleteItem PutItem UpdateItem"},
}};

const RoleActions& actions_of(Role role) { return kActions.at(static_cast<std::size_t>(role)); }

// The action that takes its place where every write is a request of its own.
std::string_view alone(std::string_view action) {
  return action == "PartiQLInsert"   ? "PutItem"
         : action == "PartiQLUpdate" ? "UpdateItem"
         : action == "PartiQLDelete" ? "DeleteItem"
                                     : action;
}

std::vector<std::string_view> listed(std::string_view actions, WritesBy writes) {
  std::vector<std::string_view> list;
  while (!actions.empty()) {
    const std::string_view action = actions.substr(0, actions.find(' '));
    actions.remove_prefix(std::min(actions.size(), action.size() + 1));
    list.push_back(writes == WritesBy::singles ? alone(action) : action);
  }
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

}  // namespace

std::string_view to_string(Role role) { return actions_of(role).name; }

std::optional<Role> role_of(std::string_view name) {
  const auto* const found =
      std::find_if(kActions.begin(), kActions.end(), [&](const RoleActions& role) { return role.name == name; });
  return found == kActions.end() ? std::nullopt : std::optional(found->role);
}

Permissions permissions_of(Role role, WritesBy writes) {
  return {listed(actions_of(role).on_table, writes), listed(actions_of(role).on_index, writes)};
}

Permissions leased_permissions_of(Role role, WritesBy writes) { return {listed(actions_of(role).leased, writes), {}}; }

}  // namespace sluice::queue::dynamodb
