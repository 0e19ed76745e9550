#include "tests/support/dynamodb_model/lexer.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "tests/support/dynamodb_model/failure.hpp"

namespace sluice::test::model {
namespace {

bool starts_word(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool goes_on(char c) { return starts_word(c) || (c >= '0' && c <= '9'); }

bool same_word(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

}  // namespace

Lexer::Token Lexer::take() {
  Token out = std::move(token_);
  advance();
  return out;
}

bool Lexer::take_symbol(std::string_view symbol) {
  if (token_.kind != Kind::symbol || token_.text != symbol) {
    return false;
  }
  advance();
  return true;
}

bool Lexer::at_word(std::string_view keyword) const {
  return token_.kind == Kind::word && same_word(token_.text, keyword);
}

bool Lexer::take_word(std::string_view keyword) {
  if (!at_word(keyword)) {
    return false;
  }
  advance();
  return true;
}

void Lexer::expect_symbol(std::string_view symbol) {
  if (!take_symbol(symbol)) {
    fail();
  }
}

void Lexer::expect_word(std::string_view keyword) {
  if (!take_word(keyword)) {
    fail();
  }
}

void Lexer::fail() const {
  if (language_ == "Statement") {
    throw validation("Statement wasn't well formed, can't be processed: Unexpected " +
                     (token_.kind == Kind::end ? std::string("end") : "token: " + token_.text));
  }
  const std::string token = token_.kind == Kind::end ? "<EOF>" : std::string(text_.substr(start_, at_ - start_));
  constexpr std::size_t kNear = 12;
  const std::size_t from = start_ > kNear ? start_ - kNear : 0;
  throw validation("Invalid " + language_ + ": Syntax error; token: \"" + token + "\", near: \"" +
                   std::string(text_.substr(from, at_ + kNear - from)) + "\"");
}

void Lexer::advance() {
  while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) {
    ++at_;
  }
  start_ = at_;
  if (at_ == text_.size()) {
    token_ = {};
    return;
  }
  const char c = text_[at_];
  const bool placeholder = (c == '#' || c == ':') && at_ + 1 < text_.size() && goes_on(text_[at_ + 1]);
  if (placeholder || goes_on(c)) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && goes_on(text_[end])) {
      ++end;
    }
    const bool digits = c >= '0' && c <= '9';
    token_.kind = c == '#' ? Kind::name : (c == ':' ? Kind::value : (digits ? Kind::number : Kind::word));
    token_.text = text_.substr(at_, end - at_);
    at_ = end;
    return;
  }
  if (c == '"' || c == '\'') {
    read_quoted(c);
    return;
  }
  read_symbol();
}

void Lexer::read_quoted(char quote) {
  token_ = {quote == '"' ? Kind::quoted : Kind::text, ""};
  while (++at_ < text_.size()) {
    if (text_[at_] != quote) {
      token_.text.push_back(text_[at_]);
    } else if (at_ + 1 < text_.size() && text_[at_ + 1] == quote) {
      token_.text.push_back(quote);
      ++at_;
    } else {
      ++at_;
      return;
    }
  }
  token_.kind = Kind::bad;
}

void Lexer::read_symbol() {
  constexpr std::array<std::string_view, 4> kDouble = {"<>", "<=", ">=", "!="};
  constexpr std::string_view kSingle = "=<>()[]{},.+-*:";
  const std::string_view two = text_.substr(at_, 2);
  const bool is_double = std::find(kDouble.begin(), kDouble.end(), two) != kDouble.end();
  token_ = {Kind::symbol, std::string(is_double ? two : two.substr(0, 1))};
  if (token_.text == "?") {
    token_.kind = Kind::parameter;
  } else if (!is_double && kSingle.find(token_.text) == std::string_view::npos) {
    token_.kind = Kind::bad;
  }
  at_ += token_.text.size();
}

}  // namespace sluice::test::model
