#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "host/operate/filter.hpp"
#include "host/queue/operator.hpp"

namespace sluice::operate {

/// Which messages of a queue are listed.
struct ListPlan {
  std::vector<queue::Half> halves{queue::Half::standard};  ///< one after the other
  Filter filter{};
  std::size_t limit = 0;  ///< messages at most; 0: no limit
  bool newest_first = false;
};

/// Where a list has come to.
struct ListEnding {
  std::uint64_t shown = 0;
  std::optional<std::uint64_t> total;  ///< of all that it would show without a limit, where that is known
  bool at_least = false;               ///< there are more than `total`
  std::string next;                    ///< the cursor that goes on; empty: there is no more
};

/// Goes through the pages of one half, or of several, one after the other. For one use, on one thread.
class Listing {
 public:
  /// Who is shown the messages.
  struct Reader {
    std::function<void(const queue::StoredMessage& message, WallTime now)> show;
    std::function<bool()> page_ended;  ///< false: nobody reads any more
  };

  /// The references outlive it.
  Listing(queue::Operator& queue, const Clock& clock, ListPlan plan, Reader reader);

  /// Goes on where a list of the same plan has ended. False for what is no such cursor by its form; the store may
  /// refuse it still, with ErrorCode::invalid and `at_cursor`.
  bool resume(const std::string& cursor);
  /// Shows pages until the limit is reached, there are no more, or nobody reads.
  Result<void> run();
  /// How many there are in all: by the store's counts, which cost nothing there, or by a look at what comes next. Where
  /// neither can tell, `total` stays empty.
  void count_by_stats();
  void count_ahead();

  const ListEnding& ending() const { return ending_; }
  bool at_cursor() const { return !request_.cursor.empty(); }

 private:
  Result<queue::ListPage> list(std::size_t limit);
  std::size_t page_size() const;
  std::optional<std::size_t> show(const queue::ListPage& page);
  bool next_page(const std::string& next);
  std::string cursor() const;
  Deadline deadline() const { return Deadline::after(clock_, std::chrono::seconds(30)); }

  queue::Operator& queue_;
  const Clock& clock_;
  const ListPlan plan_;
  const Reader reader_;
  queue::ListRequest request_;
  std::size_t half_ = 0;    ///< in plan_.halves, where `request_` is
  bool from_start_ = true;  ///< no cursor was given
  ListEnding ending_;
};

}  // namespace sluice::operate
