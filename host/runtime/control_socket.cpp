#include "host/runtime/control_socket.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/assert.hpp"
#include "host/fleet/notice_json.hpp"
#include "host/isolation/state_folder.hpp"

namespace sluice::runtime {
namespace {

constexpr std::size_t kDeepest = 16;
// In the order of ControlVerb.
constexpr std::array<std::string_view, 5> kVerbs{"about", "look", "reload", "drain", "cancel_running"};

Error unreadable(std::string_view what, const JsonReader& reader) {
  return Error(ErrorCode::invalid, std::string(what) + " is not one line of JSON as it should be: " + reader.reason());
}

JsonReader reader_of(std::string_view line) { return {line, kDeepest, JsonReader::BadText::replace}; }

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
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), status);
  return (failed == std::errc() && end == text.data() + text.size()) || reader.fail("a status is a whole number");
}

bool read_ending(JsonReader& reader, ControlEnding& ending) {
  std::string_view name;
  bool good = reader.begin_object();
  while (good && reader.next_member(name)) {
    good = name == "status"        ? read_status(reader, ending.status)
           : name == "certificate" ? reader.read_string(ending.certificate)
                                   : reader.skip();
  }
  return good && !reader.failed();
}

constexpr int kBacklog = 128;
constexpr const char* kExtension = ".sock";

Error cannot(const std::string& what, int code) {
  return Error(code == ENOSPC || code == EDQUOT ? ErrorCode::full : ErrorCode::denied,
               what + ": " + std::strerror(code));
}

