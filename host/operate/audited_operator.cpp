#include "host/operate/audited_operator.hpp"

#include <array>
#include <utility>

#include "base/uuid.hpp"

namespace sluice::operate {
namespace {

constexpr std::size_t kIdDigits = 13;

// In the order of ChangeAction.
constexpr std::array<std::string_view, 7> kVerbs{"remove",      "give back", "delay", "move to the front",
                                                 "dead-letter", "redrive",   "reset"};

/// Why nothing was changed. What a store says of the audit means something else to who asked for a change of messages.
Error unnoted(const Error& error) {
  const ErrorCode code = error.code();
  if (code == ErrorCode::queue_missing) {
    return error;  // what was asked for meets the same
  }
  const bool misleads = code == ErrorCode::conflict || code == ErrorCode::unknown_outcome ||
                        code == ErrorCode::invalid || code == ErrorCode::not_found;
  return {misleads ? ErrorCode::unavailable : code,
          "nothing was changed, for the audit could not be written: " + error.message()};
}

/// The one message by its id, or how many.
std::string named(std::size_t count, const std::string& id) {
  return count == 1 ? "message " + id : std::to_string(count) + " messages";
}

void add(queue::ChangeStatus status, DeedCount& count) {
  ++(status == queue::ChangeStatus::applied  ? count.changed
     : status == queue::ChangeStatus::failed ? count.failed
                                             : count.skipped);
}

void add(queue::PutStatus status, DeedCount& count) {
  ++(status == queue::PutStatus::written  ? count.changed
     : status == queue::PutStatus::exists ? count.skipped
                                          : count.failed);
}

template <typename Results>
DeedCount count_of(const Results& results) {
  DeedCount count;
  for (const auto& result : results) {
    add(result.status, count);
  }
  return count;
}

}  // namespace

Result<std::unique_ptr<AuditedOperator>> AuditedOperator::open(queue::Queues& queues, const std::string& queue,
                                                               std::string who, Random& random) {
  SLUICE_TRY(opened, queues.open_operator(queue));
  return std::unique_ptr<AuditedOperator>(
      new AuditedOperator(std::move(*opened), queues, queue, std::move(who), random));
}

AuditedOperator::AuditedOperator(std::unique_ptr<queue::Operator> queue, queue::Queues& queues, std::string name,
                                 std::string who, Random& random)
    : queue_(std::move(queue)), queues_(queues), name_(std::move(name)), who_(std::move(who)), random_(random) {}

void AuditedOperator::begin(fleet::AuditEntry deed) {
  under_way_ = true;
  noted_ = false;
  may_be_noted_ = false;
  boards_.clear();  // those of the deed before
  entry_ = std::move(deed);
  entry_.id = make_uuid(random_).substr(0, kIdDigits);
  entry_.who = who_;
  entry_.queue = name_;
  entry_.state = fleet::DeedState::begun;
}

Result<void> AuditedOperator::open_boards() {
  std::vector<std::unique_ptr<queue::NoticeBoard>> boards;
  for (const std::string& queue : {name_, entry_.to}) {
    if (!queue.empty()) {
      SLUICE_TRY(opened, queues_.open_board(queue));
      boards.push_back(std::move(*opened));
    }
  }
  boards_ = std::move(boards);
  return {};
}

Result<void> AuditedOperator::write_line(Deadline deadline) {
  Result<void> all;
  for (const auto& board : boards_) {
    const auto written = fleet::note_deed(*board, entry_, deadline);
    const bool lost = !written && (written.error().code() == ErrorCode::unknown_outcome ||
                                   written.error().code() == ErrorCode::timeout);
    may_be_noted_ = may_be_noted_ || written || lost;
    all = all && !written ? written : all;
  }
  return all;
}

Result<void> AuditedOperator::note_begun(Deadline deadline) {
  if (noted_) {
    return {};
  }
  if (const auto opened = boards_.empty() ? open_boards() : Result<void>(); !opened) {
    // An outbox of a host whose own queues lie in tables has no board.
    return opened.error().code() == ErrorCode::invalid ? Result<void>() : unnoted(opened.error());
  }
  entry_.at = boards_.front()->now();
  const auto begun = write_line(deadline);
  noted_ = begun.has_value();
  return noted_ ? Result<void>() : unnoted(begun.error());
}

Result<void> AuditedOperator::finish(const DeedCount& count, const std::string& stopped_by, Deadline deadline) {
  under_way_ = false;
  if (!may_be_noted_) {
    return {};
  }
  entry_.stopped_by = noted_ ? stopped_by : "nobody knew whether this line was written, so that nothing was changed";
  entry_.state = entry_.stopped_by.empty() ? fleet::DeedState::done : fleet::DeedState::stopped;
  entry_.ended_at = boards_.front()->now();
  entry_.changed = count.changed;
  entry_.skipped = count.skipped;
  entry_.failed = count.failed;
  return write_line(deadline);
}

Result<void> AuditedOperator::enter(const std::string& what, bool& alone, Deadline deadline) {
  alone = !under_way_;
  if (alone) {
    begin({.what = what + " of queue " + name_});
  }
  auto begun = note_begun(deadline);
  if (!begun) {
    leave(alone, {}, deadline);
  }
  return begun;
}

void AuditedOperator::leave(bool alone, const DeedCount& count, Deadline deadline) {
  if (alone) {
    // It is done; where this cannot be written the line stays begun.
    static_cast<void>(finish(count, {}, deadline));
  }
}

Result<queue::StoredMessage> AuditedOperator::get(const std::string& id, Deadline deadline) {
  return queue_->get(id, deadline);
}

Result<queue::ListPage> AuditedOperator::list(const queue::ListRequest& request, Deadline deadline) {
  return queue_->list(request, deadline);
}

Result<queue::QueueStats> AuditedOperator::stats(const queue::StatsRequest& request, Deadline deadline) {
  return queue_->stats(request, deadline);
}

Result<queue::QueueOverview> AuditedOperator::overview(const queue::OverviewRequest& request, Deadline deadline) {
  return queue_->overview(request, deadline);
}

Result<std::optional<queue::PartOwner>> AuditedOperator::owner_of(const std::string& id, Deadline deadline) {
  return queue_->owner_of(id, deadline);
}

std::vector<queue::ChangeResult> AuditedOperator::change(std::span<const queue::Change> changes, Deadline deadline) {
  if (changes.empty()) {
    return {};
  }
  bool alone = false;
  const std::string what = std::string(kVerbs.at(static_cast<std::size_t>(changes.front().action))) + " " +
                           named(changes.size(), changes.front().id);
  if (const auto begun = enter(what, alone, deadline); !begun) {
    const queue::ChangeResult refused{.status = queue::ChangeStatus::failed, .version = 0, .error = begun.error()};
    return std::vector(changes.size(), refused);
  }
  auto results = queue_->change(changes, deadline);
  leave(alone, count_of(results), deadline);
  return results;
}

Result<queue::StoredMessage> AuditedOperator::edit(const std::string& id, std::int64_t version,
                                                   std::span<const queue::ContentEdit> edits, Deadline deadline) {
  bool alone = false;
  SLUICE_PASS_ON(enter("edit message " + id, alone, deadline));
  auto edited = queue_->edit(id, version, edits, deadline);
  leave(alone, {.changed = edited ? 1U : 0U, .failed = edited ? 0U : 1U}, deadline);
  return edited;
}

std::vector<queue::PutResult> AuditedOperator::put(std::span<const queue::StoredMessage> records, queue::PutMode mode,
                                                   Deadline deadline) {
  if (records.empty()) {
    return {};
  }
  bool alone = false;
  if (const auto begun = enter("put " + named(records.size(), records.front().message.id), alone, deadline); !begun) {
    return std::vector(records.size(), queue::PutResult{queue::PutStatus::failed, begun.error()});
  }
  auto results = queue_->put(records, mode, deadline);
  leave(alone, count_of(results), deadline);
  return results;
}

}  // namespace sluice::operate
