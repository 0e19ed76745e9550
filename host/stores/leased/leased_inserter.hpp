#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "host/queue/message.hpp"
#include "host/stores/leased/leased_lookup.hpp"
#include "host/stores/leased/leased_parts.hpp"
#include "host/stores/table/metadata_items.hpp"

namespace sluice::queue::leased {

/// What became of a record that was to be put.
struct Inserted {
  enum class Fate { written, exists, deduplicated, failed };
  Fate fate = Fate::failed;
  std::string first{};  ///< deduplicated: the id of the message that was sent first
  Error error{};
};

/// Puts records whose place their id does not say, or that are not to be there twice: each in one transaction with its
/// alias and its marks, so that these are there if and only if it was stored, whoever dies when.
///
/// The transaction's token makes repeating it after a lost answer safe; the place that an alias leads to, or the token
/// in a mark, tells later what it came to. Costs at 1 KB 2 write units for the record, 2 for its alias and 2 for each
/// mark, in one request for a record alone and for 25 together; of what is refused the same, as DynamoDB bills it. More
/// than one is looked up first, a read unit for each id and mark. Used for one call.
class LeasedInserter {
 public:
  static constexpr std::size_t kRecordsPerTransaction = 20;  ///< with five actions at most, of 100
  static constexpr int kMaxRounds = 8;

  LeasedInserter(LeasedParts parts, const table::QueueTable& place)
      : parts_(parts), place_(place), lookup_(parts.store.client, place), scope_{kLoneNames, place.queue} {}

  struct Draft {
    std::string id;
    dynamo::Item item;                    ///< with `i` where its place is not its id's
    const NewMessage* message = nullptr;  ///< for its marks; null: it has none
    bool replace = false;                 ///< whatever is there under its id goes
    Inserted* result = nullptr;
  };
  /// Sets the result of each.
  void insert(std::vector<Draft> drafts, Deadline deadline);

 private:
  struct Entry {
    Draft draft;
    std::string token{};          ///< in its marks
    std::string unique_before{};  ///< the token of a mark whose message does not hold the key any more
    LeasedLookup::Found standing{};
    bool unsure = false;  ///< a transaction may have taken effect
    bool open() const { return draft.result != nullptr; }
    bool has_alias() const { return draft.item.contains(attribute::kOwnId); }
    /// Its id may be there already.
    bool may_exist() const { return draft.message == nullptr || has_alias(); }
    bool deduplicated_by_id() const { return draft.message != nullptr && !draft.message->dedup_id.empty(); }
    bool has_unique_key() const { return draft.message != nullptr && !draft.message->unique_key.empty(); }
  };
  using Lot = std::vector<Entry*>;
  struct Seen;

  bool decide(std::deque<Entry>& entries, Deadline deadline);
  dynamo::Result<Seen> look(const std::deque<Entry>& entries, Deadline deadline) const;
  void judge(Entry& entry, const Seen& seen) const;
  bool judge_marks(Entry& entry, const Seen& seen) const;
  std::vector<Place> places_of(const Entry& entry) const;
  std::vector<Lot> lots(std::deque<Entry>& entries) const;
  void write(std::vector<Lot> lots, Deadline deadline);
  /// Looks what became of those of which nobody could tell. False: that could not be told either.
  bool give_up_unsure(std::deque<Entry>& entries, Deadline deadline);
  void add_record(const Entry& entry, std::vector<dynamo::TransactAction>& actions) const;
  void add_actions(const Entry& entry, WallTime now, std::vector<dynamo::TransactAction>& actions) const;
  void settle(const Lot& lot, const dynamo::TransactResult& result) const;
  void fail(Entry& entry, Error error) const;
  static void finish(Entry& entry, Inserted result);

  LeasedParts parts_;
  const table::QueueTable& place_;
  LeasedLookup lookup_;
  table::MarkScope scope_;
};

}  // namespace sluice::queue::leased
