#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/fleet/host_record.hpp"
#include "host/runtime/control_folder.hpp"
#include "host/runtime/control_protocol.hpp"

namespace sluice::runtime {

/// One call of a command at a host's control socket. A resource that can be moved, of one thread.
class ControlCall {
 public:
  /// As ControlFolder::connect.
  static Result<ControlCall> open(const std::string& file, const Clock& clock);

  /// Says it and takes the first line. Asked once. `timeout` for a host that does not answer; `unavailable` where it
  /// hangs up, `invalid` where nobody can read what it says. A refusal is an answer.
  Result<ControlAnswer> ask(const ControlRequest& request, Deadline deadline);
  /// The second line, for who has asked to wait for it.
  Result<ControlAnswer> next(Deadline deadline);
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
