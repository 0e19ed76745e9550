#pragma once

#include <poll.h>

#include <list>

#include "base/deadline.hpp"
#include "base/descriptor.hpp"
#include "host/fleet/steering.hpp"
#include "host/observe/log.hpp"
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

/// One connection of the control socket, as steps: a line comes in, a line goes out, and perhaps a second one when what
/// was asked for has come about. It knows no socket; who has one tells it what came and when. A resource of one thread.
class ControlTalk {
 public:
  static constexpr std::size_t kLongestRequest = 4096;  ///< bytes, the line break apart
  static constexpr Duration kRequestTime = std::chrono::seconds(5);
  static constexpr Duration kAnswerTime = std::chrono::seconds(5);

  /// What a caller is owed.
  enum class Then { end, second_line };

  explicit ControlTalk(SteadyTime now) : deadline_(now + kRequestTime) {}

  /// Takes what the caller wrote. The line, once, when it is whole. What comes after it is thrown away.
  std::optional<std::string> received(std::string_view bytes);
  /// The caller writes nothing more. A caller that only waits has gone then.
  void closed() {
    if (reads()) {
      stage_ = Stage::ended;
    }
  }
  /// The request was longer than is taken; it wants an answer that says so.
  bool too_long() const { return stage_ == Stage::asked && request_.size() > kLongestRequest; }

  /// Nobody is there any more.
  void gone() { stage_ = Stage::ended; }

  /// Answers the line. `line` has no break.
  void answer(std::string_view line, Then then, SteadyTime now) {
    if (stage_ != Stage::asked) {
      return;
    }
    request_.clear();
    answer_ = std::string(line) + "\n";
    then_ = then;
    stage_ = Stage::answering;
    deadline_ = now + kAnswerTime;
  }
  /// The second line, for a caller that waits for it; nothing for others.
  void second_line(std::string_view line, SteadyTime now) {
    const bool owed = stage_ == Stage::waiting || (stage_ == Stage::answering && then_ == Then::second_line);
    if (!owed) {
      return;
    }
    answer_ += std::string(line) + "\n";
    then_ = Then::end;
    stage_ = Stage::answering;
    deadline_ = now + kAnswerTime;
  }

  /// What is to be written.
  std::string_view unsent() const { return std::string_view(answer_).substr(sent_); }
  void sent(std::size_t count, SteadyTime now);

  bool ended() const { return stage_ == Stage::ended; }
  bool reads() const { return stage_ == Stage::listening || stage_ == Stage::waiting; }
  /// When nothing has moved until then it is over; SteadyTime::max() for one that waits for its second line.
  SteadyTime deadline() const { return deadline_; }
  void tick(SteadyTime now) {
    if (now >= deadline_) {
      stage_ = Stage::ended;
    }
  }

 private:
  enum class Stage { listening, asked, answering, waiting, ended };

  Stage stage_ = Stage::listening;
  Then then_ = Then::end;
  SteadyTime deadline_;
  std::string request_;
  std::string answer_;
  std::size_t sent_ = 0;
};

/// Who asks, as the kernel knows him.
struct ControlPeer {
  std::uint32_t user = 0;
};

/// What a caller is told now, and what it waits for besides.
struct ControlReply {
  /// Waits for the end of the host.
  static constexpr std::uint64_t kFarewell = ~std::uint64_t{0};

  ControlAnswer answer;
  std::optional<std::uint64_t> awaits;  ///< the number of what will be told, from 1
};

/// The host's side of its control socket: one request a connection, from the host's own user and from root. Callers
/// cannot hurt it: a request has five seconds and 4 KiB, an answer five seconds to be taken, and the oldest of too many
/// connections makes room for the newest. It never holds up the end of the host, and its file goes with it.
class ControlSocket final : public Service {
 public:
  /// Called on the socket's thread, one at a time, under no lock; must be quick.
  using Answer = std::function<ControlReply(const ControlRequest& request, const ControlPeer& peer)>;

  static constexpr std::size_t kMostCallers = 32;

  /// Makes the folder and the socket; answers begin with `start()`. `clock` outlives it.
  static Result<std::unique_ptr<ControlSocket>> open(const ControlFolder& folder, Answer answer, const Clock& clock) {
    SLUICE_TRY(socket, folder.listen());
    return std::unique_ptr<ControlSocket>(new ControlSocket(std::move(*socket), std::move(answer), clock));
  }
  ~ControlSocket() override { stop(); }

