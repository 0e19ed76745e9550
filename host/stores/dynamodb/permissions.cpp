#include "host/stores/dynamodb/permissions.hpp"

#include <algorithm>

namespace sluice::queue::dynamodb {
namespace {

constexpr std::array<std::string_view, kRoles.size()> kNames{"host",     "producer", "reader",
                                                             "operator", "setup",    "effects"};

Permissions with_batches(Role role) {
  // Writes of hosts are PartiQL statements; BatchGetItem finds out what became of a write whose answer was lost, and
  // what time it is. GetItem, PutItem, UpdateItem and DeleteItem are for the board on which hosts tell of themselves,
  // and how they are woken, and read what operators want. Scan is for looks that must not lag behind, such as whether a
  // queue is empty.
  switch (role) {
    case Role::host:
      return {
          {"BatchGetItem", "DeleteItem", "GetItem", "PartiQLDelete", "PartiQLUpdate", "PutItem", "Scan", "UpdateItem"},
          {"Query"}};
    case Role::producer:
      // What has a deduplication id or a unique key is put in a transaction; GetItem reads which hosts are to be woken.
      return {{"BatchGetItem", "GetItem", "PartiQLInsert", "PutItem"}, {}};
    case Role::reader:
      return {{"BatchGetItem", "DescribeTable", "DescribeTimeToLive", "GetItem", "Scan"}, {"Query"}};
    case Role::operations:
      return {{"BatchGetItem", "BatchWriteItem", "DescribeTable", "DescribeTimeToLive", "GetItem", "PartiQLDelete",
               "PartiQLInsert", "PartiQLUpdate", "PutItem", "Scan", "UpdateItem"},
              {"Query"}};
    case Role::setup:
      return {{"CreateTable", "DescribeTable", "DescribeTimeToLive", "UpdateTimeToLive"}, {}};
    case Role::effects:
      break;
  }
  return {{"ConditionCheckItem", "DeleteItem", "PutItem", "UpdateItem"}, {}};
}

Permissions leased_with_batches(Role role) {
  switch (role) {
    case Role::host:
      // What handlers and schedules send goes in transactions, which ask for PutItem.
      return {{"BatchGetItem", "ConditionCheckItem", "DeleteItem", "GetItem", "PartiQLDelete", "PartiQLUpdate",
               "PutItem", "Query", "UpdateItem"},
              {}};
    case Role::producer:
      // Query reads which hosts are to be woken: the heartbeats are one partition.
      return {{"BatchGetItem", "ConditionCheckItem", "GetItem", "PartiQLInsert", "PutItem", "Query"}, {}};
    case Role::reader:
      return {{"BatchGetItem", "DescribeTable", "DescribeTimeToLive", "GetItem", "Query", "Scan"}, {}};
    case Role::operations:
      return {{"BatchGetItem", "ConditionCheckItem", "DeleteItem", "DescribeTable", "DescribeTimeToLive", "GetItem",
               "PartiQLDelete", "PartiQLInsert", "PartiQLUpdate", "PutItem", "Query", "Scan", "UpdateItem"},
              {}};
    default:
      return with_batches(role);
  }
}

// The action that takes its place where every write is a request of its own.
std::string_view alone(std::string_view action) {
  return action == "PartiQLInsert"   ? "PutItem"
         : action == "PartiQLUpdate" ? "UpdateItem"
         : action == "PartiQLDelete" ? "DeleteItem"
                                     : action;
}

}  // namespace

std::string_view to_string(Role role) { return kNames.at(static_cast<std::size_t>(role)); }

std::optional<Role> role_of(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) {
    return std::nullopt;
  }
  return kRoles.at(static_cast<std::size_t>(found - kNames.begin()));
}

namespace {

Permissions alone_if(WritesBy writes, Permissions permissions) {
  if (writes == WritesBy::singles) {
    for (std::string_view& action : permissions.table) {
      action = alone(action);
    }
    std::sort(permissions.table.begin(), permissions.table.end());
    permissions.table.erase(std::unique(permissions.table.begin(), permissions.table.end()), permissions.table.end());
  }
  return permissions;
}

}  // namespace

Permissions permissions_of(Role role, WritesBy writes) { return alone_if(writes, with_batches(role)); }

Permissions leased_permissions_of(Role role, WritesBy writes) { return alone_if(writes, leased_with_batches(role)); }

}  // namespace sluice::queue::dynamodb
