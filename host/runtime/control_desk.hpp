#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "config/config.hpp"
#include "host/fleet/host_control.hpp"
#include "host/observe/log.hpp"
#include "host/runtime/control_socket.hpp"

namespace sluice::runtime {

/// What came of a reload. A value.
struct ReloadResult {
  bool taken = false;
  std::string text;  ///< what has changed, or why nothing has: one line for each thing that is wrong
};

/// Answers at the control socket on behalf of a host, and tells those who wait how a reload or the host has ended.
/// Thread-safe. A host without one, as its state folder cannot be written to, works all the same.
class ControlDesk {
 public:
  /// All outlive the desk.
  struct Parts {
    const config::HostConfig& config;
    fleet::HostControl& host;
    observe::Log& log;
    const Clock& clock;
  };

  /// Opens the socket and answers from now on; says in the log why it cannot.
  explicit ControlDesk(const Parts& parts);
  ControlDesk(const ControlDesk&) = delete;
  ControlDesk& operator=(const ControlDesk&) = delete;

  /// The files are about to be read: what comes of it answers everybody who has asked until now.
  void reload_begins();
  void reload_ended(const ReloadResult& result);
  /// Nobody is answered any more. Returns at once.
  void farewell(const ControlEnding& ending);

 private:
  ControlReply answer(const ControlRequest& request, const ControlPeer& peer);
  ControlReply obey(const ControlRequest& request, const ControlPeer& peer);

  // Fixed after construction.
  const Parts parts_;

  Mutex mutex_;
  // Reloads, counted as they are asked for.
  std::uint64_t asked_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::uint64_t covered_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< by the one under way

  // Last, so that its thread ends before what it uses. Null where there can be none.
  std::unique_ptr<ControlSocket> socket_;
};

}  // namespace sluice::runtime
