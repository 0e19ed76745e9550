#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dynamo/attribute_value.hpp"

namespace sluice::dynamo {

/// One of several writes that are made together or not at all.
struct TransactAction {
  enum class Kind { put, update, remove, check };

  Kind kind = Kind::put;
  std::string table;
  Item item_or_key;    ///< the whole item of a put, the key otherwise
  std::string update;  ///< UpdateExpression, of an update
  std::string condition;
  std::map<std::string, std::string> names;
  Item values;
  bool return_old = false;  ///< where its condition fails, the reason holds the item as it is
};

/// At most kMostActions, of as many distinct items.
struct TransactWriteRequest {
  std::vector<TransactAction> actions;
  /// ClientRequestToken, 1 to 36 bytes: within ten minutes the same request is carried out once. Empty: none.
  std::string token;
};
inline constexpr std::size_t kMostActions = 100;

/// Why one action stood in the way; "None" for those that did not.
struct CancellationReason {
  std::string code;       ///< "ConditionalCheckFailed", "TransactionConflict", ...
  Item item;              ///< with `return_old`
  std::string message{};  ///< one line; may be empty
};

/// Reads the reasons of a TransactionCanceledException, in the order of the actions; nothing for another text.
std::vector<CancellationReason> decode_cancellation(std::string_view body);
std::string encode(const TransactWriteRequest& request);

}  // namespace sluice::dynamo
