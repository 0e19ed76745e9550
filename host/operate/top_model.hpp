#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/fleet/fleet.hpp"
#include "host/operate/count_pace.hpp"
#include "host/operate/fleet_report.hpp"
#include "host/queue/operator.hpp"

namespace sluice::operate {

/// How many messages a queue holds, as far as they have been counted: at least so many while that is under way. A
/// value.
struct QueueCount {
  queue::QueueStats standard;
  queue::QueueStats dead;
  WallTime counted_at{};  ///< when the standard half was counted
};

/// Counts a queue a piece at a time, so that each look costs a bounded number of reads however long the queue is: the
/// first tells what the head holds, later ones more of it, and once all is counted the count begins anew and the last
/// whole one is told meanwhile. Of one thread.
class QueueCounter {
 public:
  enum class Method {
    by_pages,  ///< where every count reads what is counted
    /// As the store keeps count, or as owners of the queue tell, who alone know what is in flight; by_pages while
    /// nobody tells.
    as_told,
  };
  /// Records of a page: one request, up to a megabyte.
  static constexpr std::size_t kPage = 1'000;

  QueueCounter(std::unique_ptr<queue::Operator> oper, Method method, const Clock& clock);

  /// One look: two requests at most of the by_pages kind, one for each half.
  Result<QueueCount> step(Deadline deadline);

 private:
  /// One half's count.
  struct Sweep {
    queue::QueueStats under_way;
    std::string cursor;
    std::optional<queue::QueueStats> last_whole;
    WallTime whole_at{};
    SteadyTime again = SteadyTime::min();  // when what nobody tells of a queue is counted anew

    const queue::QueueStats& told() const { return last_whole ? *last_whole : under_way; }
  };

  Result<void> look(queue::Half half, Sweep& sweep, Deadline deadline);

  std::unique_ptr<queue::Operator> operator_;
  Method method_;
  const Clock& clock_;
  Sweep standard_;
  Sweep dead_;
};

/// What queues are sorted by, in the order of the columns.
enum class TopOrder { name, ready, in_flight, delayed, dead, oldest, in, out, failed };
inline constexpr std::size_t kTopOrders = 9;

/// A queue on the live screen. A value.
struct TopQueue {
  std::string name;
  std::optional<QueueCount> count;  ///< nothing: not counted yet
  std::optional<Duration> oldest;   ///< how long the oldest ready message waits
  std::optional<double> in;         ///< messages a second, by two counts and what left meanwhile
  std::optional<double> out;        ///< done, a second, by what hosts tell
  std::optional<double> failed;     ///< failed attempts a second
  bool paused = false;              ///< an operator wants it so
  std::size_t jobs = 0;             ///< that hosts run on it
  std::size_t paused_jobs = 0;
  std::size_t held_jobs = 0;   ///< by what the queue may cost
  std::size_t quiet_jobs = 0;  ///< whose hosts do not all answer
  bool any_host = false;       ///< runs, whatever its jobs
  std::string trouble;         ///< why it cannot be counted
};

void describe(const TopQueue& queue, Fields& fields);

/// A key, as the screen understands it.
struct TopKey {
  enum class Kind { character, up, down, enter, escape, erase };
  Kind kind = Kind::character;
  char character = 0;
};

/// What a key asks for beside another picture.
struct TopWish {
  enum class Kind { quit, look, pause, resume };
  Kind kind = Kind::look;
  std::string queue;  ///< of pause and resume
};

/// What the screen is at, beside its figures.
enum class TopMode { plain, filter, confirm, help };

/// What `sluice top` knows and how its user looks at it. A step machine: looks and keys go in, and what is to be shown
/// comes out. Knows no terminal and no store. Of one thread at a time.
class TopModel {
 public:
  /// `only`: the one queue that is to be shown, with the hosts and jobs that work on it; empty: all, also those that
  /// hosts alone know.
  explicit TopModel(const std::vector<std::string>& queues, std::string only = {});

  // Looks.
  void see(fleet::FleetView view, const fleet::SteeringView& steering);
  /// They cannot be told of, and why; what was seen before stays.
  void see_no_hosts(std::string why);
  void see(const std::string& queue, const QueueCount& count, WallTime now);
  void see_trouble(const std::string& queue, std::string why);
  /// One line for the user, until the next one.
  void say(std::string line) { message_ = std::move(line); }

  /// Takes a key.
  std::optional<TopWish> press(const TopKey& key);

  // What is to be shown.
  /// Those that the filter lets through, sorted.
  std::vector<TopQueue> queues() const;
  const fleet::FleetView& fleet() const { return view_; }
  /// False: there may be others than those, as not everything about them could be read.
  bool hosts_known() const { return hosts_known_; }
  /// The slowest first: those with a stuck handler, then by the mean of their attempts.
  std::vector<JobSummary> slowest_jobs() const;
  /// The position of the selected queue among `queues()`.
  std::size_t selected() const;

  TopMode mode() const { return mode_; }
  TopOrder order() const { return order_; }
  bool reversed() const { return reversed_; }
  const std::string& filter() const { return filter_; }
  const std::string& message() const { return message_; }

 private:
  struct Known {
    TopQueue queue;
    /// Of whole counts: a burst is seen for ten seconds.
    CountPace pace{std::chrono::seconds(10)};
  };

  std::optional<TopWish> press_command(char character);
  void press_filter(const TopKey& key);
  std::optional<TopWish> press_confirm(const TopKey& key);
  void move_selection(int by);

  const std::string only_;
  std::map<std::string, Known> known_;
  fleet::FleetView view_;
  bool hosts_known_ = false;
  std::vector<JobSummary> jobs_;
  std::string selected_;  ///< a queue; empty: the first
  TopMode mode_ = TopMode::plain;
  TopOrder order_ = TopOrder::ready;
  bool reversed_ = false;
  std::string filter_;
  std::string message_;
};

}  // namespace sluice::operate
