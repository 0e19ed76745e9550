#pragma once

#include <string>
#include <string_view>

#include "dynamo/transport/http_transport.hpp"

namespace sluice::dynamo {

/// The first header of that name, letters in either case, or null. Lives as long as `headers`.
const std::string* find_header(const Headers& headers, std::string_view name);

}  // namespace sluice::dynamo
