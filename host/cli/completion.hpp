#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::cli {

/// The script that completes a program's words in "bash", "zsh", "fish" or "powershell"; nothing for another
/// shell.
std::optional<std::string> completion_for(std::string_view shell, std::string_view program);

}  // namespace sluice::cli
