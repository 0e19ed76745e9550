#include "host/runtime/control_socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <future>

#include "base/text/number.hpp"
#include "host/fleet/notice_json.hpp"
#include "host/isolation/state_folder.hpp"
#include "host/observe/connection_server.hpp"

namespace sluice::runtime {
namespace {

// In the order of ControlVerb.
constexpr std::array<std::string_view, 5> kVerbs{"about", "look", "reload", "drain", "cancel_running"};

bool read_verb(JsonReader& reader, ControlVerb& verb) {
  std::string name;
  if (!reader.read_string(name)) {
    return false;
  }
  const auto found = std::find(kVerbs.begin(), kVerbs.end(), name);
  if (found == kVerbs.end()) {
    return reader.fail("there is no command \"" + name.substr(0, 40) + "\"");
  }
  verb = static_cast<ControlVerb>(found - kVerbs.begin());
  return true;
}

bool read_status(JsonReader& reader, int& status) {
  std::string_view text;
  if (!reader.read_number(text)) {
    return false;
  }
  const auto number = parse_number<int>(text);
  status = number.value_or(status);
  return number || reader.fail("a status is a whole number");
}

bool read_ending(JsonReader& reader, ControlEnding& ending) {
  return fleet::read_members(reader, [&](const std::string& member) {
    return member == "status"        ? read_status(reader, ending.status)
           : member == "certificate" ? reader.read_string(ending.certificate)
                                     : reader.skip();
  });
}

constexpr int kBacklog = 128;
constexpr const char* kExtension = ".sock";

/// The address of a socket's file. A long path is reached through a descriptor of its folder: an address is short.
class SocketAddress {
 public:
  explicit SocketAddress(const std::string& file) {
    address_.sun_family = AF_UNIX;
    std::string path = file;
    if (path.size() >= sizeof(address_.sun_path)) {
      const std::filesystem::path whole(file);
      folder_ = Descriptor(::open(whole.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      path = path_of(folder_.get()) + "/" + whole.filename().string();
    }
    path.copy(address_.sun_path, sizeof(address_.sun_path) - 1);
  }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  socklen_t size() const { return sizeof(address_); }

 private:
  Descriptor folder_;
  sockaddr_un address_{};
};

Descriptor new_socket() { return Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

constexpr std::size_t kLongestAnswer = 16 * 1024 * 1024;
constexpr Duration kIntroductionTime = std::chrono::seconds(1);

/// The process at the other end; a `pid` of 0 where the kernel does not tell.
ucred peer_of(int socket) {
  ucred credentials{.pid = 0, .uid = static_cast<uid_t>(-1), .gid = 0};
  socklen_t size = sizeof(credentials);
  ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size);
  return credentials;
}

Descriptor process_behind(int socket) {
  const pid_t pid = peer_of(socket).pid;
  // The library here has no name for it yet.
  return Descriptor(pid > 0 ? static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)) : -1);
}

/// Of "control/1795176000000000000-4711.sock" 4711.
std::int64_t process_in(const std::string& file) {
  const std::string name = std::filesystem::path(file).stem();
  return parse_number<std::int64_t>(name.substr(name.find('-') + 1)).value_or(0);
}

Error hung_up() { return Error(ErrorCode::unavailable, "the host has hung up without a word"); }

/// More than any host runs: every worker of many jobs, each on a message with a long id.
constexpr std::size_t kLongestRecord = 4 * 1024 * 1024;

fleet::Directive order_of(const ControlRequest& request, uid_t user, const fleet::HostRecord& host) {
  fleet::Directive order;
  order.by = "user " + std::to_string(user) + " at the control socket";
  if (request.verb == ControlVerb::cancel_running) {
    order.wish = fleet::Wish::cancel_running;
    order.target = fleet::Target::message;
    order.name = request.message;
    order.value = request.queue;
  } else {
    order.wish = request.verb == ControlVerb::drain ? fleet::Wish::drain : fleet::Wish::reload;
    order.target = fleet::Target::host;
    order.name = host.instance;
  }
  return order;
}

namespace asio = boost::asio;
using asio::local::stream_protocol;
using boost::system::error_code;

constexpr std::chrono::seconds kRequestTime(5);
constexpr std::chrono::seconds kAnswerTime(5);
/// What the end of the host may be held up for, should the thread hang.
constexpr std::chrono::milliseconds kLastAnswerTime(200);
/// What comes after all reloads: the end of the host.
constexpr std::uint64_t kFarewell = ~std::uint64_t{0};

class Server final : public ControlSocket {
 public:
  Server(ListeningSocket socket, Answer answer) : file_(std::move(socket.file)), answer_(std::move(answer)) {
    server_.acceptor().assign(stream_protocol(), socket.descriptor.release());
  }
  ~Server() override { end(); }

