#include "tests/support/nats_server.hpp"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "tests/support/loopback.hpp"

namespace sluice::test {
namespace {

std::string nats_path() {
  const char* named = std::getenv("SLUICE_NATS_SERVER");
  if (named != nullptr && *named != '\0') {
    return named;
  }
  for (const char* path : {"/usr/bin/nats-server", "/usr/sbin/nats-server", "/usr/local/bin/nats-server"}) {
    if (::access(path, X_OK) == 0) {
      return path;
    }
  }
  return "/usr/sbin/nats-server";
}

}  // namespace

std::optional<std::string> NatsServer::program() {
  const std::string path = nats_path();
  return ::access(path.c_str(), X_OK) == 0 ? std::optional(path) : std::nullopt;
}

std::string NatsServer::absence() {
  return "nats-server is not at " + nats_path() + "; run ./dev deps, or name it in SLUICE_NATS_SERVER";
}

std::unique_ptr<NatsServer> NatsServer::start(const std::string& configuration) {
  const auto path = program();
  if (!path) {
    return nullptr;
  }
  std::unique_ptr<NatsServer> server(new NatsServer());
  std::string folder = (std::filesystem::temp_directory_path() / "sluice-nats-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    throw std::runtime_error("cannot make a folder for nats-server");
  }
  server->folder_ = folder;
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    if (server->launch(*path, configuration)) {
      return server;
    }
  }
  throw std::runtime_error(*path + " does not come up");
}

bool NatsServer::launch(const std::string& path, const std::string& configuration) {
  program_ = path;
  port_ = free_loopback_port();
  std::ofstream(folder_ / "nats.conf") << "host: 127.0.0.1\nport: " << port_ << "\njetstream { store_dir: \""
                                       << (folder_ / "streams").string() << "\" }\n"
                                       << configuration;
  process_ =
      std::make_unique<ChildProcess>(std::vector<std::string>{program_, "--config", (folder_ / "nats.conf").string()});
  return process_->wait_until_listening(port_);
}

void NatsServer::freeze() {
  ::kill(pid(), SIGSTOP);
  ::waitpid(pid(), nullptr, WUNTRACED);
}

void NatsServer::thaw() { ::kill(pid(), SIGCONT); }

void NatsServer::restart() {
  process_ =
      std::make_unique<ChildProcess>(std::vector<std::string>{program_, "--config", (folder_ / "nats.conf").string()});
  if (!process_->wait_until_listening(port_)) {
    throw std::runtime_error(program_ + " does not come up again");
  }
}

NatsServer::~NatsServer() {
  process_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

}  // namespace sluice::test
