#pragma once

namespace sluice::isolation {

/// True when the program was started as a Runner, by a host.
bool is_runner(int argc, char** argv);

/// The whole life of a Runner: makes the handler that it is told of, runs it over one message after the other, and
/// returns the process's exit status when it is told to end. To be called before anything else of the program.
int run_runner();

}  // namespace sluice::isolation
