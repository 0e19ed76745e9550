#pragma once

#include <string>
#include <string_view>

#include "dynamo/attribute_value.hpp"

/// Items of a queue's table that are no messages: notices, idempotency keys, marks. Each is found by an id of its own.
namespace sluice::queue::table {

/// How a layout keys them. A value; the views are of literals.
struct LoneNames {
  std::string_view hash;
  std::string_view range{};  ///< empty: the table has no sort key; otherwise theirs is `alone`
  std::string_view alone{};
  std::string_view expires;  ///< N, s since 1970: the table's attribute for TTL

  /// The primary key of the item with this id.
  dynamo::Item key(std::string id) const {
    dynamo::Item key{{std::string(hash), std::move(id)}};
    if (!range.empty()) {
      key.emplace(range, alone);
    }
    return key;
  }
  /// The id of an item; empty: it has none.
  std::string id_of(const dynamo::Item& item) const {
    const auto* id = dynamo::find<std::string>(item, hash);
    return id == nullptr ? std::string() : *id;
  }
};

}  // namespace sluice::queue::table
