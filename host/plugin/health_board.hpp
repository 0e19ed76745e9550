#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"

namespace sluice::plugin {

/// What of a report is taken.
inline constexpr std::size_t kHealthNameLimit = 64;
inline constexpr std::size_t kHealthTextLimit = 512;
inline constexpr std::size_t kHealthParts = 16;  ///< of one instance

/// How something that handlers work with fares, such as their broker. A value.
struct PartHealth {
  std::string part;
  bool works = true;
  std::string text;  ///< one line
};

/// Where one instance of a handler says how what it works with fares. Thread-safe.
class HealthSeat {
 public:
  virtual ~HealthSeat() = default;

  /// Replaces what was said of the part. A name that is empty or too long, and more parts than an instance may have,
  /// are not taken.
  virtual void report(std::string_view part, bool works, std::string_view text) noexcept = 0;
  /// Takes back everything that was said.
  virtual void clear() noexcept = 0;
};

/// What the instances of a job's handler say of what they work with. Thread-safe; seats may outlast it.
class HealthBoard {
 public:
  HealthBoard() : notes_(std::make_shared<Notes>()) {}

  /// For one instance; what it said is taken back with the seat.
  std::shared_ptr<HealthSeat> seat();
  /// By name. A part fails when an instance says so; where others say that it works, so many of them are told.
  std::vector<PartHealth> parts() const;

 private:
  class Seat;
  struct Note {
    bool works = true;
    std::string text;
  };
  struct Notes {
    Mutex mutex;
    std::map<std::string, std::map<const Seat*, Note>, std::less<>> by_part SLUICE_GUARDED_BY(mutex);
  };

  const std::shared_ptr<Notes> notes_;
};

}  // namespace sluice::plugin
