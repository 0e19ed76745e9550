#pragma once

#include <functional>

namespace sluice::runtime {

/// Runs `body` and returns its exit code; as process 1 of a container, in a child.
///
/// Process 1 inherits every orphan of the container and must reap it, but reaping any child whatever would take the
/// exit codes of a plugin's own commands away from it. So process 1 stays a small init of ours: it passes signals on,
/// reaps, and ends with the host's exit code (128 + signal when the host was killed). Call it before any thread exists.
int run_below_init(const std::function<int()>& body);

}  // namespace sluice::runtime
