#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Pieces of SQL that hold text of others.
namespace sluice::queue::outbox::mysql {

/// `name`, with what it may hold doubled.
std::string identifier(std::string_view name);
/// A text as bytes, in digits: nothing in it can be taken for SQL, whatever the server's modes.
std::string bytes_literal(std::string_view text);
/// The same as characters.
std::string text_literal(std::string_view text);
/// The exact bytes of a column's text, so that neither its character set nor its collation makes two texts equal.
std::string exact(std::string_view column);
/// "1,2,3"
std::string list_of(std::span<const std::int64_t> numbers);
std::string list_of(std::span<const std::uint32_t> numbers);
/// Bytes literals, separated by commas.
std::string list_of(const std::vector<std::string>& texts);

}  // namespace sluice::queue::outbox::mysql
