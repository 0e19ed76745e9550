#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/config.hpp"

namespace sluice::config {

struct Value;
struct Member;

using Array = std::vector<Value>;
/// The members of a table, in the order of their names.
using Table = std::vector<Member>;

/// A kind of TOML value that hardly a key of ours takes, such as "a date".
struct ForeignValue {
  const char* kind = "";
  std::string text{};  ///< of a date: "2026-11-01"

  friend bool operator==(const ForeignValue&, const ForeignValue&) = default;
};

/// A value that has its error already, such as a string with an unset variable: whoever reads it stays silent.
struct BrokenValue {
  friend bool operator==(const BrokenValue&, const BrokenValue&) = default;
};

/// A TOML value and where it stands.
struct Value {
  Place place;
  std::variant<bool, std::int64_t, double, std::string, Array, Table, ForeignValue, BrokenValue> content;
  bool from_environment = false;  ///< a string into which a `${VAR}` was expanded

  /// Whether both say the same, wherever they have it from.
  bool operator==(const Value& other) const;
};

struct Member {
  std::string key;
  Place place;  ///< of the key
  Value value;

  bool operator==(const Member&) const = default;
};

inline bool Value::operator==(const Value& other) const { return content == other.content; }

/// A file's tree, and what is wrong with values in it that can be read past.
struct Document {
  Table root;
  std::vector<ConfigError> errors;
};

/// "a string", "an integer", "a table" and so on: how an error calls a value.
const char* kind_of(const Value& value);

/// Reads TOML and expands `${VAR}` in every string of it. Errors instead of a tree only for a text without syntax.
/// The one boundary of toml++. Any text is answered: text that is not UTF-8, and text beyond the limits, with an error.
Parsed<Document> parse_document(const std::string& text, const std::string& file, const Environment& environment);

/// What became of one string.
struct Expansion {
  std::string text;
  std::string error;  ///< empty when all went well
  bool from_environment = false;
};

/// Expands `${VAR}`, `${VAR:-default}` and `${VAR:?message}` as a shell does: the last two act when the variable is
/// unset or empty, and a default may itself hold expansions. `$${` stands for `${`; a `$` before anything else is a
/// `$`.
Expansion expand(const std::string& text, const Environment& environment);

/// What makes the bytes no text that a TOML parser should see, if anything does: not UTF-8, a zero byte, a line beyond
/// the limit, or a character outside ASCII that stands neither in a string nor in a comment.
std::optional<ConfigError> check_text(const std::string& text, const std::string& file);

/// What a person meant where the TOML parser stopped, at the place where it is to be mended: a text without quotes, a
/// key or a table that is there twice. Nothing for other slips. `at` is where the parser stopped, and `complaint` what
/// it said.
std::optional<ConfigError> syntax_hint(std::string_view text, const Place& at, std::string_view complaint);

}  // namespace sluice::config
