#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "host/cost/spent.hpp"

namespace sluice::cost {

/// What the values of an attribute have used: the dearest ones one by one, the others as one. However many values there
/// are, it keeps a bounded number of them.
///
/// What is told of a value is what it used since it is told one by one, so that each figure only grows: a value that
/// another takes the place of vanishes, and begins at nothing should it come back. Which are the dearest is found by
/// the Space-Saving algorithm. Not thread-safe: its owner's lock guards it.
class TopValues {
 public:
  struct Named {
    std::string value;
    Usage usage;
  };
  struct View {
    std::vector<Named> values;  ///< the dearest first
    Usage other;                ///< of those that were not told one by one at the time
    Usage gone;                 ///< of those that were, and are not any more
  };

  /// At most `shown` are told one by one.
  explicit TopValues(std::size_t shown) : shown_(shown) {}

  /// `weight`: by what the dearest are found.
  void add(const std::string& value, const Usage& usage, double weight);
  View view() const;

 private:
  struct Entry {
    double rank = 0;
    bool shown = false;
    Usage usage;  ///< since it is shown
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  Entry& entry_of(const std::string& value);
  bool takes_a_place(Entry& entry);
  Entries::iterator lowest(bool shown);

  // Fixed after construction.
  const std::size_t shown_;

  Entries entries_;
  std::size_t shown_now_ = 0;
  Usage other_;
  Usage gone_;
};

}  // namespace sluice::cost
