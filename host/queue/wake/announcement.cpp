#include "host/queue/wake/announcement.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/text/number.hpp"
#include "host/queue/wake/datagram.hpp"

namespace sluice::queue::wake {

namespace {

using std::chrono::seconds;

constexpr std::string_view kVersion = "1";
constexpr std::string_view kDeadLetters = "/dlq";

std::int64_t whole_seconds(Duration span) { return std::chrono::duration_cast<seconds>(span).count(); }

/// Takes the word at the head of the text away, up to a space.
std::string_view next_word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

/// Seconds, from none to as many as a time of 64 bits of nanoseconds has.
std::optional<seconds> seconds_of(std::string_view word) {
  constexpr std::int64_t kMost = 9'000'000'000;
  const auto count = parse_number<std::int64_t>(word);
  return count >= 0 && count <= kMost ? std::optional(seconds(*count)) : std::nullopt;
}

}  // namespace

std::string bell_name(std::string_view place, Half half) {
  return std::string(place) + (half == Half::dlq ? std::string(kDeadLetters) : "");
}

std::string encode(const Announcement& announcement) {
  std::string text(kVersion);
  text += ' ' + announcement.address;
  text += ' ' + std::to_string(whole_seconds(announcement.at.time_since_epoch()));
  text += ' ' + std::to_string(whole_seconds(announcement.every));
  for (const std::string& queue : announcement.queues) {
    text += ' ' + queue;
  }
  return text;
}

std::optional<Announcement> decode(std::string host, std::string_view text) {
  if (text.size() > kMostAnnouncementBytes || next_word(text) != kVersion) {
    return std::nullopt;
  }
  Announcement announcement{.host = std::move(host)};
  const auto address = parse_address(next_word(text));
  const auto at = seconds_of(next_word(text));
  const auto every = seconds_of(next_word(text));
  if (!address || address->address().is_unspecified() || address->port() == 0 || !at || !every ||
      *every == seconds(0)) {
    return std::nullopt;
  }
  announcement.address = text_of(*address);
  announcement.at = WallTime(*at);
  announcement.every = *every;
  while (!text.empty()) {
    const std::string_view queue = next_word(text);
    if (queue.empty() || queue.size() > kMostNameBytes) {
      return std::nullopt;
    }
    announcement.queues.emplace_back(queue);
  }
  return announcement;
}

bool fresh(const Announcement& announcement, WallTime now) {
  const Duration life = kIntervalsToLive * std::min(announcement.every, kLongestInterval);
  return announcement.at <= now + kFarthestAhead && now <= announcement.at + life;
}

void Announcer::queues(std::vector<std::string> queues) {
  if (queues == queues_) {
    return;
  }
  queues_ = std::move(queues);
  next_ = SteadyTime::min();
}

void Announcer::announced(double write_units, SteadyTime now) {
  stands_ = true;
  retry_ = kFirstRetry;
  const std::chrono::duration<double> affordable(write_units / kWriteUnits);
  // What was announced says when the next one comes; a longer interval counts from that one on.
  next_ = now + interval_;
  interval_ = std::clamp(std::chrono::duration_cast<Duration>(affordable), kEvery, kLongestInterval);
}

void Announcer::failed(SteadyTime now) {
  // It may have been written all the same.
  stands_ = true;
  next_ = now + retry_;
  retry_ = std::min(kLastRetry, retry_ * 2);
}

}  // namespace sluice::queue::wake
