#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "config/config.hpp"
#include "host/fleet/host_record.hpp"

/// What is said on a host's control socket: one line of JSON each way, and a second answer when a reload or a drain is
/// through for those who wait for it. Values.
namespace sluice::runtime {

enum class ControlVerb {
  about,           ///< the host's record: what it is and what its workers run
  look,            ///< read what operators want from the store now, rather than with the next poll
  reload,          ///< as SIGHUP
  drain,           ///< as the first SIGTERM; said again it changes nothing
  cancel_running,  ///< set the stop token of the handler at work on `message`
};
std::string_view to_string(ControlVerb verb);

struct ControlRequest {
  ControlVerb verb = ControlVerb::about;
  std::string message;  ///< an id
  bool wait = false;    ///< with `reload` and `drain`: a second line tells what came of it
};

/// {"command":"drain","wait":true}
std::string encode(const ControlRequest& request);
/// `invalid`, with what is wrong, for anything that is none.
Result<ControlRequest> decode_request(std::string_view line);

/// How a host ended, as its drain certificate says.
struct ControlEnding {
  int status = 0;
  std::string certificate;  ///< its one line for people
};

struct ControlAnswer {
  std::string error;   ///< why it was refused; empty: done
  std::string text;    ///< what the host does now
  std::string record;  ///< with `about`: JSON
  std::optional<ControlEnding> ending;

  static ControlAnswer refusal(std::string why) { return {.error = std::move(why)}; }
};

std::string encode(const ControlAnswer& answer);
Result<ControlAnswer> decode_answer(std::string_view line);

/// Where the hosts of one machine can be spoken to: a Unix socket for each, in the folder "control" of [host]
/// state_dir.
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
  void remove_dead() const {
    for (const std::string& file : sockets()) {
      if (const auto found = connect(file); !found && found.error().code() == ErrorCode::not_found) {
        ::unlink(file.c_str());
      }
    }
  }

  std::string path_;
};

/// One call of a command at a host's control socket. A resource that can be moved, of one thread.
class ControlCall {
 public:
  /// As ControlFolder::connect.
  static Result<ControlCall> open(const std::string& file, const Clock& clock) {
    SLUICE_TRY(socket, ControlFolder::connect(file));
    return ControlCall(std::move(*socket), clock);
  }

  /// Says it and takes the first line. Asked once. `timeout` for a host that does not answer; `unavailable` where it
  /// hangs up, `invalid` where nobody can read what it says. A refusal is an answer.
  Result<ControlAnswer> ask(const ControlRequest& request, Deadline deadline);
  /// The second line, for who has asked to wait for it.
  Result<ControlAnswer> next(Deadline deadline) {
    SLUICE_TRY(line, read_line(deadline));
    return decode_answer(*line);
  }
  /// Waits until the host's process is gone. False when the deadline passed first. Where the kernel cannot tell, as
  /// between containers, a host that has hung up counts as gone.
  bool wait_for_exit(Deadline deadline);

 private:
  ControlCall(Descriptor socket, const Clock& clock);
  Result<std::string> read_line(Deadline deadline);
  bool wait_for(int descriptor, short events, Deadline deadline) const;

  Descriptor socket_;
  Descriptor process_;  ///< pidfd; none where the kernel does not tell
  const Clock* clock_;
  std::string read_;
};

/// A host of this machine that has a control socket. A value.
struct LocalHost {
  std::string file;
  fleet::HostRecord record;
};

/// What the sockets of a folder lead to. A value.
struct LocalHosts {
  std::vector<LocalHost> hosts;   ///< the oldest first
  std::vector<Error> speechless;  ///< of those that take calls and do not answer, or not this user's
};

/// Asks all hosts of the folder who they are; each has a second to say so.
LocalHosts find_local_hosts(const ControlFolder& folder, const Clock& clock);

}  // namespace sluice::runtime
