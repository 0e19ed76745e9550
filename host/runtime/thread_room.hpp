#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace sluice::runtime {

/// The threads of a job: its workers and those for claiming, settling and extending leases.
std::size_t threads_of(std::uint32_t concurrency);

/// Whether the system gives this process so many more threads at this moment. ErrorCode::invalid, with the limits
/// that are set, when it does not. Makes them and lets them go, which takes about 10 microseconds each.
Result<void> room_for_threads(std::size_t count);

/// Whether this process may open so many more files at this moment; ErrorCode::invalid, with the limit, when it may
/// not.
Result<void> room_for_descriptors(std::size_t count);

/// The limits on threads that are set for this process, such as "address space 400 MiB (ulimit -v)".
std::string thread_limits();

}  // namespace sluice::runtime