  const std::string& file() const override { return file_; }
  Result<void> start() override { return server_.start(); }
  void stop() override { end(); }

  void reload_begins() override { ++reloads_; }
  void reload_ended(const ControlAnswer& result) override {
    asio::post(server_.io(), [this, number = reloads_.load(), line = encode(result)] { tell(number, line); });
  }
  void farewell(const ControlEnding& ending) override {
    ::unlink(file_.c_str());
    const auto told = std::make_shared<std::promise<void>>();
    asio::post(server_.io(), [this, told, line = encode(ControlAnswer{.ending = ending})] {
      ending_ = line;
      tell(kFarewell, line);
      told->set_value();
    });
    told->get_future().wait_for(kLastAnswerTime);
  }

 private:
  using Stream = observe::ConnectionServer<stream_protocol>::Stream;
  /// Who is to be told what comes of a reload, by its number, or how the host ends, by kFarewell.
  struct Waiting {
    std::uint64_t number;
    Stream::weak_type stream;
  };
  struct Reply {
    ControlAnswer answer;
    std::optional<std::uint64_t> awaits{};
  };

  void end() {
    server_.stop();
    ::unlink(file_.c_str());
  }

  /// A line comes in, a line goes out, and perhaps a second one when what was asked for has come about.
  asio::awaitable<void> converse(Stream stream) {
    std::string text;
    stream->expires_after(kRequestTime);
    const auto [failed, size] = co_await asio::async_read_until(
        *stream, asio::dynamic_buffer(text, kLongestRequest + 1), '\n', observe::kTuple);
    if (failed && failed != asio::error::not_found) {
      co_return;
    }
    const uid_t user = peer_of(stream->socket().native_handle()).uid;
    const Reply reply = reply_to(failed ? std::nullopt : std::optional(text.substr(0, size - 1)), user);
    if (reply.awaits) {
      waiting_.push_back({*reply.awaits, stream});
    }
    // So little fits into a socket that is empty before anything else is told.
    const std::string line = encode(reply.answer) + "\n";
    stream->expires_after(kAnswerTime);
    const auto [unsent, sent] = co_await asio::async_write(*stream, asio::buffer(line), observe::kTuple);
    if (unsent || !reply.awaits) {
      co_return;
    }
    if (!ending_.empty()) {
      tell(kFarewell, ending_);
    }
    // Until it is told or has gone; what it says meanwhile is thrown away.
    stream->expires_never();
    std::array<char, 1024> scratch{};
    for (bool stays = true; stays;) {
      const auto [gone, said] = co_await stream->async_read_some(asio::buffer(scratch), observe::kTuple);
      stays = !gone;
    }
  }

  /// `line`: nothing where that was too long.
  Reply reply_to(const std::optional<std::string>& line, uid_t user) const {
    const Result<ControlRequest> request = read(line, user);
    if (!request) {
      return {ControlAnswer::refusal(request.error().message())};
    }
    // The next one, as things are before it is asked for: it begins after that, and so reads the files as they are now.
    const std::uint64_t next_reload = reloads_ + 1;
    Reply reply{answer_(*request, user)};
    const bool waits = request->wait && reply.answer.error.empty();
    if (waits && request->verb == ControlVerb::reload) {
      reply.awaits = next_reload;
    } else if (waits && request->verb == ControlVerb::drain) {
      reply.awaits = kFarewell;
    }
    return reply;
  }
  static Result<ControlRequest> read(const std::optional<std::string>& line, uid_t user) {
    if (user != 0 && user != ::geteuid()) {
      return Error(ErrorCode::denied,
                   "user " + std::to_string(user) + " may not steer this host; only its own user and root may");
    }
    return line ? decode_request(*line)
                : Error(ErrorCode::invalid, "a request has at most " + std::to_string(kLongestRequest) + " bytes");
  }
  /// Tells those who wait for something up to this number what came of it.
  void tell(std::uint64_t number, const std::string& line) {
    const auto text = std::make_shared<const std::string>(line + "\n");
    std::erase_if(waiting_, [&](const Waiting& waiting) {
      const Stream stream = waiting.stream.lock();
      const bool due = waiting.number <= number;
      if (stream && due) {
        asio::async_write(stream->socket(), asio::buffer(*text),
                          [stream, text](const error_code&, std::size_t) { stream->close(); });
      }
      return due || !stream;
    });
  }

