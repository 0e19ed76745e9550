#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::test::model {

/// Splits DynamoDB's two languages, expressions and PartiQL, into words. A value type; the text is borrowed.
class Lexer {
 public:
  enum class Kind {
    end,
    word,       ///< attribute or keyword
    name,       ///< #name
    value,      ///< :value
    quoted,     ///< "name" of PartiQL, without its quotes
    text,       ///< 'text' of PartiQL, without its quotes
    number,     ///< digits
    parameter,  ///< ?
    symbol,     ///< one of = <> < <= > >= ( ) [ ] { } , . + - * : !=
    bad,        ///< a character that neither language has
  };
  struct Token {
    Kind kind = Kind::end;
    std::string text;
  };

  /// `language` goes into messages: "ConditionExpression", "Statement", ...
  Lexer(std::string_view text, std::string_view language) : text_(text), language_(language) { advance(); }

  const Token& peek() const { return token_; }
  Token take();
  /// Passes the token when it is that symbol.
  bool take_symbol(std::string_view symbol);
  /// The same for a keyword, in any case.
  bool take_word(std::string_view keyword);
  bool at_word(std::string_view keyword) const;
  void expect_symbol(std::string_view symbol);
  void expect_word(std::string_view keyword);
  /// Throws the syntax error of this place, in the words of the language.
  [[noreturn]] void fail() const;
  const std::string& language() const { return language_; }

 private:
  void advance();
  void read_symbol();
  void read_quoted(char quote);

  std::string_view text_;
  std::string language_;
  std::size_t at_ = 0;
  std::size_t start_ = 0;
  Token token_;
};

}  // namespace sluice::test::model
