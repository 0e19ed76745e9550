#include "host/runtime/control_socket.hpp"

#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include "base/assert.hpp"

namespace sluice::runtime {

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

namespace {

/// When the process has no descriptor left for a caller, the next try.
constexpr Duration kAcceptRetry = std::chrono::milliseconds(100);

ControlPeer peer_of(int descriptor) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return {.user = static_cast<std::uint32_t>(-1)};
  }
  return {.user = credentials.uid};
}

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
  const ControlPeer peer = peer_of(accepted.get());
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
