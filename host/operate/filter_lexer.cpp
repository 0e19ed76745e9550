#include "host/operate/filter_lexer.hpp"

#include <algorithm>
#include <array>

#include "base/text/decimal.hpp"
#include "base/text/utf8.hpp"
#include "base/timestamp.hpp"
#include "config/config.hpp"

namespace sluice::operate {

namespace {

// Longer ones first.
constexpr std::array<std::string_view, 19> kSymbols{"==", "!=", "<>", "<=", ">=", "&&", "||", "=", "<", ">",
                                                    "~",  "!",  "(",  ")",  "[",  "]",  ",",  ".", "*"};

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }
bool is_space(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

bool begins_word(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
         static_cast<unsigned char>(byte) >= 0x80;
}

bool continues_word(char byte) { return begins_word(byte) || is_digit(byte) || byte == '-'; }

template <typename Predicate>
std::size_t length_of(std::string_view text, Predicate belongs) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), belongs) - text.begin());
}

/// 2026-01-31, with or without a time behind it.
bool begins_time(std::string_view text) { return length_of(text, is_digit) == 4 && text.substr(4).starts_with('-'); }

/// A number with whatever is glued to it, so that 10m and 3x are one word each.
std::size_t numeral_length(std::string_view text) {
  std::size_t length = text.starts_with('-') ? 1 : 0;
  while (length < text.size()) {
    const char byte = text[length];
    const char before = length > 0 ? text[length - 1] : ' ';
    const bool sign = (byte == '+' || byte == '-') && (before == 'e' || before == 'E');
    if (!sign && !is_digit(byte) && !begins_word(byte) && byte != '.') {
      break;
    }
    ++length;
  }
  return length;
}

}  // namespace

std::string_view FilterLexer::take(std::size_t bytes) {
  const std::string_view taken = text_.substr(0, bytes);
  text_.remove_prefix(taken.size());
  column_ += count_utf8(taken);
  return taken;
}

FilterLexer::Token FilterLexer::next() {
  take(length_of(text_, is_space));
  FilterToken token;
  token.column = column_;
  if (text_.empty()) {
    return token;
  }
  const char first = text_.front();
  if (first == '"' || first == '\'') {
    return quoted(std::move(token));
  }
  if (is_digit(first) || (first == '-' && text_.size() > 1 && is_digit(text_[1]))) {
    return numeral(std::move(token));
  }
  if (begins_word(first)) {
    token.kind = FilterToken::Kind::word;
    token.text = take(length_of(text_, continues_word));
    return token;
  }
  return symbol(std::move(token));
}

FilterLexer::Token FilterLexer::quoted(FilterToken token) {
  token.kind = FilterToken::Kind::text;
  const char quote = take(1).front();
  while (!text_.empty() && text_.front() != quote) {
    if (text_.front() != '\\') {
      token.text += take(1);
      continue;
    }
    const std::size_t column = column_;
    take(1);
    const std::string_view escaped = take(1);
    if (escaped == "n" || escaped == "t") {
      token.text += escaped == "n" ? '\n' : '\t';
    } else if (escaped == "*") {
      token.text += "\\*";  // for `like` to tell from a wildcard; elsewhere the parser takes it away
    } else if (escaped == "\\" || escaped == "\"" || escaped == "'") {
      token.text += escaped == "\\" ? std::string_view("\\\\") : escaped;
    } else {
      return FilterError(column, R"(after \ in a text there may be n, t, *, \, " or ')");
    }
  }
  if (text_.empty()) {
    return FilterError(token.column, std::string("the text has no end; close it with ") + quote);
  }
  take(1);
  return token;
}

FilterLexer::Token FilterLexer::numeral(FilterToken token) {
  if (begins_time(text_)) {
    token.kind = FilterToken::Kind::time;
    token.text = take(
        length_of(text_, [](char byte) { return continues_word(byte) || byte == ':' || byte == '.' || byte == '+'; }));
    auto time = parse_timestamp(token.text);
    time = time ? time : parse_timestamp(token.text + "T00:00:00Z");
    if (!time) {
      return FilterError(token.column, token.text + " is no time; write one such as 2026-01-31T12:00:00Z");
    }
    token.time = *time;
    return token;
  }
  token.text = take(numeral_length(text_));
  if (is_json_number(token.text)) {
    token.kind = FilterToken::Kind::number;
    return token;
  }
  const auto duration = config::parse_duration(token.text);
  if (!duration) {
    return FilterError(token.column, "\"" + token.text + "\" is neither a number nor a duration such as 10m");
  }
  token.kind = FilterToken::Kind::duration;
  token.duration = *duration;
  return token;
}

FilterLexer::Token FilterLexer::symbol(FilterToken token) {
  token.kind = FilterToken::Kind::symbol;
  for (const std::string_view known : kSymbols) {
    if (text_.starts_with(known)) {
      token.text = take(known.size());
      return token;
    }
  }
  return FilterError(token.column, "\"" + std::string(take(1)) + "\" has no meaning here");
}

}  // namespace sluice::operate
