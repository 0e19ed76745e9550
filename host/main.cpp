#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "host/cli/command.hpp"

int main(int argc, char** argv) {
  // A reader that has gone is an error of write(2), on pipes and on the network alike.
  std::signal(SIGPIPE, SIG_IGN);
  sluice::cli::Console console;
  try {
    return sluice::cli::run_command_line(std::vector<std::string>(argv + 1, argv + argc), console);
  } catch (const std::exception& error) {
    console.note(std::string("sluice: internal error: ") + error.what() + "; please report it");
    return sluice::cli::kExitInternal;
  }
}
