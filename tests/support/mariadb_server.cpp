#include "tests/support/mariadb_server.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "tests/support/loopback.hpp"

namespace sluice::test {
namespace {

constexpr const char* kServer = "/usr/sbin/mariadbd";
constexpr const char* kInstall = "/usr/bin/mariadb-install-db";

/// A server that root starts must be told that it is meant.
std::string as_user() { return ::geteuid() == 0 ? " --user=root" : ""; }

}  // namespace

std::string MariaDbServer::absence() {
  return std::string("MariaDB's server is not at ") + kServer + " and " + kInstall + "; run ./dev deps";
}

MariaDbServer::MariaDbServer(std::string folder, std::vector<std::string> options)
    : folder_(std::move(folder)), options_(std::move(options)) {}

MariaDbServer::~MariaDbServer() {
  process_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::unique_ptr<MariaDbServer> MariaDbServer::start(const std::vector<std::string>& options) {
  if (::access(kServer, X_OK) != 0 || ::access(kInstall, X_OK) != 0) {
    return nullptr;
  }
  std::string folder = std::filesystem::temp_directory_path() / "sluice-mariadb-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    throw std::runtime_error("no folder for MariaDB's server");
  }
  // A server that starts removes what looks like another one's temporary tables from its folder for them.
  std::filesystem::create_directory(folder + "/tmp");
  std::unique_ptr<MariaDbServer> server(new MariaDbServer(folder, options));
  if (!server->install()) {
    std::ifstream log(folder + "/install.log");
    throw std::runtime_error("mariadb-install-db fails: " +
                             std::string(std::istreambuf_iterator<char>(log), std::istreambuf_iterator<char>()));
  }
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    server->port_ = free_loopback_port();
    if (server->launch()) {
      return server;
    }
  }
  throw std::runtime_error(std::string(kServer) + " does not come up");
}

bool MariaDbServer::install() const {
  const std::string command = std::string(kInstall) + " --no-defaults" + as_user() + " --datadir=" + folder_ +
                              "/data --tmpdir=" + folder_ +
                              "/tmp --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve "
                              "--innodb-log-file-size=8M --innodb-flush-log-at-trx-commit=0 >" +
                              folder_ + "/install.log 2>&1";
  const int status = std::system(command.c_str());
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool MariaDbServer::launch() {
  std::vector<std::string> arguments{kServer, "--no-defaults"};
  if (::geteuid() == 0) {
    arguments.emplace_back("--user=root");
  }
  for (const char* option : {"--bind-address=127.0.0.1", "--skip-name-resolve", "--innodb-buffer-pool-size=32M",
                             "--innodb-log-file-size=8M", "--innodb-flush-log-at-trx-commit=2"}) {
    arguments.emplace_back(option);
  }
  arguments.insert(arguments.end(), {"--datadir=" + folder_ + "/data", "--socket=" + socket(),
                                     "--port=" + std::to_string(port_), "--tmpdir=" + folder_ + "/tmp",
                                     "--pid-file=" + folder_ + "/pid", "--log-error=" + folder_ + "/error.log"});
  arguments.insert(arguments.end(), options_.begin(), options_.end());
  process_ = std::make_unique<ChildProcess>(arguments);
  return process_->wait_until_listening(port_);
}

void MariaDbServer::restart() {
  process_->kill();
  if (!launch()) {
    throw std::runtime_error(std::string(kServer) + " does not come up again");
  }
}

std::string MariaDbServer::url(const std::string& database) const {
  return "mysql://root@127.0.0.1:" + std::to_string(port_) + "/" + database;
}

}  // namespace sluice::test
