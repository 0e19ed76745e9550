#pragma once

#include <string>
#include <string_view>

namespace sluice::dynamo {

/// SHA-1 in lower-case hex. Only for the names of AWS's own cache files; no security rests on it.
std::string sha1_hex(std::string_view text);

}  // namespace sluice::dynamo
