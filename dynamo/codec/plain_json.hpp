#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "dynamo/attribute_value.hpp"
#include "dynamo/error.hpp"

namespace sluice::dynamo {

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
