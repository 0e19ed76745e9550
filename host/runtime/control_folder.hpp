#pragma once

#include <string>
#include <vector>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "config/config.hpp"

/// Where the hosts of one machine can be spoken to: a Unix socket for each, in the folder "control" of [host]
/// state_dir.
namespace sluice::runtime {

/// A socket that takes connections, and the file that leads to it.
struct ListeningSocket {
  Descriptor descriptor;
  std::string file;
};

/// The folder of control sockets. A value; a folder that is not there is empty. The length of its path does not matter.
class ControlFolder {
 public:
  explicit ControlFolder(std::string path) : path_(std::move(path)) {}
  /// Of the hosts that work by this host file.
  static ControlFolder of(const config::HostConfig& config) { return ControlFolder(config.state_dir + "/control"); }

  const std::string& path() const { return path_; }
  /// Sockets of hosts, dead ones included; the oldest first.
  std::vector<std::string> sockets() const;

  /// Makes the folder (0700) and a socket in it (0600), and removes those that dead hosts left. The socket has its name
  /// only once it takes connections, so that nobody takes it for a dead one. An Error where nothing can be written.
  Result<ListeningSocket> listen() const;
  /// Connects without waiting. `not_found` where no host listens, which a dead one's file amounts to; `denied` for
  /// somebody else's; `unavailable` when it has too many callers.
  static Result<Descriptor> connect(const std::string& file);

 private:
  void remove_dead() const;

  std::string path_;
};

}  // namespace sluice::runtime
