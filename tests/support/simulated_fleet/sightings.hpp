#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.hpp"
#include "dynamo/attribute_value.hpp"

namespace sluice::test::sim {

/// What was seen since it was measured.
struct Report {
  double seconds = 0;
  std::uint64_t handled = 0;  ///< messages whose handler began for the first time
  std::uint64_t done = 0;     ///< messages whose end was written
  std::uint64_t failed = 0;   ///< attempts whose failure was written, and that are made again
  std::uint64_t sent = 0;
  std::uint64_t twice = 0;       ///< handlers that began once more with a message that had not failed
  std::uint64_t hand_overs = 0;  ///< writes of ownership items
  double write_units = 0;
  double read_units = 0;
  std::uint64_t requests = 0;
  std::uint64_t throttled = 0;
  double byte_seconds = 0;              ///< what lay in the tables, as storage is billed, times how long
  std::vector<Duration> latencies;      ///< send to handler, of what was sent since
  std::vector<std::uint32_t> per_tick;  ///< handlers that began, by 100 ms
  std::size_t unhandled = 0;            ///< were sent, and no handler has begun yet

  double per_second() const { return seconds > 0 ? static_cast<double>(done) / seconds : 0; }
  Duration latency(double share) const;
  /// The longest time in which no handler began.
  Duration longest_pause() const;
};

/// Follows messages from their sending to their end, and what lies in the tables.
class Sightings {
 public:
  static constexpr Duration kTick = std::chrono::milliseconds(100);

  void sent(const std::string& id, SteadyTime at);
  void began(const std::string& id, SteadyTime at);
  void done() { ++seen_.done; }
  /// The message's next beginning is no surprise.
  void failed(const std::string& id);
  /// Of an item that was written; null: it was not there, or is not any more. `indexes` hold it too.
  void changed(const dynamo::Item* before, const dynamo::Item* after, std::size_t indexes, SteadyTime at);

  /// What has been seen is forgotten, and what happens from now on counts. What is known of messages stays.
  void measure(SteadyTime now);
  Report report(SteadyTime now);
  std::uint64_t hand_overs() const { return seen_.hand_overs; }

 private:
  void note_storage(SteadyTime now);

  Report seen_;
  SteadyTime measured_from_;
  double stored_bytes_ = 0;
  SteadyTime stored_since_;
  std::unordered_set<std::string> open_;  ///< sent, and no handler has begun
  std::unordered_map<std::string, SteadyTime> sent_at_;
  std::unordered_set<std::string> handled_;  ///< of all time
  std::unordered_set<std::string> again_;    ///< have failed, and come again
};

}  // namespace sluice::test::sim
