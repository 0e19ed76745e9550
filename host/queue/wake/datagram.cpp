#include "host/queue/wake/datagram.hpp"

#include <poll.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <boost/endian/arithmetic.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/resolver.hpp"
#include "base/text/host_and_port.hpp"
#include "base/text/number.hpp"
#include "dynamo/signing/digest.hpp"
#include "host/queue/wake/announcement.hpp"

namespace sluice::queue::wake {

namespace {

using std::chrono::milliseconds;

/// How a datagram begins; the name follows, and the signature.
struct Header {
  std::array<char, 4> magic{'S', 'L', 'W', 'K'};
  std::uint8_t version = 1;
  std::uint8_t is_signed = 0;
  boost::endian::big_uint16_t name_bytes{};
  boost::endian::big_int64_t at{};  ///< milliseconds since 1970
  boost::endian::big_uint64_t nonce{};
};
static_assert(sizeof(Header) == 24);

constexpr std::size_t kSignatureBytes = 32;
constexpr std::int64_t kLatest = 9'000'000'000'000;  // milliseconds, within times of 64 bits of nanoseconds

std::string signature_of(std::string_view content, const std::string& secret) {
  const dynamo::Digest digest = dynamo::hmac_sha256(secret, content);
  return {digest.begin(), digest.end()};
}

constexpr std::array<std::string_view, kRingResults> kNames{"rung",     "limited", "unknown_queue", "malformed",
                                                            "unsigned", "forged",  "stale",         "replayed"};

}  // namespace

std::string write_datagram(const Ring& ring, const std::string& secret) {
  const std::string name = ring.queue.substr(0, kMostNameBytes);
  Header header;
  header.is_signed = secret.empty() ? 0 : 1;
  header.name_bytes = static_cast<std::uint16_t>(name.size());
  header.at = std::chrono::duration_cast<milliseconds>(ring.at.time_since_epoch()).count();
  header.nonce = ring.nonce;
  const std::string bytes = std::string(reinterpret_cast<const char*>(&header), sizeof(header)) + name;
  return secret.empty() ? bytes : bytes + signature_of(bytes, secret);
}

std::optional<Datagram> Datagram::read(std::string_view bytes) {
  if (bytes.size() < sizeof(Header) || bytes.size() > kMostDatagramBytes) {
    return std::nullopt;
  }
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const std::size_t name = header.name_bytes;
  const std::size_t tail = header.is_signed == 1 ? kSignatureBytes : 0;
  if (header.magic != Header().magic || header.version != Header().version || header.is_signed > 1 || name == 0 ||
      name > kMostNameBytes || bytes.size() != sizeof(Header) + name + tail || header.at < 0 || header.at > kLatest) {
    return std::nullopt;
  }
  Datagram read;
  read.ring_ = {std::string(bytes.substr(sizeof(Header), name)), WallTime(milliseconds(header.at)), header.nonce};
  read.content_ = bytes.substr(0, bytes.size() - tail);
  read.signature_ = bytes.substr(bytes.size() - tail);
  return read;
}

bool Datagram::signed_with(const std::string& secret) const {
  const std::string right = signature_of(content_, secret);
  unsigned difference = right.size() == signature_.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(right.size(), signature_.size()); ++i) {
    difference |= static_cast<unsigned char>(right[i]) ^ static_cast<unsigned char>(signature_[i]);
  }
  return difference == 0;
}

std::string_view to_string(RingResult result) { return kNames.at(static_cast<std::size_t>(result)); }

void RingFilter::know(std::map<std::string, WallClock> queues) {
  std::erase_if(lines_, [&queues](const auto& line) { return !queues.contains(line.first); });
  for (auto& [queue, clock] : queues) {
    const auto [line, added] = lines_.try_emplace(queue);
    line->second.clock = std::move(clock);
    if (added) {
      line->second.looks = rate();
    }
  }
}

RingFilter::Judgement RingFilter::judge(std::string_view bytes, SteadyTime now) {
  const auto datagram = Datagram::read(bytes);
  if (!datagram) {
    return {RingResult::malformed, {}};
  }
  const auto found = lines_.find(datagram->ring().queue);
  if (found == lines_.end()) {
    return {RingResult::unknown_queue, {}};
  }
  auto& [queue, line] = *found;
  if (const RingResult refused = refusal(*datagram, line); refused != RingResult::rung) {
    return {refused, {}};
  }
  fill(line, now);
  if (line.looks < 1) {
    line.owed = true;
    return {RingResult::limited, queue};
  }
  line.looks -= 1;
  return {RingResult::rung, queue};
}

// `rung` where there is none.
RingResult RingFilter::refusal(const Datagram& datagram, const Line& line) {
  if (secret_.empty()) {
    return RingResult::rung;
  }
  if (!datagram.is_signed()) {
    return RingResult::without_signature;
  }
  if (!datagram.signed_with(secret_)) {
    return RingResult::forged;
  }
  const WallTime now = line.clock();
  if (datagram.ring().at < now - kTolerance || datagram.ring().at > now + kTolerance) {
    return RingResult::stale;
  }
  if (!nonces_.insert(datagram.ring().nonce).second) {
    return RingResult::replayed;
  }
  nonces_by_age_.push_back(datagram.ring().nonce);
  if (nonces_by_age_.size() > kRemembered) {
    nonces_.erase(nonces_by_age_.front());
    nonces_by_age_.pop_front();
  }
  return RingResult::rung;
}

