#pragma once

#include "host/runtime/host.hpp"

namespace sluice::runtime {

/// What `sluice run` was asked for.
struct RunOptions {
  std::string config_file;
  ExplainQueue explain;               ///< why a queue cannot be worked on, and the mend
  bool until_empty = false;           ///< end once every queue has nothing due and nothing in flight
  bool progress = false;              ///< a line of totals on stderr each second; rewritten in place on a terminal
  bool allow_insecure_files = false;  ///< use plugins and configuration that others may write
  std::string drain_report;           ///< file for the drain certificate as JSON; empty: none
};

/// Runs a host until it is signalled or its queues are empty. Returns the process's exit code: 0 clean, 75 work was
/// abandoned, 78 configuration. Writes to stderr only, the drain certificate as its last line.
/// To be called on the main thread before any other thread exists: it blocks the signals it watches.
int run_host(const RunOptions& options);

}  // namespace sluice::runtime
