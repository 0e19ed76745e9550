#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/random.hpp"

namespace sluice {

/// A random UUID (version 4) in its usual 36 characters.
std::string make_uuid(Random& random);

/// One that begins with the time, in milliseconds (version 7): those that are made together lie together in an index.
/// The id of a message whose sender named none.
std::string make_uuid_v7(Random& random, WallTime now);

}  // namespace sluice
