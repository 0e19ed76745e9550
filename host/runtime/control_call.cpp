#include "host/runtime/control_call.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "host/runtime/control_talk.hpp"

namespace sluice::runtime {
namespace {

/// As a host takes it, with the line break.
constexpr std::size_t kLongestRequest = ControlTalk::kLongestRequest + 1;
constexpr std::size_t kLongestAnswer = 16 * 1024 * 1024;
constexpr Duration kIntroductionTime = std::chrono::seconds(1);

Descriptor process_behind(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0 || credentials.pid <= 0) {
    return Descriptor();
  }
  // The library here has no name for it yet.
  return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, credentials.pid, 0)));
}

Error hung_up() { return Error(ErrorCode::unavailable, "the host has hung up without a word"); }

}  // namespace

Result<ControlCall> ControlCall::open(const std::string& file, const Clock& clock) {
  SLUICE_TRY(socket, ControlFolder::connect(file));
  return ControlCall(std::move(*socket), clock);
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

Result<ControlAnswer> ControlCall::next(Deadline deadline) {
  SLUICE_TRY(line, read_line(deadline));
  return decode_answer(*line);
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

}  // namespace sluice::runtime
