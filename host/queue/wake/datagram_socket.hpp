#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/error.hpp"

namespace sluice::queue::wake {

/// Where datagrams go to or come in: an IPv4 or IPv6 address and a port. A value.
class Address {
 public:
  /// Reads "10.0.0.5:7011" or "[fd00::5]:7011"; asks nobody. Nothing for anything else.
  static std::optional<Address> parse(std::string_view text);
  /// The same for names, too, which a name server is asked for; that may take its time.
  static Result<Address> resolve(const std::string& text);
  static Address of(const sockaddr_storage& storage);

  /// As `parse` reads it.
  std::string text() const;
  std::uint16_t port() const;
  void set_port(std::uint16_t port);
  /// Stands for every address of the machine, so that nobody can send there.
  bool wildcard() const;

  int family() const { return storage_.ss_family; }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const { return family() == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in); }

 private:
  Address() = default;

  sockaddr_in& v4() { return reinterpret_cast<sockaddr_in&>(storage_); }
  sockaddr_in6& v6() { return reinterpret_cast<sockaddr_in6&>(storage_); }
  const sockaddr_in& v4() const { return reinterpret_cast<const sockaddr_in&>(storage_); }
  const sockaddr_in6& v6() const { return reinterpret_cast<const sockaddr_in6&>(storage_); }

  sockaddr_storage storage_{};
};

/// Sends datagrams without ever waiting for anything. Not thread-safe. A resource.
class DatagramSender {
 public:
  /// False: the system would not take it. True says nothing about whether it arrives.
  bool send(const Address& to, std::string_view bytes);

 private:
  Descriptor v4_;
  Descriptor v6_;
};

/// Takes datagrams in. Used by one thread, but for `interrupt`. A resource; sends nothing.
class DatagramListener {
 public:
  /// Port 0: any that is free. ErrorCode::conflict, denied, invalid or unavailable, with the mend.
  static Result<DatagramListener> open(const Address& address);

  /// Where it listens, its port included.
  const Address& address() const { return address_; }
  /// Waits until something has come, `milliseconds` have passed (below zero: for ever), or it is interrupted.
  void wait(int milliseconds);
  /// What has come first, cut to a little more than the longest datagram of ours; nothing: no more is there. Valid
  /// until the next call.
  std::optional<std::string_view> take();
  /// Ends a wait under way, or the next one. From any thread.
  void interrupt() const;

 private:
  DatagramListener(Address address, Descriptor socket, Descriptor interrupter)
      : address_(address), socket_(std::move(socket)), interrupter_(std::move(interrupter)) {}

  Address address_;
  Descriptor socket_;
  Descriptor interrupter_;  // an eventfd
  std::array<char, 1'024> buffer_{};
};

}  // namespace sluice::queue::wake
