#pragma once

#include <cstdint>
#include <string>
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
};

/// A value that has its error already, such as a string with an unset variable: whoever reads it stays silent.
struct BrokenValue {};

/// A TOML value and where it stands.
struct Value {
  Place place;
  std::variant<bool, std::int64_t, double, std::string, Array, Table, ForeignValue, BrokenValue> content;
  bool from_environment = false;  ///< a string into which a `${VAR}` was expanded
};

struct Member {
  std::string key;
  Place place;  ///< of the key
  Value value;
};

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

}  // namespace sluice::config
