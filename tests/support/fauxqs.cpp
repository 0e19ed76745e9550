#include "tests/support/fauxqs.hpp"

#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

#include "tests/support/loopback.hpp"

namespace sluice::test {
namespace {

// It listens on all interfaces and has no word to say otherwise.
constexpr const char* kOnLoopback =
    "data:text/javascript,import net from 'node:net';const listen=net.Server.prototype.listen;"
    "net.Server.prototype.listen=function(o,...r){if(o&&o.port!==undefined)o.host='127.0.0.1';"
    "return listen.call(this,o,...r)}";

std::string program_path() {
  const char* named = std::getenv("SLUICE_FAUXQS");
  return named != nullptr && *named != '\0' ? named
                                            : SLUICE_SOURCE_DIR "/build/fauxqs/node_modules/fauxqs/dist/server.js";
}

}  // namespace

std::optional<std::string> Fauxqs::program() {
  const std::string path = program_path();
  return ::access(path.c_str(), R_OK) == 0 ? std::optional(path) : std::nullopt;
}

std::string Fauxqs::absence() {
  return "the SNS emulator is not at " + program_path() + "; run ./dev deps, or name its server.js in SLUICE_FAUXQS";
}

std::unique_ptr<Fauxqs> Fauxqs::start() {
  const auto path = program();
  if (!path) {
    return nullptr;
  }
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    const int port = free_loopback_port();
    auto process = std::make_unique<ChildProcess>(
        std::vector<std::string>{"/usr/bin/env", "FAUXQS_PORT=" + std::to_string(port), "FAUXQS_LOGGER=false", "node",
                                 "--import", kOnLoopback, *path});
    if (process->wait_until_listening(port)) {
      return std::unique_ptr<Fauxqs>(new Fauxqs(std::move(process), port));
    }
  }
  throw std::runtime_error("node " + *path + " does not come up");
}

}  // namespace sluice::test
