#include "host/runtime/control_folder.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "host/isolation/private_folder.hpp"

namespace sluice::runtime {
namespace {

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

}  // namespace

std::vector<std::string> ControlFolder::sockets() const {
  std::vector<std::string> found;
  std::error_code code;
  std::filesystem::directory_iterator entries(path_, code);
  for (; !code && entries != std::filesystem::directory_iterator(); entries.increment(code)) {
    if (entries->path().extension() == kExtension) {
      found.push_back(entries->path().string());
    }
  }
  std::sort(found.begin(), found.end());  // Their names begin with the time.
  return found;
}

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

void ControlFolder::remove_dead() const {
  for (const std::string& file : sockets()) {
    if (const auto found = connect(file); !found && found.error().code() == ErrorCode::not_found) {
      ::unlink(file.c_str());
    }
  }
}

}  // namespace sluice::runtime
