#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/dynamodb_model/expressions.hpp"
#include "tests/support/dynamodb_model/storage.hpp"

namespace sluice::test::model {

/// A PartiQL statement taken apart. Values are parameters and literals.
struct PartiqlStatement {
  enum class Kind { insert, update, remove, select };
  enum class Returning { nothing, all_new, all_old, modified_new, modified_old };

  Kind kind = Kind::select;
  std::string table;
  std::string index;                                      ///< of SELECT ... FROM "table"."index"
  std::vector<std::pair<std::string, Operand>> inserted;  ///< of INSERT
  Update update;                                          ///< of UPDATE
  std::optional<Condition> where;
  std::vector<Path> columns;  ///< of SELECT; empty: *
  bool descending = false;    ///< ORDER BY ... DESC
  Returning returning = Returning::nothing;
  std::size_t parameters = 0;

  bool writes() const { return kind != Kind::select; }
  /// What an IAM policy calls it: "PartiQLInsert", ...
  std::string_view action() const;
};

/// Throws a Failure for what is no statement.
PartiqlStatement parse_statement(std::string_view text);

/// The operands that a WHERE sets equal to attributes at its top level (joined by AND); null when it says nothing so
/// plain about the attribute.
const Operand* equal_to(const Condition* where, std::string_view attribute);

}  // namespace sluice::test::model
