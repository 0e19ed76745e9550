#pragma once

#include <string>
#include <string_view>

#include "host/queue/effects.hpp"

namespace sluice::queue {

/// What is said of a write whose condition does not hold, after its name: what was found ("it changed 0 rows and had to
/// change 1"), what asked for it (the statement or the condition as the handler gave it, cut where it is long), and
/// what is to be done, by what becomes of the message. One line.
std::string refused_condition(std::string_view found, std::string_view asked, OnRefusal on_refusal);

}  // namespace sluice::queue
