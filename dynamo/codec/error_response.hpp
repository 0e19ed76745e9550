#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dynamo/error.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::dynamo {

/// Text of anybody's making as one line of valid UTF-8 without control characters, at most kMaxErrorText bytes.
std::string one_line(std::string_view text);

/// Whether a failure of that name (or, when it says nothing, that HTTP status) leaves open if the request took effect.
bool may_have_taken_effect(std::string_view exception_name, int status);

/// CRC-32 as zlib and DynamoDB compute it.
std::uint32_t crc32(std::string_view bytes);

/// Checks a body, as it came over the wire, against x-amz-crc32. Nothing when it fits or when there is no such header;
/// else ErrorKind::malformed_response with `outcome_unknown`, as the request did reach the server. Pure.
std::optional<Error> check_crc32(const Headers& headers, std::string_view body);

/// The first header of that (lower-case) name, its own letters in either case, or null. Lives as long as `headers`.
const std::string* find_header(const Headers& headers, std::string_view name);

}  // namespace sluice::dynamo
