#pragma once

#include <string>

#include "base/random.hpp"

namespace sluice {

/// A random UUID (version 4) in its usual 36 characters: the id of a message whose sender named none.
std::string make_uuid(Random& random);

}  // namespace sluice
