#include "tests/support/emulator.hpp"

#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>
#include <vector>

#include "tests/support/loopback.hpp"

namespace sluice::test {
namespace {

const std::string& built_in_path() {
#ifdef SLUICE_EMULATOR
  static const std::string path = SLUICE_EMULATOR;
#else
  static const std::string path = SLUICE_SOURCE_DIR "/build/emulator/node_modules/@dynoxide/linux-x64/dynoxide";
#endif
  return path;
}

}  // namespace

std::optional<std::string> Emulator::program() {
  const char* named = std::getenv("SLUICE_EMULATOR");
  const std::string path = named != nullptr && *named != '\0' ? named : built_in_path();
  return ::access(path.c_str(), X_OK) == 0 ? std::optional(path) : std::nullopt;
}

std::string Emulator::absence() {
  return "the DynamoDB emulator is not at " + built_in_path() + "; run ./dev deps, or name it in SLUICE_EMULATOR";
}

std::unique_ptr<Emulator> Emulator::start(const Options& options) {
  const auto path = program();
  if (!path) {
    return nullptr;
  }
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    const int port = free_loopback_port();
    std::vector<std::string> arguments = {*path, "--host", "127.0.0.1", "--port", std::to_string(port)};
    if (!options.database.empty()) {
      arguments.insert(arguments.end(), {"--db-path", options.database});
    }
    auto process = std::make_unique<ChildProcess>(arguments);
    if (process->wait_until_listening(port)) {
      return std::unique_ptr<Emulator>(new Emulator(std::move(process), port));
    }
  }
  throw std::runtime_error(*path + " does not come up");
}

Emulator::Emulator(std::unique_ptr<ChildProcess> process, int port)
    : process_(std::move(process)), port_(port), endpoint_("http://127.0.0.1:" + std::to_string(port)) {}

}  // namespace sluice::test
