#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.hpp"
#include "base/error.hpp"
#include "host/queue/wake/address.hpp"

namespace sluice::queue::wake {

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
