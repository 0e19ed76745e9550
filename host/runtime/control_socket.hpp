#pragma once

#include "base/deadline.hpp"
#include "base/descriptor.hpp"
#include "host/fleet/steering.hpp"
#include "host/runtime/service.hpp"

/// One line of JSON each way on a host's control socket, and a second answer for who waits for a reload or a drain.
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
  std::string queue{};  ///< that of the message; empty: whichever
};

/// {"command":"drain","wait":true}
std::string encode(const ControlRequest& request);
/// `corrupt`, with what is wrong, for anything that is none.
Result<ControlRequest> decode_request(std::string_view line);

/// How a host ended, as its drain certificate says.
struct ControlEnding {
  int status = 0;
  std::string certificate;  ///< its one line for people
};

struct ControlAnswer {
  std::string error{};   ///< why it was refused; empty: done
  std::string text{};    ///< what the host does now
  std::string record{};  ///< with `about`: JSON
  std::optional<ControlEnding> ending{};

  static ControlAnswer refusal(std::string why) { return {.error = std::move(why)}; }
};

std::string encode(const ControlAnswer& answer);
Result<ControlAnswer> decode_answer(std::string_view line);

/// A socket that takes connections, and the file that leads to it.
struct ListeningSocket {
  Descriptor descriptor;
  std::string file;
};

/// Where the hosts of one machine can be spoken to: a Unix socket for each, in the folder "control" of [host]
/// state_dir. A value; a folder that is not there is empty. The length of its path does not matter.
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
  /// hangs up, `corrupt` where nobody can read what it says. A refusal is an answer.
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

/// A host of this machine whose socket takes calls and does not answer. A value.
struct SpeechlessHost {
  std::int64_t process = 0;  ///< its id, where the host runs
  Error error;               ///< `denied`: it does not answer this user
};

/// What the sockets of a folder lead to. A value.
struct LocalHosts {
  std::vector<LocalHost> hosts;  ///< the oldest first
  std::vector<SpeechlessHost> speechless;
};

/// Asks all hosts of the folder who they are; each has a second to say so.
LocalHosts find_local_hosts(const ControlFolder& folder, const Clock& clock);

/// The host's side of its control socket: one request a connection, from the host's own user and from root. Callers
/// cannot hurt it: a request has five seconds and 4 KiB, the first answer five seconds to be taken, and the oldest of
/// too many connections makes room for the newest. It never holds up the end of the host, and its file goes with it.
/// Who has asked for a reload or a drain and waits is told how that has ended.
class ControlSocket : public Service {
 public:
  /// Called on the socket's thread, one at a time, under no lock; must be quick. `user`: who asks, as the kernel knows.
  using Answer = std::function<ControlAnswer(const ControlRequest& request, uid_t user)>;

  static constexpr std::size_t kLongestRequest = 4096;  ///< bytes, the line break apart
  static constexpr std::size_t kMostCallers = 32;

  /// Makes the folder and the socket; answers begin with `start()`. A stop closes all connections, whatever their
  /// callers are at, and removes the file.
  static Result<std::unique_ptr<ControlSocket>> open(const ControlFolder& folder, Answer answer);

  virtual const std::string& file() const = 0;
  // Thread-safe; the first two return at once.

  /// The files are about to be read: what comes of it answers everybody who has asked until now.
  virtual void reload_begins() = 0;
  /// What has changed, or why nothing has: one line for each thing that is wrong.
  virtual void reload_ended(const ControlAnswer& result) = 0;
  /// Tells all who wait, and who comes to wait from now on, how the host has ended, and removes the file. Returns as
  /// soon as they are told, since the process may be gone in a moment.
  virtual void farewell(const ControlEnding& ending) = 0;
};

/// What a host says to a request other than `look`, which it has begun to carry out then.
ControlAnswer answer_of(fleet::HostControl& host, const ControlRequest& request, uid_t user);

}  // namespace sluice::runtime
