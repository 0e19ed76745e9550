#pragma once

#include <optional>
#include <string>

namespace sluice::plugin {

/// Looks at a file before the dynamic linker does, which would run its code or die of a truncated one. Nothing when it
/// is a whole ELF shared object for this machine; otherwise what is wrong and the mend, without the file's name.
std::optional<std::string> refuse_file(const std::string& file);

}  // namespace sluice::plugin
