#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "host/queue/completion.hpp"
#include "host/queue/delivery.hpp"
#include "host/stores/sqlite/connection.hpp"
#include "host/stores/sqlite/hash_rows.hpp"
#include "host/stores/sqlite/lanes.hpp"
#include "host/stores/sqlite/lease.hpp"
#include "host/stores/sqlite/places.hpp"
#include "host/stores/sqlite/standing.hpp"
#include "host/stores/sqlite/tally.hpp"
#include "host/stores/sqlite/tombstones.hpp"

namespace sluice::queue::sqlite {

/// The state machine of messages once they are claimed: extended, settled, moved. Works inside a transaction of its
/// connection.
class Deliveries {
 public:
  Deliveries(Connection& connection, Tally& tally, Places& places, Lanes& lanes);

  /// Sets each result to applied or lost.
  void settle(std::int64_t half, std::span<const Completion> completions, std::span<SettleResult> results,
              WallTime now);
  // The same in steps, for whoever commits more with a completion. What `settle_one` has done since a mark is forgotten
  // by `settle_back_to`, when the savepoint that was made there is rolled back.
  void begin_settling(std::int64_t half, std::span<const Completion> completions, WallTime now);
  SettleStatus settle_one(std::int64_t half, const Completion& completion, WallTime now);
  std::size_t settle_mark() const { return removed_.size(); }
  void settle_back_to(std::size_t mark);
  void end_settling(std::int64_t half, WallTime now);
  /// What its settlement need not ask for, of a message of a group that was just handed out: with another group it has
  /// another version too.
  void remember(const Delivery& delivery);
  Tombstones& tombstones() { return tombstones_; }
  std::optional<Receipt> extend(std::int64_t half, const Receipt& receipt, const Lease& lease);

  std::optional<Standing> standing(std::int64_t seq);
  /// Puts down a message that has just been inserted and is visible from `sent_at` on.
  void place_delayed(std::int64_t seq, std::int64_t half, WallTime sent_at, WallTime now);
  /// Puts down a message that has just been inserted as `standing` says, version included.
  void place(const Standing& standing, WallTime updated_at);
  /// Changes where a message stands, its half included; the version goes up by one.
  void change(const Standing& before, const Standing& after, WallTime now);
  void remove(const Standing& standing);
  /// Places::bring_back for every half.
  bool bring_back(std::int64_t half, WallTime now);

 private:
  enum class Held : std::uint8_t { unasked, held, buried };
  struct Known {
    std::int64_t group = 0;     ///< as `group_hash` gives it
    std::size_t id_hash = 0;    ///< of this process
    std::int64_t version = 0;   ///< of the receipt that it was handed out with, or that this became since
    bool is_short = false;      ///< it may be buried
    Held held = Held::unasked;  ///< by that receipt
  };
  struct Removed {
    std::int64_t seq;
    bool buried;
  };
  static bool is_of(const Receipt& receipt, const Known& known);
  void find_held(std::int64_t half, std::span<const Completion> completions);
  std::int64_t group_of(std::int64_t seq);
  /// Sees to its place where it can be claimed; null: it was not there, or is there no more.
  void stand(const Standing* before, const Standing* after);
  bool remove_tracked(std::int64_t half, const Receipt& receipt);
  void bury(std::int64_t half, std::int64_t seq, std::int64_t group);
  void end_lane(std::int64_t half, std::int64_t seq, std::int64_t group, Lanes::Rest rest);
  void delete_removed(WallTime now);
  std::optional<Standing> held(std::int64_t half, const Receipt& receipt);
  void write(const Standing& standing, std::int64_t version, WallTime updated_at);

  Tally& tally_;
  Places& places_;
  Lanes& lanes_;
  Statement remove_leased_;
  HashRows asking_;
  EntryRows receipts_;
  Tombstones tombstones_;
  Statement groups_;
  Statement leased_;
  Statement group_;
  Statement brought_back_;
  Statement message_delete_;
  Statement message_move_;
  Statement delivery_delete_;
  Statement delivery_delete_all_;
  Statement delivery_delete_run_;
  Statement delivery_write_;
  Statement standing_;
  std::unordered_map<std::int64_t, Known> handed_out_;  ///< by seq
  std::unordered_map<std::int64_t, Known> settling_;    ///< those of the current `settle`
  std::vector<std::int64_t> asked_;                     ///< scratch
  std::vector<IdEntry> versions_;                       ///< scratch: receipts, each as seq and version
  std::vector<Removed> removed_;  ///< by the current `settle`; their deliveries are still to be deleted
};

}  // namespace sluice::queue::sqlite
