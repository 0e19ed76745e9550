#pragma once

#include <boost/system/result.hpp>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.hpp"
#include "host/queue/stored_message.hpp"

namespace sluice::operate {

/// A message under a filter's eyes.
class FilterView;
using FilterCondition = std::function<bool(FilterView&)>;

/// Where a filter's text is wrong, and how. A value.
struct [[nodiscard]] FilterError {
  std::size_t column = 1;  ///< counts characters from 1
  std::string message{};
};

/// Tells the messages that an operator means from the others:
///
///     receive_count > 3 and data.type = "invoice"
///     (state = "delayed" or age > 10m) and not attributes.tenant in ("acme", "zeta")
///     error like "*timeout*" and exists(data.items[0].sku) and sent_at < 2026-01-31T12:00:00Z
///
/// A comparison with something that the message does not have is false, whatever the operator. Numbers compare
/// exactly. A value.
class Filter {
 public:
  /// Matches everything.
  Filter() = default;

  static boost::system::result<Filter, FilterError> parse(std::string_view text);
  /// Messages whose `age`, the time since they were created, is more than that.
  static Filter older_than(Duration age);
  /// Messages whose last error holds the text; * in it stands for anything.
  static Filter error_like(std::string_view text);
  /// Messages whose last error is of that cause: its fingerprint, or such an error itself.
  static Filter error_of(std::string_view cause);
  /// Matches what both match.
  Filter also(const Filter& other) const;

  bool matches(const queue::StoredMessage& message, WallTime now) const;
  /// True when it matches everything because nothing is asked.
  bool empty() const { return !condition_; }
  /// True when it looks at the body, the content type, the attributes or the group.
  bool reads_content() const { return reads_content_; }

 private:
  Filter(FilterCondition condition, bool reads_content)
      : condition_(std::move(condition)), reads_content_(reads_content) {}

  FilterCondition condition_;  ///< empty: everything matches
  bool reads_content_ = false;
};

}  // namespace sluice::operate
