#include "host/queue/wake/datagram.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include "dynamo/signing/digest.hpp"
#include "host/queue/wake/announcement.hpp"

namespace sluice::queue::wake {
namespace {

using std::chrono::milliseconds;

constexpr std::string_view kMagic = "SLWK";
constexpr unsigned char kVersion = 1;
constexpr unsigned char kSigned = 1;
constexpr std::size_t kHeaderBytes = 24;
constexpr std::size_t kSignatureBytes = 32;
constexpr std::int64_t kLatest = 9'000'000'000'000;  // milliseconds, within times of 64 bits of nanoseconds

void append(std::string& bytes, std::uint64_t number, int width) {
  for (int shift = (width - 1) * 8; shift >= 0; shift -= 8) {
    bytes += static_cast<char>((number >> static_cast<unsigned>(shift)) & 0xffU);
  }
}

std::uint64_t number_at(std::string_view bytes, std::size_t place, std::size_t width) {
  std::uint64_t number = 0;
  for (const char byte : bytes.substr(place, width)) {
    number = number << 8U | static_cast<unsigned char>(byte);
  }
  return number;
}

std::string signature_of(std::string_view content, const std::string& secret) {
  const dynamo::Digest digest = dynamo::hmac_sha256(secret, content);
  return {digest.begin(), digest.end()};
}

constexpr std::array<std::string_view, kRingResults> kNames{"rung",     "limited", "unknown_queue", "malformed",
                                                            "unsigned", "forged",  "stale",         "replayed"};

}  // namespace

std::string write_datagram(const Ring& ring, const std::string& secret) {
  const std::string name = ring.queue.substr(0, kMostNameBytes);
  std::string bytes(kMagic);
  append(bytes, kVersion, 1);
  append(bytes, secret.empty() ? 0 : kSigned, 1);
  append(bytes, name.size(), 2);
  const auto at = std::chrono::duration_cast<milliseconds>(ring.at.time_since_epoch()).count();
  append(bytes, static_cast<std::uint64_t>(at), 8);
  append(bytes, ring.nonce, 8);
  bytes += name;
  return secret.empty() ? bytes : bytes + signature_of(bytes, secret);
}

std::optional<Datagram> Datagram::read(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes || bytes.size() > kMostDatagramBytes || bytes.substr(0, kMagic.size()) != kMagic ||
      number_at(bytes, 4, 1) != kVersion || number_at(bytes, 5, 1) > kSigned) {
    return std::nullopt;
  }
  const std::size_t tail = number_at(bytes, 5, 1) == kSigned ? kSignatureBytes : 0;
  const std::size_t name = number_at(bytes, 6, 2);
  const auto at = static_cast<std::int64_t>(number_at(bytes, 8, 8));
  if (name == 0 || name > kMostNameBytes || bytes.size() != kHeaderBytes + name + tail || at < 0 || at > kLatest) {
    return std::nullopt;
  }
  Datagram read;
  read.ring_.queue = bytes.substr(kHeaderBytes, name);
  read.ring_.at = WallTime(milliseconds(at));
  read.ring_.nonce = number_at(bytes, 16, 8);
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

}  // namespace sluice::queue::wake