/// The address of a socket's file. A long path is reached through a descriptor of its folder: an address is short.
class SocketAddress {
 public:
  explicit SocketAddress(const std::string& file) {
    address_.sun_family = AF_UNIX;
    std::string path = file;
    if (path.size() >= sizeof(address_.sun_path)) {
      const std::filesystem::path whole(file);
      folder_ = Descriptor(::open(whole.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      path = "/proc/self/fd/" + std::to_string(folder_.get()) + "/" + whole.filename().string();
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

/// As a host takes it, with the line break.
constexpr std::size_t kLongestRequest = ControlTalk::kLongestRequest + 1;
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

Error hung_up() { return Error(ErrorCode::unavailable, "the host has hung up without a word"); }

/// When the process has no descriptor left for a caller, the next try.
constexpr Duration kAcceptRetry = std::chrono::milliseconds(100);

bool may_ask(const ControlPeer& peer) { return peer.user == 0 || peer.user == ::geteuid(); }

/// Milliseconds for poll(2), rounded up; -1: for ever.
int poll_time(SteadyTime until, SteadyTime now) {
  if (until == SteadyTime::max()) {
    return -1;
  }
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(std::max(Duration(until - now), Duration::zero()));
  return static_cast<int>(std::min<std::int64_t>(left.count(), 60'000));
}

/// More than any host runs: every worker of many jobs, each on a message with a long id.
constexpr std::size_t kLongestRecord = 4 * 1024 * 1024;

fleet::Directive order_of(const ControlRequest& request, const ControlPeer& peer, const fleet::HostRecord& host) {
  fleet::Directive order;
  order.by = "user " + std::to_string(peer.user) + " at the control socket";
  if (request.verb == ControlVerb::cancel_running) {
    order.wish = fleet::Wish::cancel_running;
    order.target = fleet::Target::message;
    order.name = request.message;
  } else {
    order.wish = request.verb == ControlVerb::drain ? fleet::Wish::drain : fleet::Wish::reload;
    order.target = fleet::Target::host;
    order.name = host.instance;
  }
  return order;
}

}  // namespace

std::string_view to_string(ControlVerb verb) { return kVerbs[static_cast<std::size_t>(verb)]; }

std::string encode(const ControlRequest& request) {
  fleet::NoticeWriter line;
  line.put("command", request.verb);
  line.put("message", request.message);
  line.put("wait", request.wait);
  return std::move(line).finish();
}

Result<ControlRequest> decode_request(std::string_view line) {
  ControlRequest request;
  JsonReader reader = reader_of(line);
  std::string_view name;
  bool named = false;
  bool good = reader.begin_object();
  while (good && reader.next_member(name)) {
    if (name == "command") {
      named = true;
      good = read_verb(reader, request.verb);
    } else {
      good = name == "message" ? reader.read_string(request.message)
             : name == "wait"  ? reader.read_bool(request.wait)
                               : reader.skip();
    }
  }
  if (good && !reader.failed() && !named) {
    reader.fail("\"command\" is missing");
  }
  if (!reader.finish() || reader.failed()) {
    return unreadable("the request", reader);
  }
  return request;
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
  JsonReader reader = reader_of(line);
  std::string_view name;
  bool done = false;
  bool good = reader.begin_object();
  while (good && reader.next_member(name)) {
    if (name == "ended") {
      good = read_ending(reader, answer.ending.emplace());
    } else if (name == "host") {
      std::string_view record;
      good = reader.read_raw(record);
      answer.record = record;
    } else {
      good = name == "ok"      ? reader.read_bool(done)
             : name == "error" ? reader.read_string(answer.error)
             : name == "text"  ? reader.read_string(answer.text)
                               : reader.skip();
    }
  }
  if (good && !reader.failed() && !done && answer.error.empty()) {
    reader.fail("it says neither that it is done nor why not");
  }
  if (!reader.finish() || reader.failed()) {
    return unreadable("the host's answer", reader);
  }
  return answer;
}

std::vector<std::string> ControlFolder::sockets() const { return isolation::files_in(path_, kExtension); }

Result<ListeningSocket> ControlFolder::listen() const {
  SLUICE_PASS_ON(isolation::make_private_folder(path_));
  for (const std::string& dead : sockets()) {
    if (const auto found = connect(dead); !found && found.error().code() == ErrorCode::not_found) {
      ::unlink(dead.c_str());
    }
  }
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  const std::string file = path_ + "/" + std::to_string(now) + "-" + std::to_string(::getpid()) + kExtension;
  const std::string unfinished = file + ".new";
  Descriptor made = new_socket();
  // The file takes its mode from the socket, so that there is no moment in which others could connect.
  if (!made.open() || ::fchmod(made.get(), 0600) != 0) {
    return cannot("the control socket " + file + " cannot be made", errno);
  }
  const SocketAddress address(unfinished);
  if (::bind(made.get(), address.get(), address.size()) != 0) {
    return cannot("the control socket " + file + " cannot be made", errno);
  }
  if (::listen(made.get(), kBacklog) != 0 || ::rename(unfinished.c_str(), file.c_str()) != 0) {
    const int code = errno;
    ::unlink(unfinished.c_str());
    return cannot("the control socket " + file + " cannot be made", code);
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
  if (line.size() > kLongestRequest) {
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
      found.speechless.push_back(introduced.error());
    }
  }
  return found;
}

std::optional<std::string> ControlTalk::received(std::string_view bytes) {
  if (stage_ != Stage::listening) {
    return std::nullopt;
  }
  const auto end = bytes.find('\n');
  const std::size_t room = kLongestRequest + 1 - request_.size();
  request_ += bytes.substr(0, std::min(end, room));
  if (request_.size() > kLongestRequest) {
    stage_ = Stage::asked;
    return std::nullopt;
  }
  if (end == std::string_view::npos) {
    return std::nullopt;
  }
  stage_ = Stage::asked;
  return std::exchange(request_, {});
}

void ControlTalk::sent(std::size_t count, SteadyTime now) {
  sent_ += count;
  if (stage_ != Stage::answering) {
    return;
  }
  deadline_ = now + kAnswerTime;
  if (sent_ == answer_.size()) {
    stage_ = then_ == Then::end ? Stage::ended : Stage::waiting;
    deadline_ = SteadyTime::max();
  }
}

ControlSocket::ControlSocket(ListeningSocket socket, Answer answer, const Clock& clock)
    : socket_(std::move(socket)),
      answer_(std::move(answer)),
      clock_(clock),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  SLUICE_ASSERT(wake_.open());
}

void ControlSocket::stop() {
  thread_.request_stop();
  wake();
  thread_.stop();
  ::unlink(socket_.file.c_str());
}

void ControlSocket::tell(std::uint64_t number, const ControlAnswer& answer) {
  const MutexLock lock(mutex_);
  told_ = number;
  told_line_ = encode(answer);
  for (Caller& caller : callers_) {
    if (caller.awaits <= number) {
      caller.talk.second_line(told_line_, clock_.steady_now());
      // Here and now, as the process may be gone before the thread comes to it. It does not block.
      write_to(caller);
    }
  }
}

void ControlSocket::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<pollfd> watched = what_to_watch();
    const SteadyTime now = clock_.steady_now();
    if (::poll(watched.data(), watched.size(), poll_time(next_deadline(), now)) < 0 && errno != EINTR) {
      return;
    }
    if (stop.stop_requested()) {
      return;
    }
    serve_callers(watched);
    if ((watched[0].revents & POLLIN) != 0) {
      admit();
    }
  }
}

// The first two are the door and the wake-up; the others are the callers, in their order.
std::vector<pollfd> ControlSocket::what_to_watch() {
  const bool rests = clock_.steady_now() < accepts_again_;
  const MutexLock lock(mutex_);
  std::vector<pollfd> watched{{rests || told_ == ControlReply::kFarewell ? -1 : socket_.descriptor.get(), POLLIN, 0},
                              {wake_.get(), POLLIN, 0}};
  for (const Caller& caller : callers_) {
    short events = caller.talk.reads() ? POLLIN : 0;
    events = static_cast<short>(events | (caller.talk.unsent().empty() ? 0 : POLLOUT));
    watched.push_back({caller.descriptor.get(), events, 0});
  }
  return watched;
}

SteadyTime ControlSocket::next_deadline() {
  const SteadyTime now = clock_.steady_now();
  SteadyTime next = now < accepts_again_ ? accepts_again_ : SteadyTime::max();
  const MutexLock lock(mutex_);
  for (const Caller& caller : callers_) {
    next = std::min(next, caller.talk.deadline());
  }
  return next;
}

void ControlSocket::serve_callers(const std::vector<pollfd>& watched) {
  std::vector<Question> questions;
  {
    const MutexLock lock(mutex_);
    auto ready = watched.begin() + 2;
    for (Caller& caller : callers_) {
      const short events = (ready++)->revents;
      if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) {
        read_from(caller, questions);
      }
      write_to(caller);
    }
  }
  for (const Question& question : questions) {
    reply(*question.caller, answer_to(question));
  }
  const MutexLock lock(mutex_);
  const SteadyTime now = clock_.steady_now();
  callers_.remove_if([now](Caller& caller) {
    caller.talk.tick(now);
    return caller.talk.ended();
  });
}

void ControlSocket::read_from(Caller& caller, std::vector<Question>& questions) {
  std::array<char, 1024> bytes;
  for (ssize_t got = 1; got > 0 && caller.talk.reads();) {
    got = ::recv(caller.descriptor.get(), bytes.data(), bytes.size(), 0);
    if (got < 0) {
      if (errno != EAGAIN && errno != EINTR) {
        caller.talk.closed();
      }
      return;
    }
    if (got == 0) {
      caller.talk.closed();
      return;
    }
    auto line = caller.talk.received({bytes.data(), static_cast<std::size_t>(got)});
    if (line || caller.talk.too_long()) {
      questions.push_back({&caller, std::move(line)});
      return;
    }
  }
}

void ControlSocket::write_to(Caller& caller) {
  while (!caller.talk.unsent().empty()) {
    const std::string_view text = caller.talk.unsent();
    const ssize_t sent = ::send(caller.descriptor.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
      if (errno != EAGAIN && errno != EINTR) {
        caller.talk.gone();
      }
      return;
    }
    caller.talk.sent(static_cast<std::size_t>(sent), clock_.steady_now());
  }
}

ControlReply ControlSocket::answer_to(const Question& question) const {
  const auto refusal = [](const std::string& why) { return ControlReply{ControlAnswer::refusal(why), std::nullopt}; };
  if (!may_ask(question.caller->peer)) {
    return refusal("user " + std::to_string(question.caller->peer.user) +
                   " may not steer this host; only its own user and root may");
  }
  if (!question.line) {
    return refusal("a request has at most " + std::to_string(ControlTalk::kLongestRequest) + " bytes");
  }
  const auto request = decode_request(*question.line);
  return request ? answer_(*request, question.caller->peer) : refusal(request.error().message());
}

void ControlSocket::reply(Caller& caller, const ControlReply& reply) {
  const MutexLock lock(mutex_);
  const SteadyTime now = clock_.steady_now();
  caller.awaits = reply.awaits.value_or(0);
  caller.talk.answer(encode(reply.answer), reply.awaits ? ControlTalk::Then::second_line : ControlTalk::Then::end, now);
  if (reply.awaits && *reply.awaits <= told_) {
    caller.talk.second_line(told_line_, now);
  }
  write_to(caller);
}

void ControlSocket::admit() {
  Descriptor accepted(::accept4(socket_.descriptor.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  const SteadyTime now = clock_.steady_now();
  if (!accepted.open()) {
    const bool passes = errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
    accepts_again_ = passes ? SteadyTime{} : now + kAcceptRetry;
    return;
  }
  const ControlPeer peer{.user = peer_of(accepted.get()).uid};
  const MutexLock lock(mutex_);
  if (callers_.size() >= kMostCallers) {
    callers_.pop_front();
  }
  callers_.emplace_back(std::move(accepted), peer, now);
}

ControlResponder::ControlResponder(const Parts& parts) : parts_(parts) {
  const auto answers = [this](const ControlRequest& request, const ControlPeer& peer) { return answer(request, peer); };
  auto opened = ControlSocket::open(ControlFolder::of(parts.config), answers, parts.clock);
  Result<void> started = opened ? (*opened)->start() : opened.error();
  if (!started) {
    parts.log.warn("no control socket: this host can be steered through its store and by signals only",
                   {{"why", started.error().message()}, {"mend", "let the host write to [host] state_dir"}});
    return;
  }
  socket_ = std::move(*opened);
}

ControlReply ControlResponder::answer(const ControlRequest& request, const ControlPeer& peer) {
  switch (request.verb) {
    case ControlVerb::about:
      return {{.error = {}, .text = {}, .record = write_record(parts_.host.describe(), kLongestRecord), .ending = {}},
              std::nullopt};
    case ControlVerb::look:
      parts_.host.look_now();
      return {{.error = {}, .text = "looks at what operators want", .record = {}, .ending = {}}, std::nullopt};
    default:
      return obey(request, peer);
  }
}

ControlReply ControlResponder::obey(const ControlRequest& request, const ControlPeer& peer) {
  if (request.verb == ControlVerb::cancel_running && request.message.empty()) {
    return {ControlAnswer::refusal("\"message\" is missing: the id of the message"), std::nullopt};
  }
  std::optional<std::uint64_t> awaits;
  if (request.wait && request.verb == ControlVerb::drain) {
    awaits = ControlReply::kFarewell;
  } else if (request.wait && request.verb == ControlVerb::reload) {
    // Before it is asked for, so that no reload can begin that is for this caller and is not told to him.
    const MutexLock lock(mutex_);
    awaits = ++asked_;
  }
  const fleet::Answer answer = parts_.host.obey(order_of(request, peer, parts_.host.describe()));
  if (!answer.done) {
    return {ControlAnswer::refusal(answer.text), std::nullopt};
  }
  return {{.error = {}, .text = answer.text, .record = {}, .ending = {}}, awaits};
}

void ControlResponder::reload_ended(const ReloadResult& result) {
  std::uint64_t covered = 0;
  {
    const MutexLock lock(mutex_);
    covered = covered_;
  }
  if (socket_ && covered > 0) {
    ControlAnswer told = result.taken ? ControlAnswer{} : ControlAnswer::refusal(result.text);
    told.text = result.taken ? result.text : std::string();
    socket_->tell(covered, told);
  }
}

}  // namespace sluice::runtime
