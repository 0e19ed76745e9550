#include "host/observe/build_info.hpp"

#include "sluice/abi.h"

namespace sluice::observe {

namespace {

std::string compiler() {
#if defined(__clang__)
  return "clang " + std::to_string(__clang_major__) + "." + std::to_string(__clang_minor__) + "." +
         std::to_string(__clang_patchlevel__);
#else
  return "gcc " + std::to_string(__GNUC__) + "." + std::to_string(__GNUC_MINOR__) + "." +
         std::to_string(__GNUC_PATCHLEVEL__);
#endif
}

}  // namespace

BuildInfo build_info() {
  return {SLUICE_VERSION, std::to_string(SLUICE_ABI_MAJOR) + "." + std::to_string(SLUICE_ABI_MINOR), compiler(),
          SLUICE_BUILD_TYPE};
}

}  // namespace sluice::observe
