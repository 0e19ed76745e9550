#pragma once

#include <string>
#include <string_view>

namespace sluice::dynamo {

/// Text of anybody's making as one line of valid UTF-8 without control characters, at most kMaxErrorText bytes.
std::string one_line(std::string_view text);

/// Whether a failure of that name (or, when it says nothing, that HTTP status) leaves open if the request took effect.
bool may_have_taken_effect(std::string_view exception_name, int status);

}  // namespace sluice::dynamo