  const std::string file_;
  const Answer answer_;
  std::atomic<std::uint64_t> reloads_{0};  ///< that have begun; by any thread
  // Touched only by the server's thread.
  std::string ending_;  ///< how the host has ended, as it is told; empty: it has not
  std::vector<Waiting> waiting_;
  // Last, so that its thread ends before what it uses.
  observe::ConnectionServer<stream_protocol> server_{"sluice-control", kMostCallers,
                                                     [this](Stream stream) { return converse(std::move(stream)); }};
};

}  // namespace

std::string_view to_string(ControlVerb verb) { return kVerbs[static_cast<std::size_t>(verb)]; }

std::string encode(const ControlRequest& request) {
  fleet::NoticeWriter line;
  line.put("command", request.verb);
  line.put("message", request.message);
  line.put("wait", request.wait);
  line.put("queue", request.queue);
  return std::move(line).finish();
}

Result<ControlRequest> decode_request(std::string_view line) {
  ControlRequest request;
  bool named = false;
  SLUICE_PASS_ON(fleet::read_object(line, "the request", [&](JsonReader& json, const std::string& member) {
    named = named || member == "command";
    return member == "command"   ? read_verb(json, request.verb)
           : member == "message" ? json.read_string(request.message)
           : member == "wait"    ? json.read_bool(request.wait)
           : member == "queue"   ? json.read_string(request.queue)
                                 : json.skip();
  }));
  return named ? Result<ControlRequest>(request) : Error(ErrorCode::corrupt, "\"command\" is missing");
}

std::string encode(const ControlAnswer& answer) {
  fleet::NoticeWriter line;
  line.raw("ok", answer.error.empty() ? "true" : "false");
  line.put("error", answer.error);
  line.put("text", answer.text);
  if (!answer.record.empty()) {
    line.raw("host", answer.record);
  }
  if (answer.ending) {
    fleet::NoticeWriter ending;
    ending.raw("status", std::to_string(answer.ending->status));
    ending.put("certificate", answer.ending->certificate);
    line.raw("ended", std::move(ending).finish());
  }
  return std::move(line).finish();
}

Result<ControlAnswer> decode_answer(std::string_view line) {
  ControlAnswer answer;
  bool done = false;
  SLUICE_PASS_ON(fleet::read_object(line, "the host's answer", [&](JsonReader& json, const std::string& member) {
    if (member == "host") {
      std::string_view record;
      const bool read = json.read_raw(record);
      answer.record = record;
      return read;
    }
    return member == "ok"      ? json.read_bool(done)
           : member == "error" ? json.read_string(answer.error)
           : member == "text"  ? json.read_string(answer.text)
           : member == "ended" ? read_ending(json, answer.ending.emplace())
                               : json.skip();
  }));
  return done || !answer.error.empty()
             ? Result<ControlAnswer>(answer)
             : Error(ErrorCode::corrupt, "the host's answer says neither that it is done nor why not");
}

std::vector<std::string> ControlFolder::sockets() const { return isolation::files_in(path_, kExtension); }

Result<ListeningSocket> ControlFolder::listen() const {
  SLUICE_PASS_ON(isolation::make_state_folder(path_));
  for (const std::string& dead : sockets()) {
    if (const auto found = connect(dead); !found && found.error().code() == ErrorCode::not_found) {
      ::unlink(dead.c_str());
    }
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::string file = path_ + "/" + std::to_string(now) + "-" + std::to_string(::getpid()) + kExtension;
  const std::string unfinished = file + ".new";
  Descriptor made = new_socket();
  const SocketAddress address(unfinished);
  // The file takes its mode from the socket, so that there is no moment in which others could connect.
  if (!made.open() || ::fchmod(made.get(), 0600) != 0 || ::bind(made.get(), address.get(), address.size()) != 0 ||
      ::listen(made.get(), kBacklog) != 0 || ::rename(unfinished.c_str(), file.c_str()) != 0) {
    const int code = errno;
    ::unlink(unfinished.c_str());
    return isolation::state_file_error("the control socket " + file + " cannot be made", code);
  }
  return ListeningSocket{std::move(made), file};
}

Result<Descriptor> ControlFolder::connect(const std::string& file) {
  Descriptor made = new_socket();
  const SocketAddress address(file);
  if (!made.open() || ::connect(made.get(), address.get(), address.size()) != 0) {
    const int code = errno;
    const bool gone = code == ECONNREFUSED || code == ENOENT;
    return Error(gone             ? ErrorCode::not_found
                 : code == EAGAIN ? ErrorCode::unavailable
                                  : ErrorCode::denied,
                 "the control socket " + file + " cannot be used: " +
                     (gone             ? "no host listens on it"
                      : code == EAGAIN ? "too many wait for an answer already"
                                       : std::strerror(code)));
  }
  return made;
}

ControlCall::ControlCall(Descriptor socket, const Clock& clock)
    : socket_(std::move(socket)), process_(process_behind(socket_.get())), clock_(&clock) {}

bool ControlCall::wait_for(int descriptor, short events, Deadline deadline) const {
  pollfd watched{descriptor, events, 0};
  while (true) {
    const Duration left = deadline.left(clock_->steady_now());
    const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, std::chrono::hours(1)));
    if (::poll(&watched, 1, static_cast<int>(wait.count())) > 0) {
      return true;
    }
    if (deadline.passed(clock_->steady_now())) {
      return false;
    }
  }
}

