#pragma once

#include <string>

namespace sluice::observe {

/// What this binary is, for `sluice version` and the build_info metric. A value.
struct BuildInfo {
  std::string version;     ///< of the product, such as "1.0.0"
  std::string abi;         ///< plugin ABI, such as "1.0": plugins of this major and up to this minor version load
  std::string compiler;    ///< such as "gcc 12.2.0"
  std::string build_type;  ///< such as "RelWithDebInfo"
};

BuildInfo build_info();

}  // namespace sluice::observe
