#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "dynamo/error.hpp"
#include "dynamo/transport/http_transport.hpp"

namespace sluice::dynamo {

/// CRC-32 as zlib and DynamoDB compute it.
std::uint32_t crc32(std::string_view bytes);

/// Checks a body, as it came over the wire, against x-amz-crc32. Nothing when it fits or when there is no such header;
/// else ErrorKind::malformed_response with `outcome_unknown`, as the request did reach the server. Pure.
std::optional<Error> check_crc32(const Headers& headers, std::string_view body);

}  // namespace sluice::dynamo
