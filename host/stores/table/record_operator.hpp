#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "host/queue/error_groups.hpp"
#include "host/queue/operator.hpp"
#include "host/queue/sender.hpp"
#include "host/stores/core/transitions.hpp"
#include "host/stores/table/record_layout.hpp"

namespace sluice::queue::table {

/// A page of a list ends there, short of its limit, so that nobody's memory depends on the size of messages.
inline constexpr std::size_t kListBytes = std::size_t{16} * 1024 * 1024;

/// What the operators' side of one queue does alike in every layout: how a change is tried, judged and repeated, and an
/// edit. Thread-safe.
///
/// A record that is to be changed is read, a hundred at a time, and written conditional on what was read. Where the
/// condition does not hold it is looked at again: to tell a message that is gone from one that was changed, to
/// recognise a write of our own whose answer was lost, and to try again where no version was asked for.
///
/// An edit is made in memory with all of DynamoDB's types. Only the attributes that have become others are written,
/// conditional on the version that was read.
class RecordOperator : public Operator {
 public:
  static constexpr int kMaxRaces = 5;  ///< lost in a row against others who change the same message

  Result<StoredMessage> get(const std::string& id, Deadline deadline) override;
  std::vector<ChangeResult> change(std::span<const Change> changes, Deadline deadline) override;
  Result<StoredMessage> edit(const std::string& id, std::int64_t version, std::span<const ContentEdit> edits,
                             Deadline deadline) override;

 protected:
  /// The layout outlives it.
  explicit RecordOperator(const RecordLayout& layout) : parts_(layout.parts()), layout_(layout) {}

  /// One change on its way. It has come to its end when `open` is false.
  struct Task {
    const Change* change = nullptr;
    ChangeResult* result = nullptr;
    bool open = true;
    bool look = true;                         ///< the record is to be read before anything is written
    std::optional<StatementOutcome> doubt{};  ///< the last try may have taken effect all the same
    bool without_failure = false;             ///< there is no room for the reason
    dynamo::Item item{};                      ///< the record as it was read; empty: it was not
    core::MessageState state{};               ///< of that record
    VersionMark before{};
    std::string nonce{};              ///< of the last try
    std::optional<WallTime> front{};  ///< moved to the front: the time that puts it there, where the layout needs one

    bool removes() const { return change->action == ChangeAction::remove; }
    /// A change that makes of the record what it should be by the rules.
    core::StateChange wanted(WallTime now) const;
    void end(ChangeStatus status, std::int64_t version = 0, Error error = {}) {
      *result = {status, version, std::move(error)};
      open = false;
    }
  };

  /// The record has to be known before the change can be written.
  virtual bool needs_look(const Change& /*change*/) const { return true; }
  /// Writes all, and notes what came of it.
  virtual void write(const std::vector<Task*>& tasks, Deadline deadline) const = 0;
  /// Told of each change once all have come to their ends, and of an edit.
  virtual void on_end(const Task& /*task*/) const {}
  /// For `write`. `elsewhere`: where nothing was found to remove, the record may have moved.
  void note(Task& task, const StatementOutcome& outcome, bool elsewhere) const;
  void note(Task& task, const dynamo::Result<dynamo::ItemOutput>& result) const;

  /// The item after the edits, its place included; its version and nonce are not touched yet.
  virtual Result<dynamo::Item> edited(const dynamo::Item& before, std::span<const ContentEdit> edits,
                                      Deadline deadline) const = 0;
  /// Writes the item as it is after an edit, and notes what came of it. The change that the task is about asks for
  /// nothing but the version.
  virtual void put_edited(Task& task, const dynamo::Item& after, Deadline deadline) const;

  /// Consistent; ErrorCode::not_found when absent.
  Result<dynamo::Item> record(const std::string& id, Deadline deadline) const;
  const QueueTable& place() const { return layout_.place(); }

  const StoreParts& parts_;
  const RecordLayout& layout_;

 private:
  void look(const std::vector<Task*>& tasks, Deadline deadline) const;
  void judge(Task& task, dynamo::Item record) const;
  bool judge_doubt(Task& task, const dynamo::Item& record) const;
};

/// What becomes of records that are put, by what became of sending them.
std::vector<PutResult> put_results(std::vector<SendResult> fates);

/// Adds up an overview, record by record in claiming order. A value; not thread-safe.
class OverviewCount {
 public:
  OverviewCount(const OverviewRequest& request, WallTime now)
      : most_ids_(request.ids), most_errors_(request.errors), now_(now), errors_(now) {}

  void add(const StoredMessage& record);
  QueueOverview finish() &&;

 private:
  std::size_t most_ids_;
  std::size_t most_errors_;
  WallTime now_;
  QueueOverview overview_;
  ErrorGroups errors_;
};

/// Names behind placeholders in a request that reads no more than these; some are reserved. The units read are those of
/// whole items all the same; what is left out is not transferred.
template <typename Request>
void project(Request& request, std::initializer_list<std::string_view> attributes) {
  for (const std::string_view name : attributes) {
    const std::string placeholder = "#" + std::string(name);
    request.projection += (request.projection.empty() ? "" : ", ") + placeholder;
    request.names.emplace(placeholder, name);
  }
}

}  // namespace sluice::queue::table