Result<ControlAnswer> ControlCall::ask(const ControlRequest& request, Deadline deadline) {
  const std::string line = encode(request) + "\n";
  if (line.size() > ControlSocket::kLongestRequest + 1) {
    return Error(ErrorCode::invalid, "the request is too long for a control socket");
  }
  if (::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(line.size())) {
    return hung_up();
  }
  return next(deadline);
}

Result<std::string> ControlCall::read_line(Deadline deadline) {
  std::array<char, 16 * 1024> bytes;
  while (true) {
    if (const auto end = read_.find('\n'); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    if (read_.size() > kLongestAnswer) {
      return Error(ErrorCode::invalid, "the host's answer does not end");
    }
    if (!wait_for(socket_.get(), POLLIN, deadline)) {
      return Error(ErrorCode::timeout, "the host does not answer at its control socket: is it stopped or overloaded?");
    }
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) {
      return hung_up();
    }
    read_.append(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  }
}

bool ControlCall::wait_for_exit(Deadline deadline) {
  if (process_.open()) {
    return wait_for(process_.get(), POLLIN, deadline);
  }
  while (true) {
    const auto line = read_line(deadline);
    if (!line) {
      return line.error().code() == ErrorCode::unavailable;
    }
  }
}

LocalHosts find_local_hosts(const ControlFolder& folder, const Clock& clock) {
  LocalHosts found;
  for (const std::string& file : folder.sockets()) {
    const auto introduced = [&]() -> Result<fleet::HostRecord> {
      SLUICE_TRY(call, ControlCall::open(file, clock));
      SLUICE_TRY(answer, call->ask({}, Deadline::after(clock, kIntroductionTime)));
      return answer->error.empty() ? fleet::read_record(answer->record) : Error(ErrorCode::denied, answer->error);
    }();
    if (introduced) {
      found.hosts.push_back({file, *introduced});
    } else if (introduced.error().code() != ErrorCode::not_found) {
      found.speechless.push_back({process_in(file), introduced.error()});
    }
  }
  return found;
}

Result<std::unique_ptr<ControlSocket>> ControlSocket::open(const ControlFolder& folder, Answer answer) {
  SLUICE_TRY(socket, folder.listen());
  const std::string file = socket->file;
  try {
    return std::unique_ptr<ControlSocket>(std::make_unique<Server>(std::move(*socket), std::move(answer)));
  } catch (const boost::system::system_error& failed) {
    ::unlink(file.c_str());
    return isolation::state_file_error("the control socket " + file + " cannot be served", failed.code().value());
  }
}

ControlAnswer answer_of(fleet::HostControl& host, const ControlRequest& request, uid_t user) {
  if (request.verb == ControlVerb::about) {
    return {.record = write_record(host.describe(), kLongestRecord)};
  }
  if (request.verb == ControlVerb::cancel_running && request.message.empty()) {
    return ControlAnswer::refusal("\"message\" is missing: the id of the message");
  }
  const fleet::Answer answer = host.obey(order_of(request, user, host.describe()));
  return answer.done ? ControlAnswer{.text = answer.text} : ControlAnswer::refusal(answer.text);
}

}  // namespace sluice::runtime
