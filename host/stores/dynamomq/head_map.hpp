#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "dynamo/client.hpp"

namespace sluice::queue::dynamomq {

/// Records that lie next to each other in the index, up to and with the sort key `to`.
struct Stretch {
  std::string to;
  double units = 0;             ///< that reading its hidden records takes
  std::optional<WallTime> due;  ///< when the first record that others hide comes due; nothing: none does
};

/// What a host knows of the records that it has passed, from the head of the index on: where they lie, what it takes to
/// read them again, and when that will be worth it. The stretches follow each other without a gap. A value; not
/// thread-safe.
class HeadMap {
 public:
  /// Where to read again.
  struct Place {
    std::string from;    ///< inclusive; empty: from the start
    std::string to;      ///< inclusive
    dynamo::Item after;  ///< where an earlier reading broke off; empty: at `from`
  };

  void clear();
  bool empty() const { return stretches_.empty(); }
  double units() const { return units_; }

  /// Records behind all that are known, or with the key of the last one. Where they are read `again`, what is known of
  /// them only learns when it is due.
  void append(const Stretch& stretch, bool again);
  /// Nobody has read what lies between the last one known and this key.
  void append_unread(const std::string& to);
  /// That place was read, as far as `rest` (empty: to its end), and this was there.
  void replace(const Place& place, const std::vector<Stretch>& found, const dynamo::Item& rest, WallTime now);
  /// The record with that key comes due then; one behind the map is none of its business.
  void expect(std::string_view sort_key, WallTime due);
  /// Any record may be due.
  void expect_anywhere(WallTime due);

  /// When the first stretch is due; nothing: none is.
  std::optional<WallTime> first_due() const;
  /// The stretch that has been due longest; nothing: none is.
  std::optional<Place> due(WallTime now) const;
  /// The stretch behind that key; from the start again where there is none, and nothing when the map is empty.
  std::optional<Place> behind(const std::string& key) const;
  /// Up to where it reaches; empty: nothing is known.
  std::string end() const { return stretches_.empty() ? std::string() : stretches_.rbegin()->first; }

 private:
  struct Known {
    double units = 0;
    std::optional<WallTime> due;
    dynamo::Item after;
  };
  using Stretches = std::map<std::string, Known, std::less<>>;  // by their last key

  Place place_of(Stretches::const_iterator stretch) const;

  Stretches stretches_;
  double units_ = 0;
};

/// What may be spent on reading that finds nothing to do. It fills with time, and may be overdrawn once. A value.
class ReadPurse {
 public:
  ReadPurse(double per_second, double most) : per_second_(per_second), most_(most), units_(most) {}

  /// Whether something may be spent.
  bool open(SteadyTime now) const { return held(now) > 0; }
  /// How long until it is.
  Duration wait(SteadyTime now) const;
  void spend(double units, SteadyTime now);

 private:
  double held(SteadyTime now) const;

  double per_second_;
  double most_;
  double units_;
  SteadyTime at_ = SteadyTime::min();  // nothing has been spent yet
};

}  // namespace sluice::queue::dynamomq
