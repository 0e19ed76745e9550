#include "host/runtime/control_protocol.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>

#include "base/text/json_reader.hpp"
#include "base/text/json_writer.hpp"
#include "host/isolation/state_folder.hpp"
#include "host/runtime/control_socket.hpp"

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

void write_text(JsonWriter& json, std::string_view name, std::string_view value) {
  if (!value.empty()) {
    json.member(name, value);
  }
}

constexpr int kBacklog = 128;
constexpr const char* kExtension = ".sock";

Error cannot(const std::string& what, int code) {
  return Error(code == ENOSPC || code == EDQUOT ? ErrorCode::full : ErrorCode::denied,
               what + ": " + std::strerror(code));
}

/// The address of a socket's file. One with a long path is reached through a descriptor of its folder, as an address
/// has room for a hundred characters only.
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

std::string_view to_string(ControlVerb verb) { return kVerbs[static_cast<std::size_t>(verb)]; }

std::string encode(const ControlRequest& request) {
  JsonWriter json(JsonWriter::Layout::compact, JsonWriter::Strings::plain);
  json.begin_object();
  json.member("command", to_string(request.verb));
  write_text(json, "message", request.message);
  if (request.wait) {
    json.member("wait", true);
  }
  json.end_object();
  return json.take_text();
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
  JsonWriter json(JsonWriter::Layout::compact, JsonWriter::Strings::plain);
  json.begin_object();
  json.member("ok", answer.error.empty());
  write_text(json, "error", answer.error);
  write_text(json, "text", answer.text);
  if (!answer.record.empty()) {
    json.key("host");
    json.word(answer.record);
  }
  if (answer.ending) {
    json.key("ended");
    json.begin_object();
    json.member("status", answer.ending->status);
    write_text(json, "certificate", answer.ending->certificate);
    json.end_object();
  }
  json.end_object();
  return json.take_text();
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
  remove_dead();
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

}  // namespace sluice::runtime
