#pragma once

#include <string>
#include <string_view>

namespace sluice::plugin {

/// What the dynamic linker said about `file`, as one line for a person: what is missing and the mend, without the
/// file's name.
std::string explain_load_error(const std::string& file, std::string_view said);

}  // namespace sluice::plugin
