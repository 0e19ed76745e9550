#pragma once

#include <map>
#include <string>
#include <vector>

#include "dynamo/attribute_value.hpp"

namespace sluice::dynamo {

/// A write of one item: made alone, or together with others in a transaction.
struct ItemWrite {
  /// A check writes nothing; it is a part of transactions only.
  enum class Kind { put, update, remove, check };

  Kind kind = Kind::put;
  std::string table;
  Item item;                                 ///< the whole item of a put, the key otherwise
  std::string update;                        ///< UpdateExpression, of an update
  std::string condition;                     ///< ConditionExpression; empty: none
  std::map<std::string, std::string> names;  ///< ExpressionAttributeNames
  Item values;                               ///< ExpressionAttributeValues
  /// Made alone, it answers with the item as an update leaves it, and as it was before a put or a removal.
  bool returning = false;
};
using TransactAction = ItemWrite;

/// Actions that are made together or not at all: at most kMostActions, of as many distinct items.
struct TransactWriteRequest {
  std::vector<TransactAction> actions;
  /// ClientRequestToken, 1 to 36 bytes: within ten minutes the same request is carried out once. Empty: none.
  std::string token;
};
inline constexpr std::size_t kMostActions = 100;

}  // namespace sluice::dynamo
