#pragma once

#include <deque>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "host/stores/outbox/rows.hpp"

namespace sluice::queue::outbox {

/// What to read next. A value that is moved: the spans of its request are its own.
struct ReadOrder {
  enum class Kind : std::uint8_t { none, page, groups };
  Kind kind = Kind::none;
  FetchRequest request;                 ///< for a page; for groups what fetch_groups reads of it
  std::vector<std::uint32_t> buckets;   ///< of the request
  std::vector<Group> without;           ///< of the request
  std::vector<Group> groups;            ///< for groups: whose first rows
  std::uint64_t number = 0;             ///< counts the orders
  SteadyTime wake = SteadyTime::max();  ///< with none: when there is something without any news
};

/// What became of a row that was out.
struct Fate {
  enum class Kind : std::uint8_t {
    sent,      ///< it is done with: the next one of its group may go
    dead,      ///< it is a dead letter
    put_back,  ///< it is to be had again after `wait`, and holds its group until then
    changed,   ///< somebody else has changed it: its group is read anew
  };
  Kind kind = Kind::sent;
  Duration wait{};
  bool stored = false;  ///< the database says the same of the row
};

/// Of the row in memory, once the mark of this completion is written.
Fate fate_of(const Completion& completion);

/// The rows in memory, and which of them goes out next: by id, one of a group at a time until it has been handled, or
/// several where they are sent in their order afterwards (Selection::side_by_side); none of a group whose first row
/// waits. Decides what is read when, so that rows that wait or follow one that does cost neither memory nor a place in
/// what is read.
///
/// Rows are read in pages, by a cursor that begins again at the head once in a poll interval, and with each bucket that
/// is taken. News are read from a little before the cursor, for transactions that commit late. A group that has more
/// rows than may be kept of one, or whose first row waits, is closed: pages pass it over in the database, and it is
/// read by itself when its turn comes. Of more closed groups than are remembered a hash is kept: their rows are read
/// with every sweep, and passed over here. Not thread-safe; reads are made one at a time, each followed by its result.
class RowScheduler {
 public:
  struct Settings {
    Selection filter{};
    std::size_t fetch_limit = 1000;
    Duration poll_interval = std::chrono::seconds(5);
    bool resend_sent = false;
    std::size_t bytes = 16U << 20U;      ///< of payloads in memory
    std::size_t per_group = 32;          ///< rows of one group in memory
    std::size_t closed_groups = 50'000;  ///< that are remembered
  };
  /// What is known of a row that is out.
  struct Out {
    Group group;
    std::uint32_t bucket = 0;
    std::int64_t number = 0;  ///< counts what was handed out
    std::int64_t tries = 0;   ///< that it was handed out with
    WallTime sent_at{};       ///< noted by whoever takes it
    bool overtakes = false;   ///< one before it in its group was put back, and goes first
  };
  using OutRows = std::unordered_map<RowKey, Out, RowKeyHash>;

  explicit RowScheduler(Settings settings);

  /// From now on these buckets are ours as well. What was read of them before does not count.
  void take_buckets(std::span<const std::uint32_t> buckets);
  /// Nothing more goes out of these. What is out of them stays so until it is settled.
  void leave_buckets(std::span<const std::uint32_t> buckets);
  /// Nothing is ours any more; the rows that were out.
  OutRows lose_all();
  /// By key.
  OutRows& out() { return out_; }

  ReadOrder next_read(SteadyTime now);
  /// The rows that cannot be handed out, which are to be marked as dead.
  std::vector<Row> page_read(const ReadOrder& order, Page page, SteadyTime now);
  std::vector<Row> groups_read(const ReadOrder& order, std::vector<Page> answers, SteadyTime now);
  void read_failed() { end_read(); }
  /// New rows have been committed.
  void rows_told(SteadyTime now);
  /// True: nobody tells of new rows, so that they are looked for: soon after some were found, then ever less often.
  void look_for_rows(bool look) { looks_ = look; }
  /// An operator has changed rows: what waits is looked at again.
  void change_told(SteadyTime now);

  /// The next rows, oldest first, at most `max`; after the row that goes beyond `bytes` there is none.
  std::vector<Row> take(std::size_t max, std::size_t bytes);
  /// A row that is out has been handled well and is to be marked as sent: what follows it in its group may go before
  /// that is written, up to a number. Where the mark fails it comes again, after what went meanwhile.
  void handled(const RowKey& key);
  /// Which of these rows may be sent: those of a group behind each other, and behind all of it that is out.
  SendOrder send_order(std::span<const std::optional<RowKey>> keys) const;
  /// A row that is out has come to its end; what it was, unless it had been lost.
  std::optional<Out> settled(const RowKey& key, Fate fate, SteadyTime now);

  bool ready() const { return !ready_.empty(); }
  /// The table has been read to its end since there are buckets.
  bool read_once() const { return read_once_; }
  std::size_t size() const { return rows_.size(); }
  std::size_t closed() const { return closed_; }
  /// More groups wait than are remembered, or did until a short while ago.
  bool crowded();

 private:
  /// A group that waits is looked at so often, for operators may have changed it where nobody tells.
  static constexpr Duration kRecheck = std::chrono::minutes(1);

