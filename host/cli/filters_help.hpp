#pragma once

#include <string_view>

namespace sluice::cli {

/// What `sluice help` calls it.
inline constexpr std::string_view kFiltersTopic = "filters";

/// The language of --where on a page, with the other ways to choose messages.
std::string_view filters_help();

}  // namespace sluice::cli
