#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "host/cli/command.hpp"
#include "host/cli/drop_in/drop_in.hpp"
#include "host/isolation/runner.hpp"
#include "host/runtime/job_plan.hpp"
#include "host/validate/child.hpp"

namespace {

/// One of the first three descriptors that is closed would become a socket's or the database's, and text for people
/// would go there. /dev/null holds its place, the wrong way round, so that using it is an error as before.
void hold_standard_descriptors() {
  for (int descriptor = STDIN_FILENO; descriptor <= STDERR_FILENO; ++descriptor) {
    if (::fcntl(descriptor, F_GETFD) < 0) {
      static_cast<void>(::open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY));
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_descriptors();
  // A reader that has gone is an error of write(2), on pipes and on the network alike.
  std::signal(SIGPIPE, SIG_IGN);
  if (sluice::isolation::is_runner(argc, argv)) {
    return sluice::isolation::run_runner();
  }
  sluice::cli::Console console;
  try {
    const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    if (!words.empty() && words.front() == sluice::runtime::kTrialWord) {
      sluice::runtime::run_trial_process(words);
    }
    if (!words.empty() && words.front() == sluice::validate::kChildWord) {
      sluice::validate::run_child(words);
    }
    return argc > 0 && sluice::cli::is_drop_in(argv[0]) ? sluice::cli::run_drop_in(words, console)
                                                        : sluice::cli::run_command_line(words, console);
  } catch (const std::exception& error) {
    console.note(std::string("sluice: internal error: ") + error.what() + "; please report it");
    return sluice::cli::kExitInternal;
  }
}
