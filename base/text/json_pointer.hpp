#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/text/json_reader.hpp"

namespace sluice {

/// A value in a JSON text. A value.
struct JsonScalar {
  JsonReader::Kind kind = JsonReader::Kind::nothing;
  std::string text;  ///< a string's characters, a number or truth value as it is written; of anything else empty
};

/// What an RFC 6901 pointer leads to in a text that is JSON; nothing: it leads nowhere. Pure, thread-safe.
std::optional<JsonScalar> json_at(std::string_view json, std::string_view pointer);

}  // namespace sluice
