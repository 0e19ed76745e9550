#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "host/operate/filter.hpp"

namespace sluice::operate {

struct FilterToken {
  enum class Kind { end, word, text, number, duration, time, symbol };

  Kind kind = Kind::end;
  std::string text;  ///< as written; of a quoted text its characters
  WallTime time{};
  Duration duration{};
  std::size_t column = 1;  ///< of its first character, from 1
};

/// Cuts a filter's text into tokens.
class FilterLexer {
 public:
  explicit FilterLexer(std::string_view text) : text_(text) {}

  /// The next token; `end` again and again at the end.
  boost::system::result<FilterToken, FilterError> next();

 private:
  using Token = boost::system::result<FilterToken, FilterError>;

  Token quoted(FilterToken token);
  Token numeral(FilterToken token);
  Token symbol(FilterToken token);
  /// Takes so many bytes and returns them.
  std::string_view take(std::size_t bytes);

  std::string_view text_;  // what is left
  std::size_t column_ = 1;
};

}  // namespace sluice::operate
