#pragma once

#include <array>
#include <boost/asio/ip/udp.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/bell.hpp"
#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"

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

/// What a datagram that came in was worth.
enum class RingResult {
  rung,           ///< the queue is to be looked at now
  limited,        ///< it will be looked at soon, as it has just been often enough
  unknown_queue,  ///< nobody here works on it
  malformed,      ///< no datagram of ours
  without_signature,
  forged,    ///< signed with another secret
  stale,     ///< rung too long ago, or by a clock that is wrong
  replayed,  ///< seen before
};
inline constexpr std::size_t kRingResults = 8;

std::string_view to_string(RingResult result);  // "rung", ..., "unsigned", ...

/// Decides which datagrams wake a queue. Whoever can send them costs the queue no more than so many looks a second, and
/// whoever is to have the secret and has it not, none. Step function; not thread-safe.
class RingFilter {
 public:
  /// Looks a second at one queue that datagrams may bring about; with a secret, by those who have it.
  static constexpr double kLooks = 10;
  static constexpr double kSignedLooks = 100;
  /// How old a signed datagram may be, and how far the clocks of those who ring and are rung may differ.
  static constexpr Duration kTolerance = std::chrono::seconds(60);
  /// Signed datagrams remembered, so that none counts twice.
  static constexpr std::size_t kRemembered = 65'536;

  /// The clock by which those who ring for a queue tell the time.
  using WallClock = std::function<WallTime()>;
  struct Judgement {
    RingResult result = RingResult::malformed;
    std::string queue;  ///< with `rung` and `limited`
  };

  explicit RingFilter(std::string secret) : secret_(std::move(secret)) {}

  /// The queues that this host works on from now on, by their bells' names.
  void know(std::map<std::string, WallClock> queues);
  Judgement judge(std::string_view bytes, SteadyTime now);
  /// Those that were limited, whose turn has come: once for however many datagrams.
  std::vector<std::string> take_due(SteadyTime now);
  /// When `take_due` will have something; SteadyTime::max() for never.
  SteadyTime next_due() const;

 private:
  struct Line {
    WallClock clock;
    double looks = 0;  ///< that may be made at `at`
    SteadyTime at{};
    bool owed = false;
  };

  RingResult refusal(const Datagram& datagram, const Line& line);
  double rate() const { return secret_.empty() ? kLooks : kSignedLooks; }
  void fill(Line& line, SteadyTime now) const;

  const std::string secret_;
  std::map<std::string, Line, std::less<>> lines_;
  std::unordered_set<std::uint64_t> nonces_;
  std::deque<std::uint64_t> nonces_by_age_;
};

/// Where datagrams go to or come in: an IPv4 or IPv6 address and a port.
using Address = boost::asio::ip::udp::endpoint;
/// Reads "10.0.0.5:7011" or "[fd00::5]:7011"; asks nobody. Nothing for anything else.
std::optional<Address> parse_address(std::string_view text);
/// The same for names, too, which a name server is asked for.
Result<Address> resolve_address(const std::string& text, const Clock& clock, Deadline deadline);
/// As `parse_address` reads it.
std::string text_of(const Address& address);

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
  void interrupt() const { interrupter_.ring(); }

 private:
  DatagramListener(const Address& address, Descriptor socket) : address_(address), socket_(std::move(socket)) {}

  Address address_;
  Descriptor socket_;
  Bell interrupter_;
  std::array<char, 1'024> buffer_{};
};

}  // namespace sluice::queue::wake