  const std::string& file() const { return socket_.file; }

  Result<void> start() override {
    return thread_.start([this](const std::stop_token& stop) { serve(stop); });
  }
  /// Closes all connections, whatever their callers are at, and removes the file.
  void stop() override;

  /// Tells those who wait for something up to this number what came of it. Returns at once. Thread-safe.
  void tell(std::uint64_t number, const ControlAnswer& answer);
  /// Tells all who wait how the host has ended, and removes the file. Returns at once. Thread-safe.
  void farewell(const ControlEnding& ending) {
    ::unlink(socket_.file.c_str());
    tell(ControlReply::kFarewell, {.error = {}, .text = {}, .record = {}, .ending = ending});
  }

 private:
  struct Caller {
    Caller(Descriptor accepted, const ControlPeer& from, SteadyTime now)
        : descriptor(std::move(accepted)), peer(from), talk(now) {}
    const Descriptor descriptor;
    const ControlPeer peer;
    ControlTalk talk;
    std::uint64_t awaits = 0;
  };

  /// A line that came, or one that was too long.
  struct Question {
    Caller* caller = nullptr;
    std::optional<std::string> line;
  };

  ControlSocket(ListeningSocket socket, Answer answer, const Clock& clock);
  void serve(const std::stop_token& stop);
  std::vector<pollfd> what_to_watch();
  SteadyTime next_deadline();
  void serve_callers(const std::vector<pollfd>& watched);
  void admit();
  void read_from(Caller& caller, std::vector<Question>& questions);
  ControlReply answer_to(const Question& question) const;
  void reply(Caller& caller, const ControlReply& reply);
  void write_to(Caller& caller);
  void wake() {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof(one));
  }

  const ListeningSocket socket_;
  const Answer answer_;
  const Clock& clock_;
  const Descriptor wake_;  ///< eventfd

  // Touched only by the thread.
  SteadyTime accepts_again_{};  ///< after a time without a free descriptor

  Mutex mutex_;
  /// Only the thread adds and removes callers, so that it may point to them without the lock.
  std::list<Caller> callers_ SLUICE_GUARDED_BY(mutex_);
  // The last that was told: a caller may come to wait for it only afterwards.
  std::uint64_t told_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::string told_line_ SLUICE_GUARDED_BY(mutex_);

  // Last, so that it ends before what it uses.
  ServiceThread thread_{"sluice-control"};
};

/// What came of a reload. A value.
struct ReloadResult {
  bool taken = false;
  std::string text;  ///< what has changed, or why nothing has: one line for each thing that is wrong
};

/// Answers at the control socket on behalf of a host, and tells those who wait how a reload or the host has ended.
/// Thread-safe. A host without one, as its state folder cannot be written to, works all the same.
class ControlResponder {
 public:
  /// All outlive it.
  struct Parts {
    const config::HostConfig& config;
    fleet::HostControl& host;
    observe::Log& log;
    const Clock& clock;
  };

  /// Opens the socket and answers from now on; says in the log why it cannot.
  explicit ControlResponder(const Parts& parts);
  ControlResponder(const ControlResponder&) = delete;
  ControlResponder& operator=(const ControlResponder&) = delete;

  /// The files are about to be read: what comes of it answers everybody who has asked until now.
  void reload_begins() {
    const MutexLock lock(mutex_);
    covered_ = asked_;
  }
  void reload_ended(const ReloadResult& result);
  /// Nobody is answered any more. Returns at once.
  void farewell(const ControlEnding& ending) {
    if (socket_) {
      socket_->farewell(ending);
    }
  }

 private:
  ControlReply answer(const ControlRequest& request, const ControlPeer& peer);
  ControlReply obey(const ControlRequest& request, const ControlPeer& peer);

  const Parts parts_;

  Mutex mutex_;
  // Reloads, counted as they are asked for.
  std::uint64_t asked_ SLUICE_GUARDED_BY(mutex_) = 0;
  std::uint64_t covered_ SLUICE_GUARDED_BY(mutex_) = 0;  ///< by the one under way

  // Last, so that its thread ends before what it uses. Null where there can be none.
  std::unique_ptr<ControlSocket> socket_;
};

}  // namespace sluice::runtime
