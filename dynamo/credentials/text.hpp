#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "dynamo/error.hpp"

namespace sluice::dynamo {

/// Small readings of text that several credential sources share. Pure, except for read_file.

std::string_view trim(std::string_view text);
/// ASCII only; the locale has no say.
std::string lower_case(std::string_view text);

/// Files and answers that hold credentials are small; anything larger is not one of them.
inline constexpr std::size_t kMaxCredentialFileBytes = 1024 * 1024;

/// A whole file. Nothing when there is no such file; an Error (no_credentials) when it cannot be read or is too large.
Result<std::optional<std::string>> read_file(const std::filesystem::path& path);

}  // namespace sluice::dynamo
