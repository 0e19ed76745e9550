#pragma once

#include <string>

#include "base/error.hpp"

namespace sluice::isolation {

/// Makes a folder for its owner alone (0700), and those above it as they come. One that is there is left as it is.
/// An Error that names the folder, the cause and its mend when it cannot be made.
Result<void> make_private_folder(const std::string& folder);

}  // namespace sluice::isolation
