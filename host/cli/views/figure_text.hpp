#pragma once

#include <string>

#include "base/clock.hpp"

/// Figures for people. Pure functions.
namespace sluice::cli {

/// With so many digits behind the point.
std::string decimal(double number, int digits);
/// A rate a second: "0", "0.4", "12", "1.2k".
std::string rate_text(double per_second);
/// A time that something took: "250us", "12ms", "1.50s", "12m"; "-" for none.
std::string time_text(Duration time);

}  // namespace sluice::cli
