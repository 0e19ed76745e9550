#pragma once

#include <boost/core/noncopyable.hpp>
#include <cstddef>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "host/queue/message.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/table/record_layout.hpp"

namespace sluice::queue::table {

/// Puts messages that have a deduplication id, a unique key, or whatever else must not be there twice.
///
/// A message and its marks are written in one transaction, so that a mark is there if and only if its message was
/// stored, whoever dies when. The transaction's token makes repeating it after a lost answer safe, and the token in the
/// marks tells later what it came to. Costs at 1 KB, of the first: 2 write units for the message, 2 for each mark, in
/// one request for a message that is sent alone and for many that are sent together; of a duplicate that is sent alone
/// the same, as DynamoDB bills what it refuses; of one in a batch, the reading of its marks, which comes first there.
/// Used for one call.
class KeyedInserter : boost::noncopyable {
 public:
  static constexpr int kMaxRounds = 8;

  /// Of one transaction: how many messages it holds, and how often it is made where the client gives up without an
  /// answer. What has no mark to be found by later is asked for again until DynamoDB knows its token.
  struct Terms {
    std::size_t most_together = 25;
    int tries = 1;
  };

  /// The layout outlives it. One whose messages are more than one item each has an inserter of its own.
  KeyedInserter(const RecordLayout& layout, Terms terms) : parts_(layout.parts()), layout_(layout), terms_(terms) {}
  virtual ~KeyedInserter() = default;

  /// A message with its item, and where its result goes, which has its id.
  struct Draft {
    dynamo::Item item;
    SendResult* result = nullptr;
    const NewMessage* message = nullptr;  ///< with its keys; null: a record that is put as it stands
    bool replace = false;                 ///< whatever is there under its id goes
  };
  /// Sets the result of each.
  void insert(std::vector<Draft> drafts, Deadline deadline);

 protected:
  struct Entry {
    Draft draft;
    std::string token{};          ///< in its marks
    std::string unique_before{};  ///< the token of a mark whose message does not hold the key any more
    FoundRecord before{};         ///< what was found under its id
    bool unsure = false;          ///< a transaction may have taken effect
    std::optional<Error> throttled{};
    bool open() const { return draft.result != nullptr; }
    const std::string& id() const { return draft.result->id; }
    bool has_unique_key() const { return draft.message != nullptr && !draft.message->unique_key.empty(); }
  };

  /// Whether what lies under its id is to be looked at.
  virtual bool looks_at_id(const Entry& /*entry*/) const { return true; }
  /// The end of an entry whose marks do not stand in its way, if it has come to it: `entry.before` is given.
  virtual void judge(Entry& entry) const;
  /// Names every item that its transaction writes or looks at, its marks apart.
  virtual std::vector<std::string> items_of(const Entry& entry) const { return {entry.id()}; }
  /// The record itself, first, and what has to go with it.
  virtual void add_record(const Entry& entry, std::vector<dynamo::TransactAction>& actions) const;

  static void finish(Entry& entry, SendStatus status, Error error = {});

  const StoreParts& parts_;
  const RecordLayout& layout_;

 private:
  using Entries = std::deque<Entry>;
  using Lot = std::vector<Entry*>;

  /// Reads what stands in the way, and gives a result to those for whom that decides; the others stay. False: it cannot
  /// be read, and all have failed.
  bool decide(Entries& entries, Deadline deadline) const;
  bool decided_by_marks(Entry& entry, const RecordLayout::Seen& seen) const;
  std::vector<Lot> lots(Entries& entries) const;
  void write(std::vector<Lot> lots, Deadline deadline) const;
  void settle(const Lot& lot, const dynamo::Result<dynamo::ItemOutput>& result) const;
  static void fail(Entry& entry, Error error);

  const Terms terms_;
};

}  // namespace sluice::queue::table
