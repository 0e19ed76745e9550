#include "tests/support/dynamodb_model/partiql.hpp"

#include <utility>

#include "tests/support/dynamodb_model/failure.hpp"

namespace sluice::test::model {
namespace {

using Kind = Lexer::Kind;

class StatementParser {
 public:
  explicit StatementParser(std::string_view text) : lexer_(text, "Statement"), expressions_(lexer_, used_) {}

  PartiqlStatement parse() {
    if (lexer_.take_word("INSERT")) {
      read_insert();
    } else if (lexer_.take_word("UPDATE")) {
      read_update();
    } else if (lexer_.take_word("DELETE")) {
      out_.kind = PartiqlStatement::Kind::remove;
      lexer_.expect_word("FROM");
      out_.table = name();
      read_where();
      read_returning();
    } else if (lexer_.take_word("SELECT")) {
      read_select();
    } else {
      lexer_.fail();
    }
    if (lexer_.peek().kind != Kind::end) {
      lexer_.fail();
    }
    out_.parameters = expressions_.parameters();
    return std::move(out_);
  }

 private:
  std::string name() {
    if (lexer_.peek().kind != Kind::quoted && lexer_.peek().kind != Kind::word) {
      lexer_.fail();
    }
    return lexer_.take().text;
  }

  void read_insert() {
    out_.kind = PartiqlStatement::Kind::insert;
    lexer_.expect_word("INTO");
    out_.table = name();
    lexer_.expect_word("VALUE");
    lexer_.expect_symbol("{");
    do {
      if (lexer_.peek().kind != Kind::text && lexer_.peek().kind != Kind::quoted) {
        lexer_.fail();
      }
      std::string attribute = lexer_.take().text;
      lexer_.expect_symbol(":");
      out_.inserted.emplace_back(std::move(attribute), expressions_.operand());
    } while (lexer_.take_symbol(","));
    lexer_.expect_symbol("}");
  }

  void read_update() {
    out_.kind = PartiqlStatement::Kind::update;
    out_.table = name();
    while (lexer_.at_word("SET") || lexer_.at_word("REMOVE")) {
      if (lexer_.take_word("SET")) {
        do {
          Update::Action& action = out_.update.set.emplace_back();
          action.path = expressions_.path();
          lexer_.expect_symbol("=");
          action.operand = expressions_.sum();
        } while (lexer_.take_symbol(","));
        continue;
      }
      lexer_.take();
      do {
        out_.update.remove.emplace_back().path = expressions_.path();
      } while (lexer_.take_symbol(","));
    }
    if (out_.update.set.empty() && out_.update.remove.empty()) {
      lexer_.fail();
    }
    read_where();
    read_returning();
  }

  void read_select() {
    out_.kind = PartiqlStatement::Kind::select;
    if (!lexer_.take_symbol("*")) {
      do {
        out_.columns.push_back(expressions_.path());
      } while (lexer_.take_symbol(","));
    }
    lexer_.expect_word("FROM");
    out_.table = name();
    if (lexer_.take_symbol(".")) {
      out_.index = name();
    }
    if (lexer_.at_word("WHERE")) {
      read_where();
    }
    if (lexer_.take_word("ORDER")) {
      lexer_.expect_word("BY");
      name();
      out_.descending = lexer_.take_word("DESC");
      if (!out_.descending) {
        lexer_.take_word("ASC");
      }
    }
  }

  void read_where() {
    lexer_.expect_word("WHERE");
    out_.where = expressions_.condition();
  }

  void read_returning() {
    if (!lexer_.take_word("RETURNING")) {
      return;
    }
    using Returning = PartiqlStatement::Returning;
    const bool all = lexer_.take_word("ALL");
    if (!all) {
      lexer_.expect_word("MODIFIED");
    }
    const bool before = lexer_.take_word("OLD");
    if (!before) {
      lexer_.expect_word("NEW");
    }
    lexer_.expect_symbol("*");
    out_.returning = all ? (before ? Returning::all_old : Returning::all_new)
                         : (before ? Returning::modified_old : Returning::modified_new);
    if (out_.kind == PartiqlStatement::Kind::remove && out_.returning != Returning::all_old) {
      throw validation("DELETE statement only supports RETURNING ALL OLD *");
    }
  }

  Lexer lexer_;
  Used used_;
  ExpressionParser expressions_;
  PartiqlStatement out_;
};

}  // namespace

std::string_view PartiqlStatement::action() const {
  switch (kind) {
    case Kind::insert:
      return "PartiQLInsert";
    case Kind::update:
      return "PartiQLUpdate";
    case Kind::remove:
      return "PartiQLDelete";
    case Kind::select:
      break;
  }
  return "PartiQLSelect";
}

PartiqlStatement parse_statement(std::string_view text) { return StatementParser(text).parse(); }

const Operand* equal_to(const Condition* where, std::string_view attribute) {
  if (where == nullptr) {
    return nullptr;
  }
  if (where->kind == Condition::Kind::all) {
    for (const Condition& child : where->children) {
      if (const Operand* found = equal_to(&child, attribute)) {
        return found;
      }
    }
    return nullptr;
  }
  if (where->kind != Condition::Kind::equal) {
    return nullptr;
  }
  const auto is_attribute = [&](const Operand& operand) {
    return operand.kind == Operand::Kind::path && operand.path.size() == 1 && operand.path.front().name == attribute;
  };
  if (is_attribute(where->operands[0]) && where->operands[1].kind != Operand::Kind::path) {
    return &where->operands[1];
  }
  return is_attribute(where->operands[1]) && where->operands[0].kind != Operand::Kind::path ? &where->operands[0]
                                                                                            : nullptr;
}

}  // namespace sluice::test::model
