#pragma once

#include <cstdint>
#include <string>

namespace sluice {

/// Tells the process of this id from others that had the id before or will have it, here and on other machines:
/// "3f2a9c1b-4026531836-123456" is this boot, the namespace of process ids, and when the process began. Empty where
/// the kernel does not tell.
std::string process_mark(std::int64_t process);

enum class ProcessLife {
  unknown,  ///< it is none of this machine, or of another container; or the kernel does not tell
  alive,
  gone,
};

/// Whether the process that had this mark lives.
ProcessLife life_of(std::int64_t process, const std::string& mark);

}  // namespace sluice
