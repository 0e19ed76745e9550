#pragma once

/// Guards: places in the code that keep a promise which only shows when something else goes wrong. Each has a name, and
/// a test build can switch it off by that name, so that it can be seen which test notices (`./dev test guards`).
///
///     if (SLUICE_GUARD(sqlite_flush)) { flush(); }
///
/// In every other build SLUICE_GUARD(name) is the constant `true`. tests/guards/guards.txt lists the names.
#ifdef SLUICE_GUARDS_SWITCHABLE

#include <cstdlib>
#include <string_view>

namespace sluice {

/// False for a name in the environment variable SLUICE_GUARDS_OFF, where names stand with commas between them.
inline bool guard_is_on(std::string_view name) {
  static const char* const off = std::getenv("SLUICE_GUARDS_OFF");
  std::string_view rest = off == nullptr ? std::string_view() : std::string_view(off);
  while (!rest.empty()) {
    const std::string_view first = rest.substr(0, rest.find(','));
    if (first == name) {
      return false;
    }
    rest.remove_prefix(first.size() == rest.size() ? first.size() : first.size() + 1);
  }
  return true;
}

}  // namespace sluice

#define SLUICE_GUARD(name) (::sluice::guard_is_on(#name))

#else

#define SLUICE_GUARD(name) true

#endif
