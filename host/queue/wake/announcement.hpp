#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/message.hpp"

/// Doorbells between machines: hosts announce where a datagram wakes them, and who has put something there rings. Knows
/// no store; nothing depends on it but how soon a message is seen.
namespace sluice::queue::wake {

/// What one host says about where it can be woken, and for which queues. A value.
struct Announcement {
  std::string host;     ///< whose it is; two hosts never have the same
  std::string address;  ///< "10.0.0.5:7011" or "[fd00::5]:7011": numbers, so that nobody who rings asks a name server
  std::vector<std::string> queues;  ///< by the names that `bell_name` gives them
  WallTime at{};                    ///< when it was written, by the store's clock
  Duration every{};                 ///< the next one comes so much later at the latest

  friend bool operator==(const Announcement&, const Announcement&) = default;
};

/// So many of its intervals may pass before an announcement counts for nothing: its host is dead, or cannot write.
inline constexpr int kIntervalsToLive = 3;
/// The longest interval that is believed, and how far ahead of the reader's clock the writer's may be.
inline constexpr Duration kLongestInterval = std::chrono::hours(1);
inline constexpr Duration kFarthestAhead = std::chrono::minutes(5);
/// The longest text of an announcement, and the longest name of a queue in one.
inline constexpr std::size_t kMostAnnouncementBytes = 4'096;
inline constexpr std::size_t kMostNameBytes = 300;

/// How hosts and producers name a half of a queue to each other. `place` is what a store's own users agree upon, such
/// as the table: a producer may know the queue by another name than the host does.
std::string bell_name(std::string_view place, Half half);

/// One line: everything but the host, which is the key that a store keeps it under. `decode` gives nothing for what it
/// did not write: a text that is too long, another version, an address that is none, a time that cannot be.
std::string encode(const Announcement& announcement);
std::optional<Announcement> decode(std::string host, std::string_view text);

/// Whether its host may be taken for alive.
bool fresh(const Announcement& announcement, WallTime now);

}  // namespace sluice::queue::wake
