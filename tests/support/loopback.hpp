#pragma once

#include <cstdint>

namespace sluice::test {

/// A file descriptor that closes itself. Movable, not copyable.
class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return value_; }
  explicit operator bool() const { return value_ >= 0; }
  int release() {
    const int value = value_;
    value_ = -1;
    return value;
  }
  void reset(int value = -1);

 private:
  int value_;
};

/// A socket that listens on 127.0.0.1; port 0 picks a free one. Throws std::runtime_error.
Descriptor listen_on_loopback(int port = 0);
/// The port a socket is bound to.
int local_port(const Descriptor& socket);
/// A port that was free a moment ago. Another process may take it first: a server is started so often, each time with
/// another one.
int free_loopback_port();
inline constexpr int kStartAttempts = 5;
/// A connection to 127.0.0.1:port, or an empty descriptor when nobody listens.
Descriptor connect_to_loopback(int port);

}  // namespace sluice::test