  struct GroupBacklog {
    std::set<RowKey> keys;            ///< in memory, not out
    std::set<RowKey> at_work;         ///< out, and not handled
    std::size_t unmarked = 0;         ///< rows of it that are out and have been
    bool closed = false;              ///< the database has more of it than pages will bring
    bool blocked = false;             ///< and what follows what is in memory cannot be had before that has gone
    std::uint64_t closed_at = 0;      ///< the last order before that
    SteadyTime held_until{};          ///< nothing of it goes out before; nothing of it is in memory meanwhile
    std::optional<SteadyTime> due{};  ///< where it stands in due_
    RowKey passed{};                  ///< with resend_sent: the last one that went
    std::uint32_t bucket = 0;

    /// Nothing of it is in memory or out.
    bool idle() const { return keys.empty() && at_work.empty() && unmarked == 0; }
  };
  using Lines = std::map<Group, GroupBacklog>;
  using Rows = std::unordered_map<RowKey, Row, RowKeyHash>;
  struct Released {
    SteadyTime until{};
    bool ours = false;  ///< the database says nothing of it
  };

  /// Nothing more of it may go now.
  bool busy(const GroupBacklog& group) const {
    const std::size_t out = group.at_work.size() + group.unmarked;
    return (!group.at_work.empty() && !side_by_side_) || (out > 0 && out >= settings_.per_group / 2);
  }
  /// Its first row is ready, unless it is busy.
  void offer(const GroupBacklog& group) {
    if (!busy(group) && !group.keys.empty()) {
      ready_.insert(*group.keys.begin());
    }
  }
  bool takes(const Row& row, const ReadOrder& order) const;
  void keep(Row&& row);
  Rows::iterator drop(Rows::iterator row);
  void admit(Row&& row, Lines::iterator line);
  void admit_single(Row&& row, SteadyTime now);
  /// A row without a group waits.
  void release(const RowKey& key, const Fate& fate, SteadyTime now);
  void admit_of_group(Row&& row, SteadyTime now);
  /// `stored`: the database says itself that it waits, so that a hash of it does where too many do.
  void close(Lines::iterator line, SteadyTime held_until, bool stored = false);
  void drop_rows(GroupBacklog& line);
  /// What follows from a change of the line: whether it is to be read, or is nothing to be remembered any more.
  void look_after(Lines::iterator line);
  void load(Lines::iterator line, Page&& answer, SteadyTime now, std::vector<Row>& unreadable);
  static bool waits(const Row& row) { return (row.wait && *row.wait > Duration::zero()) || row.dead; }
  /// It cannot be handed out, and is to be marked as dead.
  static bool broken(const Row& row) { return !row.unreadable.empty() && !waits(row); }
  /// Nothing of its group goes before it.
  bool stops(const Row& row) const { return waits(row) || (broken(row) && settings_.filter.hold_dead); }
  SteadyTime hold_of(const Row& row, SteadyTime now) const;
  std::optional<ReadOrder> group_order(SteadyTime now);
  std::optional<ReadOrder> page_order(SteadyTime now);
  bool has_room() const;
  Duration quickest_sweeps() const;
  void begin_sweep(SteadyTime now);
  std::vector<Group> closed_groups() const;
  void sweep_by(SteadyTime time);
  void end_scan(SteadyTime now);
  void end_read();

  // Fixed after construction.
  const Settings settings_;
  const bool side_by_side_;  ///< see Selection
  const std::size_t capacity_;

  std::map<std::uint32_t, std::uint64_t> buckets_;  ///< ours, and the number of the first order that counts

  Rows rows_;
  std::size_t row_bytes_ = 0;
  std::set<RowKey> ready_;  ///< of rows_: may go out now
  OutRows out_;
  std::int64_t handed_out_ = 0;
  /// Rows without a group that wait, of which no page may tell; at most twice as many as there may be closed groups.
  std::unordered_map<RowKey, Released, RowKeyHash> released_;
  Lines lines_;
  std::size_t closed_ = 0;
  std::set<std::pair<SteadyTime, Group>> due_;  ///< closed groups by when they are to be read
  /// Hashes of groups that wait and are not remembered, since the last sweep began, which meets the row that a group
  /// waits for before those that follow it. Two that fall together wait for each other.
  std::unordered_set<std::uint64_t> passed_over_;
  bool crowded_ = false;  ///< see crowded()

  std::uint64_t number_ = 0;  ///< of the last order
  bool reading_ = false;
  std::unordered_set<RowKey, RowKeyHash> settled_meanwhile_;  ///< while a read is under way, which may not know it
  bool groups_first_ = true;                                  ///< pages and groups take turns

  std::uint64_t scan_begun_ = 0;  ///< the first order of the scan
  bool scanning_ = false;
  bool sweeping_ = false;  ///< a scan that began at the head has not come to its end
  bool read_once_ = false;
  std::optional<RowKey> cursor_;  ///< up to where the scan has read; nothing: it begins, or there is nothing
  SteadyTime sweep_at_{};
  SteadyTime swept_at_{};
  Duration sweep_pace_;                     ///< from one sweep to the next at least
  SteadyTime tail_at_ = SteadyTime::max();  ///< news are to be read
  SteadyTime tailed_at_{};
  bool looks_ = false;     ///< see look_for_rows
  Duration look_pause_{};  ///< from the last look that found nothing to the next
  std::deque<std::pair<SteadyTime, std::optional<RowKey>>> ends_;  ///< where the table ended, and when that was seen
};

}  // namespace sluice::queue::outbox
