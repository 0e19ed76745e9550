#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "sluice/abi.h"

namespace sluice::plugin {

/// Limits of one plugin.
inline constexpr std::size_t kHandlerLimit = 64;
inline constexpr std::size_t kOptionLimit = 256;
inline constexpr std::size_t kNameLimit = 64;
inline constexpr std::size_t kHelpLimit = 4096;

/// Checks everything that the host relies on later, without calling anything of the plugin. Nothing when it may be
/// used; otherwise what it has, what the host has, and the mend, without the file's name. `symbol_size`: the bytes the
/// file says its symbol has; 0 when it does not say.
std::optional<std::string> refuse_plugin(const sluice_plugin& plugin, std::size_t symbol_size);

}  // namespace sluice::plugin
