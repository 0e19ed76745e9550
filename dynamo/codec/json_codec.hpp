#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "base/text/json_reader.hpp"
#include "dynamo/attribute_value.hpp"
#include "dynamo/error.hpp"

namespace sluice::dynamo {

/// DynamoDB's own JSON: every value an object of one member that names its type, such as {"S":"text"} or {"N":"1"}.
///
/// Pure functions, thread-safe. Encoding cannot fail: bytes that are not UTF-8 become U+FFFD, as JSON has no way to
/// carry them (binary has its own type, which goes as base64).

/// Deepest nesting of values that a decoder follows. DynamoDB itself stores 32 levels.
inline constexpr std::size_t kMaxValueDepth = 64;
/// The longest text of one item: 400 KB whose every byte is escaped or wrapped, with room to spare.
inline constexpr std::size_t kMaxItemJsonBytes = 16u << 20;

/// Appends elements with commas between them, in brackets; `append` appends one.
template <typename Elements, typename Append>
void append_joined(std::string& out, std::string_view brackets, const Elements& elements, Append append) {
  out.push_back(brackets.front());
  bool first = true;
  for (const auto& element : elements) {
    if (!first) {
      out.push_back(',');
    }
    first = false;
    append(element);
  }
  out.push_back(brackets.back());
}

std::string encode_item(const Item& item);
/// The same, appended to what is being built.
void append_item(std::string& out, const Item& item);
void append_value(std::string& out, const AttributeValue& value);
/// An object of names by their placeholders, "#n" to the attribute's name; for expressions.
void append_names(std::string& out, const std::map<std::string, std::string>& names);

/// Reads one item, and nothing after it. ErrorKind::malformed_response with the place for anything that is not exactly
/// DynamoDB JSON: unknown types, several types in one value, an attribute named twice, text in place of base64, a
/// number that is none, too deep or too long. Lone surrogates and bad UTF-8 in strings become U+FFFD, so that whatever
/// comes out is UTF-8 and no odd item can block a queue.
Result<Item> decode_item(std::string_view json);

/// How deep the JSON of a response goes: two levels a value, and the wrapping around items.
inline constexpr std::size_t kMaxJsonDepth = 2 * kMaxValueDepth + 16;

/// Read an item, or one value, at the reader's place; strict as decode_item. False when the reader has failed.
bool read_item(JsonReader& reader, Item& item);
bool read_value(JsonReader& reader, AttributeValue& value);

/// Values as plain JSON text, the way users see them: {"order":1} instead of {"M":{"order":{"N":"1"}}}.
///
/// Pure functions, thread-safe.

/// Deepest level of a value that DynamoDB stores: a bare scalar is at level 1, the elements of a list one below it.
inline constexpr std::size_t kMaxPlainJsonDepth = 32;
/// Longest text that is read: far beyond the 400 KB of an item, so that what is too large fails with DynamoDB's reason.
inline constexpr std::size_t kMaxPlainJsonBytes = 16u << 20;

/// Cannot fail. Numbers keep all their digits, binary is a base64 string, sets are arrays in their order, map keys are
/// sorted by bytes, bytes that are not UTF-8 become U+FFFD. No white space.
std::string to_plain_json(const AttributeValue& value);
void append_plain_json(std::string& out, const AttributeValue& value);

/// Reads one JSON value, and nothing after it: objects to M, arrays to L, numbers to N with their text, strings,
/// booleans and null. ErrorKind::validation, one line with line and column, for what is not JSON (RFC 8259, UTF-8),
/// names a key twice, is nested deeper than kMaxPlainJsonDepth, or holds a number that DynamoDB cannot: more than 38
/// significant digits, or a magnitude outside 1E-130 to 9.9...E+125.
Result<AttributeValue> from_plain_json(std::string_view json);

/// Why DynamoDB could not hold this number, such as "it has 40 significant digits and DynamoDB keeps 38"; empty when it
/// can. `text` is a JSON number.
std::string number_objection(std::string_view text);

}  // namespace sluice::dynamo