void RingFilter::fill(Line& line, SteadyTime now) const {
  const double seconds = std::chrono::duration<double>(std::max(now, line.at) - line.at).count();
  line.looks = std::min(rate(), line.looks + seconds * rate());
  line.at = std::max(now, line.at);
}

std::vector<std::string> RingFilter::take_due(SteadyTime now) {
  std::vector<std::string> due;
  for (auto& [queue, line] : lines_) {
    if (!line.owed) {
      continue;
    }
    fill(line, now);
    if (line.looks >= 1) {
      line.looks -= 1;
      line.owed = false;
      due.push_back(queue);
    }
  }
  return due;
}

SteadyTime RingFilter::next_due() const {
  SteadyTime next = SteadyTime::max();
  for (const auto& [queue, line] : lines_) {
    if (line.owed) {
      const std::chrono::duration<double> wait(std::max(0.0, 1 - line.looks) / rate());
      // A little later, so that what is rounded down does not wake in vain.
      next = std::min(next, line.at + std::chrono::duration_cast<Duration>(wait) + std::chrono::microseconds(1));
    }
  }
  return next;
}

namespace {

Descriptor make_socket(int family) {
  return Descriptor(::socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Error listen_error(const Address& address, int code) {
  const std::string where = "cannot listen on " + text_of(address) + " (udp): ";
  switch (code) {
    case EADDRINUSE:
      return {ErrorCode::conflict,
              where +
                  "the port is in use; choose another in [wake] listen, or end the process that has it (`ss -lnup` "
                  "names it)"};
    case EACCES:
      return {ErrorCode::denied,
              where + "not permitted; ports below 1024 need a privilege, choose a higher one in [wake] listen"};
    case EADDRNOTAVAIL:
      return {ErrorCode::invalid, where +
                                      "this machine has no such address; [wake] listen names one of its own, or "
                                      "\"0.0.0.0:PORT\" for all of them"};
    default:
      return {ErrorCode::unavailable, where + std::generic_category().message(code)};
  }
}

}  // namespace

std::optional<Address> parse_address(std::string_view text) {
  const HostAndPort parts = host_and_port(text);
  const auto port = parse_number<std::uint16_t>(parts.port);
  boost::system::error_code failed;
  const auto host = boost::asio::ip::make_address(parts.host, failed);
  return port && !failed && host.is_v6() == text.starts_with('[') ? std::optional(Address(host, *port)) : std::nullopt;
}

Result<Address> resolve_address(const std::string& text, const Clock& clock, Deadline deadline) {
  if (const auto numeric = parse_address(text)) {
    return *numeric;
  }
  const HostAndPort parts = host_and_port(text);
  const auto port = parse_number<std::uint16_t>(parts.port);
  if (parts.host.empty() || !port) {
    return Error(ErrorCode::invalid, "\"" + text + "\" is no \"host:port\"");
  }
  SLUICE_TRY(addresses, addresses_of(std::string(parts.host), clock, deadline));
  return Address(boost::asio::ip::make_address(addresses->front()), *port);
}

std::string text_of(const Address& address) {
  const std::string host = address.address().to_string();
  return (address.address().is_v6() ? "[" + host + "]" : host) + ":" + std::to_string(address.port());
}

bool DatagramSender::send(const Address& to, std::string_view bytes) {
  Descriptor& socket = to.address().is_v6() ? v6_ : v4_;
  if (!socket.open()) {
    socket = make_socket(to.protocol().family());
  }
  const auto sent =
      ::sendto(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL, to.data(), static_cast<socklen_t>(to.size()));
  return sent == static_cast<ssize_t>(bytes.size());
}

Result<DatagramListener> DatagramListener::open(const Address& address) {
  Descriptor socket = make_socket(address.protocol().family());
  if (!socket.open() || ::bind(socket.get(), address.data(), static_cast<socklen_t>(address.size())) != 0) {
    return listen_error(address, errno);
  }
  Address bound;
  auto size = static_cast<socklen_t>(bound.capacity());
  if (::getsockname(socket.get(), bound.data(), &size) != 0) {
    return listen_error(address, errno);
  }
  DatagramListener listener(bound, std::move(socket));
  if (listener.interrupter_.descriptor() < 0) {
    return listen_error(address, errno);
  }
  return listener;
}

void DatagramListener::wait(int milliseconds) {
  std::array<pollfd, 2> watched{{{socket_.get(), POLLIN, 0}, {interrupter_.descriptor(), POLLIN, 0}}};
  ::poll(watched.data(), watched.size(), milliseconds);
  interrupter_.hush();
}

std::optional<std::string_view> DatagramListener::take() {
  const auto size = ::recv(socket_.get(), buffer_.data(), buffer_.size(), 0);
  return size < 0 ? std::nullopt : std::optional(std::string_view(buffer_.data(), static_cast<std::size_t>(size)));
}

}  // namespace sluice::queue::wake
