#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "host/queue/message.hpp"
#include "host/stores/sqlite/connection.hpp"

namespace sluice::queue::sqlite {

/// Attributes as stored: netstrings, name and value in turn ("5:trace,3:abc,"), which keep any bytes and can be read by
/// eye. Empty attributes are no bytes at all.
std::string encode_attributes(const Attributes& attributes);
/// Nothing for bytes that `encode_attributes` does not make.
std::optional<Attributes> decode_attributes(std::string_view bytes);

/// The error text of a failure is cut to this many bytes, at the border of a UTF-8 character.
inline constexpr std::size_t kErrorLimit = 4096;
/// The same of an attempt before the last one.
inline constexpr std::size_t kEarlierErrorLimit = 120;
/// A failure as stored: five netstrings, two more with the spans of its attempt, and six for each one before.
/// Unreadable bytes are shown as an error text instead of being an error.
std::string encode_failure(const Failure& failure);
Failure decode_failure(std::string_view bytes);

/// A count that has outgrown its type stays at the end: beginning anew, it would hide a message tried too often.
inline std::uint32_t loaded_count(std::int64_t count) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(count, 0, std::numeric_limits<std::uint32_t>::max()));
}

/// What most messages have is stored as NULL.
inline std::optional<std::string_view> unless(std::string_view usual, const std::string& text) {
  return text == usual ? std::nullopt : std::optional<std::string_view>(text);
}

inline std::optional<Blob> unless_empty(const std::string& bytes) {
  return bytes.empty() ? std::nullopt : std::optional<Blob>(Blob{bytes});
}

}  // namespace sluice::queue::sqlite
