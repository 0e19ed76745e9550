#pragma once

#include <cstddef>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dynamo/attribute_value.hpp"
#include "tests/support/dynamodb_model/lexer.hpp"

/// What expressions and PartiQL statements say, as trees. Trees hold placeholders and no values, so that one tree
/// serves all requests with the same text.
namespace sluice::test::model {

struct PathStep {
  std::string name;          ///< of an attribute or map member; with '#' when it is a placeholder
  bool placeholder = false;  ///< looked up in ExpressionAttributeNames
  int index = -1;            ///< of a list's element: the name is then empty
};
using Path = std::vector<PathStep>;

struct Operand {
  enum class Kind {
    path,
    value,      ///< `name` in ExpressionAttributeValues
    parameter,  ///< `parameter` of a statement
    literal,
    size,
    if_not_exists,
    list_append,
    set_add,
    set_delete,
    plus,
    minus,
  };
  Kind kind = Kind::path;
  Path path;
  std::string name;
  std::size_t parameter = 0;
  dynamo::AttributeValue literal;
  std::vector<Operand> arguments;
};

struct Condition {
  enum class Kind {
    equal,
    differs,
    less,
    at_most,
    greater,
    at_least,
    between,
    in,
    exists,
    not_exists,
    has_type,
    begins_with,
    contains,
    all,     ///< AND
    any,     ///< OR
    negate,  ///< NOT
  };
  Kind kind = Kind::all;
  std::vector<Operand> operands;
  std::vector<Condition> children;
};

struct Update {
  struct Action {
    Path path;
    Operand operand;  ///< of nothing for REMOVE
  };
  std::vector<Action> set;
  std::vector<Action> remove;
  std::vector<Action> add;
  std::vector<Action> erase;  ///< DELETE: elements of sets
};

/// Placeholders that an expression names.
struct Used {
  std::set<std::string, std::less<>> names;
  std::set<std::string, std::less<>> values;
};

template <typename Tree>
struct Parsed {
  Tree tree;
  Used used;
};

// Each throws a Failure with DynamoDB's words. `language` is "ConditionExpression", "FilterExpression", ...
Parsed<Condition> parse_condition(std::string_view text, std::string_view language);
Parsed<Update> parse_update(std::string_view text);
Parsed<std::vector<Path>> parse_projection(std::string_view text);

/// The grammar that both languages share, on a lexer of either.
class ExpressionParser {
 public:
  ExpressionParser(Lexer& lexer, Used& used) : lexer_(lexer), used_(used) {}

  Condition condition();
  Operand operand();
  /// An operand, or two of them with + or - between.
  Operand sum();
  Path path();
  std::size_t parameters() const { return parameters_; }

 private:
  Condition conjunction();
  Condition negation();
  Condition primary();
  Condition comparison();
  Condition is_missing(Operand left);
  Condition function(Condition::Kind kind, std::size_t arguments);
  Operand call(Operand::Kind kind, std::size_t arguments);
  Operand number();
  bool partiql() const { return lexer_.language() == "Statement"; }

  Lexer& lexer_;
  Used& used_;
  std::size_t parameters_ = 0;
};

}  // namespace sluice::test::model
