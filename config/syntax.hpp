#pragma once

#include <optional>
#include <string>
#include <string_view>

/// The small grammars that values in configuration files obey, and how values appear in errors.
namespace sluice::config {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Of ASCII's control characters one is in it.
bool has_control(std::string_view text);

/// At most 64 bytes of the text, made visible, for a value inside an error.
std::string abridged(std::string_view text);

/// A variable as a `${...}` names it.
struct Reference {
  std::string name;
  bool colon = false;  ///< stands before the sign: a variable that is set and empty counts as unset
  char sign = 0;       ///< '-': the word where it is unset; '+': where it is set; '?': unset is an error; 0: no sign
  std::string word{};  ///< behind the sign; it may hold references again
};
/// Of what stands between the braces; nothing where that is no such thing.
std::optional<Reference> parse_reference(std::string_view inside);

/// Where the brace is that belongs to the `${` before `begin`, or npos.
std::size_t closing_brace(std::string_view text, std::size_t begin);
/// How many characters at the text's start are a variable's name.
std::size_t variable_name_length(std::string_view text);

// Each check answers what the text must be (to follow "must be "), or nothing when it is that.

/// Names of queues, jobs and handlers: 1 to 128 of letters, digits, '_', '-' and '.', beginning with a letter or digit.
const char* name_complaint(const std::string& text);
/// A DynamoDB table or index name.
const char* table_complaint(const std::string& text);
/// A host's own name: 1 to 255 visible characters.
const char* host_name_complaint(const std::string& text);
/// "host:port" with the host a name, an IPv4 address or an IPv6 address in brackets; or empty.
const char* listen_complaint(const std::string& text);
/// "http://host[:port]" or "https://host[:port]", or empty.
const char* endpoint_complaint(const std::string& text);
/// An AWS region, or empty.
const char* region_complaint(const std::string& text);
/// A path in the file system that a person may mean.
const char* path_complaint(const std::string& text);
/// A path whose last component may hold '*' and '?'.
const char* pattern_complaint(const std::string& text);

}  // namespace sluice::config
