#include <array>
#include <optional>
#include <utility>

#include "tests/support/dynamodb_model/expressions.hpp"
#include "tests/support/dynamodb_model/failure.hpp"
#include "tests/support/dynamodb_model/numbers.hpp"
#include "tests/support/dynamodb_model/reserved_words.hpp"

namespace sluice::test::model {
namespace {

using Kind = Lexer::Kind;

template <typename Enum>
struct Function {
  std::string_view name;
  Enum kind;
  std::size_t arguments;
};

constexpr std::array<Function<Condition::Kind>, 5> kConditionFunctions = {{
    {"attribute_exists", Condition::Kind::exists, 1},
    {"attribute_not_exists", Condition::Kind::not_exists, 1},
    {"attribute_type", Condition::Kind::has_type, 2},
    {"begins_with", Condition::Kind::begins_with, 2},
    {"contains", Condition::Kind::contains, 2},
}};
constexpr std::array<Function<Operand::Kind>, 5> kOperandFunctions = {{
    {"size", Operand::Kind::size, 1},
    {"if_not_exists", Operand::Kind::if_not_exists, 2},
    {"list_append", Operand::Kind::list_append, 2},
    {"set_add", Operand::Kind::set_add, 2},
    {"set_delete", Operand::Kind::set_delete, 2},
}};

std::optional<Condition::Kind> comparator(const std::string& symbol) {
  using K = Condition::Kind;
  static constexpr std::array<std::pair<std::string_view, K>, 7> kAll = {{{"=", K::equal},
                                                                          {"<>", K::differs},
                                                                          {"!=", K::differs},
                                                                          {"<", K::less},
                                                                          {"<=", K::at_most},
                                                                          {">", K::greater},
                                                                          {">=", K::at_least}}};
  for (const auto& [text, kind] : kAll) {
    if (text == symbol) {
      return kind;
    }
  }
  return std::nullopt;
}

template <typename Tree, typename Read>
Parsed<Tree> parse_all(std::string_view text, std::string_view language, Read read) {
  if (text.empty()) {
    throw validation("Invalid " + std::string(language) + ": The expression can not be empty;");
  }
  Parsed<Tree> out;
  Lexer lexer(text, language);
  ExpressionParser parser(lexer, out.used);
  read(lexer, parser, out.tree);
  if (lexer.peek().kind != Kind::end) {
    lexer.fail();
  }
  return out;
}

void read_actions(Lexer& lexer, ExpressionParser& parser, std::vector<Update::Action>& actions, bool assigned) {
  if (!actions.empty()) {
    throw validation("Invalid UpdateExpression: The clause can only be used once in an update expression;");
  }
  do {
    Update::Action& action = actions.emplace_back();
    action.path = parser.path();
    if (assigned) {
      action.operand = parser.operand();
    }
  } while (lexer.take_symbol(","));
}

void read_update(Lexer& lexer, ExpressionParser& parser, Update& update) {
  while (lexer.peek().kind != Kind::end) {
    if (lexer.take_word("SET")) {
      if (!update.set.empty()) {
        throw validation(
            "Invalid UpdateExpression: The \"SET\" section can only be used once in an update expression;");
      }
      do {
        Update::Action& action = update.set.emplace_back();
        action.path = parser.path();
        lexer.expect_symbol("=");
        action.operand = parser.sum();
      } while (lexer.take_symbol(","));
    } else if (lexer.take_word("REMOVE")) {
      read_actions(lexer, parser, update.remove, false);
    } else if (lexer.take_word("ADD")) {
      read_actions(lexer, parser, update.add, true);
    } else if (lexer.take_word("DELETE")) {
      read_actions(lexer, parser, update.erase, true);
    } else {
      lexer.fail();
    }
  }
}

}  // namespace

Parsed<Condition> parse_condition(std::string_view text, std::string_view language) {
  return parse_all<Condition>(text, language,
                              [](Lexer&, ExpressionParser& parser, Condition& tree) { tree = parser.condition(); });
}

Parsed<Update> parse_update(std::string_view text) { return parse_all<Update>(text, "UpdateExpression", read_update); }

Parsed<std::vector<Path>> parse_projection(std::string_view text) {
  return parse_all<std::vector<Path>>(text, "ProjectionExpression",
                                      [](Lexer& lexer, ExpressionParser& parser, std::vector<Path>& paths) {
                                        do {
                                          paths.push_back(parser.path());
                                        } while (lexer.take_symbol(","));
                                      });
}

Condition ExpressionParser::condition() {
  Condition first = conjunction();
  if (!lexer_.at_word("OR")) {
    return first;
  }
  Condition out{Condition::Kind::any, {}, {}};
  out.children.push_back(std::move(first));
  while (lexer_.take_word("OR")) {
    out.children.push_back(conjunction());
  }
  return out;
}

Condition ExpressionParser::conjunction() {
  Condition first = negation();
  if (!lexer_.at_word("AND")) {
    return first;
  }
  Condition out{Condition::Kind::all, {}, {}};
  out.children.push_back(std::move(first));
  while (lexer_.take_word("AND")) {
    out.children.push_back(negation());
  }
  return out;
}

Condition ExpressionParser::negation() {
  if (lexer_.take_word("NOT")) {
    Condition out{Condition::Kind::negate, {}, {}};
    out.children.push_back(negation());
    return out;
  }
  return primary();
}

Condition ExpressionParser::primary() {
  if (lexer_.take_symbol("(")) {
    Condition inner = condition();
    lexer_.expect_symbol(")");
    return inner;
  }
  for (const auto& [name, kind, arguments] : kConditionFunctions) {
    if (lexer_.take_word(name)) {
      return function(kind, arguments);
    }
  }
  return comparison();
}

Condition ExpressionParser::function(Condition::Kind kind, std::size_t arguments) {
  Condition out{kind, {}, {}};
  lexer_.expect_symbol("(");
  for (std::size_t i = 0; i < arguments; ++i) {
    if (i > 0) {
      lexer_.expect_symbol(",");
    }
    out.operands.push_back(operand());
  }
  lexer_.expect_symbol(")");
  return out;
}

Condition ExpressionParser::comparison() {
  Operand left = operand();
  if (lexer_.take_word("IS")) {
    return is_missing(std::move(left));
  }
  Condition out;
  out.operands.push_back(std::move(left));
  if (lexer_.take_word("BETWEEN")) {
    out.kind = Condition::Kind::between;
    out.operands.push_back(operand());
    lexer_.expect_word("AND");
    out.operands.push_back(operand());
    return out;
  }
  if (lexer_.take_word("IN")) {
    out.kind = Condition::Kind::in;
    const bool bracket = partiql() && lexer_.take_symbol("[");
    if (!bracket) {
      lexer_.expect_symbol("(");
    }
    do {
      out.operands.push_back(operand());
    } while (lexer_.take_symbol(","));
    lexer_.expect_symbol(bracket ? "]" : ")");
    return out;
  }
  const auto kind = lexer_.peek().kind == Kind::symbol ? comparator(lexer_.peek().text) : std::nullopt;
  if (!kind) {
    lexer_.fail();
  }
  lexer_.take();
  out.kind = *kind;
  out.operands.push_back(operand());
  return out;
}

Condition ExpressionParser::is_missing(Operand left) {
  const bool negated = lexer_.take_word("NOT");
  Condition out;
  if (lexer_.take_word("MISSING")) {
    out.kind = negated ? Condition::Kind::exists : Condition::Kind::not_exists;
    out.operands.push_back(std::move(left));
    return out;
  }
  lexer_.expect_word("NULL");
  out.kind = negated ? Condition::Kind::differs : Condition::Kind::equal;
  out.operands.push_back(std::move(left));
  Operand null;
  null.kind = Operand::Kind::literal;
  out.operands.push_back(std::move(null));
  return out;
}

Operand ExpressionParser::sum() {
  Operand left = operand();
  const bool plus = lexer_.take_symbol("+");
  if (!plus && !lexer_.take_symbol("-")) {
    return left;
  }
  Operand out;
  out.kind = plus ? Operand::Kind::plus : Operand::Kind::minus;
  out.arguments.push_back(std::move(left));
  out.arguments.push_back(operand());
  return out;
}

Operand ExpressionParser::operand() {
  Operand out;
  const Lexer::Token& token = lexer_.peek();
  if (token.kind == Kind::value && !partiql()) {
    out.kind = Operand::Kind::value;
    out.name = lexer_.take().text;
    used_.values.insert(out.name);
    return out;
  }
  if (token.kind == Kind::parameter && partiql()) {
    lexer_.take();
    out.kind = Operand::Kind::parameter;
    out.parameter = parameters_++;
    return out;
  }
  if (partiql() && token.kind == Kind::text) {
    out.kind = Operand::Kind::literal;
    out.literal = lexer_.take().text;
    return out;
  }
  if (partiql() && (token.kind == Kind::number || (token.kind == Kind::symbol && token.text == "-"))) {
    return number();
  }
  if (partiql() && (lexer_.at_word("true") || lexer_.at_word("false") || lexer_.at_word("null"))) {
    out.kind = Operand::Kind::literal;
    out.literal = lexer_.at_word("null") ? dynamo::AttributeValue() : dynamo::AttributeValue(lexer_.at_word("true"));
    lexer_.take();
    return out;
  }
  for (const auto& [name, kind, arguments] : kOperandFunctions) {
    if (lexer_.at_word(name)) {
      return call(kind, arguments);
    }
  }
  out.path = path();
  return out;
}

Operand ExpressionParser::number() {
  std::string text = lexer_.take_symbol("-") ? "-" : "";
  if (lexer_.peek().kind != Kind::number) {
    lexer_.fail();
  }
  text += lexer_.take().text;
  if (lexer_.take_symbol(".")) {
    text += "." + lexer_.take().text;
  }
  Operand out;
  out.kind = Operand::Kind::literal;
  out.literal = dynamo::Number{canonical_number(text)};
  return out;
}

Operand ExpressionParser::call(Operand::Kind kind, std::size_t arguments) {
  Operand out;
  out.kind = kind;
  lexer_.take();
  lexer_.expect_symbol("(");
  for (std::size_t i = 0; i < arguments; ++i) {
    if (i > 0) {
      lexer_.expect_symbol(",");
    }
    out.arguments.push_back(operand());
  }
  lexer_.expect_symbol(")");
  return out;
}

Path ExpressionParser::path() {
  Path out;
  do {
    const Lexer::Token token = lexer_.peek();
    const bool placeholder = token.kind == Kind::name && !partiql();
    if (!placeholder && token.kind != Kind::word && !(partiql() && token.kind == Kind::quoted)) {
      lexer_.fail();
    }
    if (token.kind == Kind::word && !partiql() && is_reserved_word(token.text)) {
      throw validation("Invalid " + lexer_.language() +
                       ": Attribute name is a reserved keyword; reserved keyword: " + token.text);
    }
    if (placeholder) {
      used_.names.insert(token.text);
    }
    out.push_back({lexer_.take().text, placeholder, -1});
    while (lexer_.take_symbol("[")) {
      if (lexer_.peek().kind != Kind::number) {
        lexer_.fail();
      }
      out.push_back({"", false, std::stoi(lexer_.take().text.substr(0, 8))});
      lexer_.expect_symbol("]");
    }
  } while (lexer_.take_symbol("."));
  return out;
}

}  // namespace sluice::test::model
