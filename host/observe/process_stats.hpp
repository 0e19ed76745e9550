#pragma once

#include <cstdint>

namespace sluice::observe {

/// What the kernel says about this process. A value; a field that cannot be read is 0.
struct ProcessStats {
  double cpu_seconds = 0;      ///< user and system time since the start
  double start_time = 0;       ///< seconds since 1970
  std::uint64_t resident = 0;  ///< bytes
  std::uint64_t threads = 0;
  std::uint64_t open_files = 0;
  std::uint64_t open_files_limit = 0;
};

ProcessStats read_process_stats();

}  // namespace sluice::observe
