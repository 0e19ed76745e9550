#include "tests/support/ssh_server.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/support/loopback.hpp"

namespace sluice::test {
namespace {

constexpr const char* kSshd = "/usr/sbin/sshd";
constexpr const char* kKeygen = "/usr/bin/ssh-keygen";

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

std::string SshServer::absence() { return std::string("OpenSSH's server is not at ") + kSshd + "; run ./dev deps"; }

SshServer::~SshServer() {
  process_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

std::unique_ptr<SshServer> SshServer::start() {
  if (::access(kSshd, X_OK) != 0 || ::access(kKeygen, X_OK) != 0) {
    return nullptr;
  }
  if (::geteuid() == 0) {
    // Its folder for privilege separation, which only a start by root needs.
    ::mkdir("/run/sshd", 0755);
  }
  std::string folder = std::filesystem::temp_directory_path() / "sluice-sshd-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) {
    throw std::runtime_error("no folder for an SSH server");
  }
  std::unique_ptr<SshServer> server(new SshServer(folder));
  server->make_keys();
  for (int attempt = 0; attempt < kStartAttempts; ++attempt) {
    server->port_ = free_loopback_port();
    server->write_files();
    if (server->launch()) {
      return server;
    }
  }
  throw std::runtime_error(std::string(kSshd) + " does not come up");
}

void SshServer::make_keys() const {
  for (const char* name : {"host", "user", "stranger", "other_host"}) {
    const std::string command =
        std::string(kKeygen) + " -q -t ed25519 -N '' -C test -f " + folder_ + "/" + name + " </dev/null";
    if (std::system(command.c_str()) != 0) {
      throw std::runtime_error("ssh-keygen fails");
    }
  }
  std::filesystem::copy_file(folder_ + "/user.pub", folder_ + "/authorized");
}

void SshServer::write_files() const {
  const std::string place = "[127.0.0.1]:" + std::to_string(port_) + " ";
  write(known_hosts(), place + text_of(folder_ + "/host.pub"));
  write(wrong_known_hosts(), place + text_of(folder_ + "/other_host.pub"));
  write(empty_known_hosts(), "");
  write(folder_ + "/config",
        "Port " + std::to_string(port_) + "\nListenAddress 127.0.0.1\nHostKey " + folder_ +
            "/host\nPidFile none\nAuthorizedKeysFile " + folder_ +
            "/authorized\nStrictModes no\nUsePAM no\nPasswordAuthentication no\n"
            "KbdInteractiveAuthentication no\nAllowTcpForwarding yes\nPermitRootLogin yes\nLogLevel ERROR\n");
}

bool SshServer::launch() {
  process_ = std::make_unique<ChildProcess>(
      std::vector<std::string>{kSshd, "-D", "-f", folder_ + "/config", "-E", folder_ + "/log"});
  return process_->wait_until_listening(port_);
}

// They are processes of their own, children of the one that listens.
void SshServer::signal_sessions(const std::string& signal) const {
  const std::string command = "for child in $(cat /proc/" + std::to_string(process_->pid()) + "/task/" +
                              std::to_string(process_->pid()) +
                              "/children); do for inner in $(cat /proc/$child/task/$child/children); do kill -" +
                              signal + " $inner; done; kill -" + signal + " $child; done 2>/dev/null";
  static_cast<void>(std::system(command.c_str()));
}

void SshServer::kill() {
  signal_sessions("KILL");
  process_->kill();
}

void SshServer::freeze_sessions() const { signal_sessions("STOP"); }

void SshServer::restart() {
  kill();
  if (!launch()) {
    throw std::runtime_error("sshd does not come up again");
  }
}

}  // namespace sluice::test
