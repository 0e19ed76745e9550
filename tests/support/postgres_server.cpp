#include "tests/support/postgres_server.hpp"

#include <sys/stat.h>
#include <sys/wait.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "tests/support/loopback.hpp"

namespace sluice::test {
namespace {

bool installed() {
  std::error_code ignored;
  return std::filesystem::exists("/usr/lib/postgresql", ignored) ||
         std::filesystem::exists("/usr/bin/postgres", ignored);
}

std::string fresh_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "sluice-pg-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr || ::chmod(name.c_str(), 0755) != 0) {
    throw std::runtime_error("cannot make a folder for PostgreSQL");
  }
  return name;
}

}  // namespace

std::unique_ptr<PostgresServer> PostgresServer::start(const std::vector<std::string>& options) {
  if (!installed()) {
    return nullptr;
  }
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    std::unique_ptr<PostgresServer> server(new PostgresServer(fresh_folder(), free_loopback_port(), options));
    if (server->launch()) {
      return server;
    }
  }
  throw std::runtime_error("PostgreSQL does not come up");
}

PostgresServer::PostgresServer(std::string folder, int port, std::vector<std::string> options)
    : folder_(std::move(folder)), port_(port), options_(std::move(options)) {}

PostgresServer::~PostgresServer() {
  process_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

bool PostgresServer::launch() {
  std::vector<std::string> arguments{SLUICE_SOURCE_DIR "/tests/support/postgres_server.sh", folder_,
                                     std::to_string(port_)};
  arguments.insert(arguments.end(), options_.begin(), options_.end());
  process_ = std::make_unique<ChildProcess>(arguments);
  return process_->wait_until_listening(port_);
}

void PostgresServer::restart() {
  process_.reset();
  // What the server before left behind ends by itself, and until then no other may begin.
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (launch()) {
      return;
    }
  }
  throw std::runtime_error("PostgreSQL does not come up again");
}

std::string PostgresServer::url(const std::string& user, const std::string& password) const {
  return "postgres://" + user + ":" + password + "@127.0.0.1:" + std::to_string(port_) + "/postgres";
}

}  // namespace sluice::test
