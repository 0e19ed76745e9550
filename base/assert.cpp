#include "base/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace sluice::detail {

void assertion_failed(const char* condition, const char* file, int line) noexcept {
  std::fprintf(stderr, "sluice: broken invariant: %s at %s:%d\n", condition, file, line);
  std::abort();
}

}  // namespace sluice::detail
