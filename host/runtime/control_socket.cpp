#include "host/runtime/control_socket.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>
#include <vector>

#include "base/assert.hpp"

namespace sluice::runtime {
namespace {

/// When the process has no descriptor left for a caller, the next try.
constexpr Duration kAcceptRetry = std::chrono::milliseconds(100);

ControlPeer peer_of(int descriptor) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return {.user = static_cast<std::uint32_t>(-1), .process = 0};
  }
  return {.user = credentials.uid, .process = credentials.pid};
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

}  // namespace

Result<std::unique_ptr<ControlSocket>> ControlSocket::open(const ControlFolder& folder, Answer answer,
                                                           const Clock& clock) {
  SLUICE_TRY(socket, folder.listen());
  return std::unique_ptr<ControlSocket>(new ControlSocket(std::move(*socket), std::move(answer), clock));
}

ControlSocket::ControlSocket(ListeningSocket socket, Answer answer, const Clock& clock)
    : socket_(std::move(socket)),
      answer_(std::move(answer)),
      clock_(clock),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  SLUICE_ASSERT(wake_.open());
}

ControlSocket::~ControlSocket() { stop(); }

Result<void> ControlSocket::start() {
  try {
    thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
  } catch (const std::system_error& error) {
    return Error(ErrorCode::unavailable, "cannot make the thread of the control socket: " + error.code().message());
  }
  return {};
}

void ControlSocket::stop() {
  const MutexLock lock(stopping_);
  thread_.request_stop();
  wake();
  if (thread_.joinable()) {
    thread_.join();
  }
  ::unlink(socket_.file.c_str());
}

void ControlSocket::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof(one));
}

void ControlSocket::farewell(const ControlEnding& ending) {
  ::unlink(socket_.file.c_str());
  tell(ControlReply::kFarewell, {.error = {}, .text = {}, .record = {}, .ending = ending});
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

}  // namespace sluice::runtime
