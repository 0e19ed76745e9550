#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"

namespace sluice::queue::wake {

/// What a datagram says: something has been put there. A value.
struct Ring {
  std::string queue;        ///< as `bell_name` names it
  WallTime at{};            ///< when it was rung, to the millisecond
  std::uint64_t nonce = 0;  ///< never the same again from one sender

  friend bool operator==(const Ring&, const Ring&) = default;
};

/// No datagram of ours is longer; it fits into any packet.
inline constexpr std::size_t kMostDatagramBytes = 512;

/// The bytes of a datagram, version 1: "SLWK", version, flags, the name's length in two bytes, milliseconds since 1970
/// and nonce in eight each, the name; and with a secret the HMAC-SHA-256 of all that. Numbers begin with their highest
/// byte.
std::string write_datagram(const Ring& ring, const std::string& secret);

/// A datagram as it came in. A value.
class Datagram {
 public:
  /// Nothing for what is no datagram of a version that is known here, to the last byte.
  static std::optional<Datagram> read(std::string_view bytes);

  const Ring& ring() const { return ring_; }
  bool is_signed() const { return !signature_.empty(); }
  /// Whether who signed it has that secret; takes as long for a wrong signature as for a right one.
  bool signed_with(const std::string& secret) const;

 private:
  Ring ring_;
  std::string content_;    ///< what the signature is about
  std::string signature_;  ///< empty: none
};

}  // namespace sluice::queue::wake
