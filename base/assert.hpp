#pragma once

namespace sluice::detail {
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line) noexcept;
}  // namespace sluice::detail

/// Checks what only a programming error can break; aborts with the place, in every build. Never for input.
#define SLUICE_ASSERT(condition) \
  ((condition) ? static_cast<void>(0) : ::sluice::detail::assertion_failed(#condition, __FILE__, __LINE__))
