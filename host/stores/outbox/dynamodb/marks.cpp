#include "host/stores/outbox/dynamodb/marks.hpp"

#include <algorithm>

#include "base/timestamp.hpp"
#include "host/stores/outbox/dynamodb/row_moves.hpp"

namespace sluice::queue::outbox {
namespace {

using dynamo::AttributeValue;

constexpr std::size_t kStatementsAtOnce = 25;

std::string quoted(std::string_view name) { return "\"" + std::string(name) + "\""; }

}  // namespace

Result<std::vector<MarkStatus>> Marks::write(std::span<const Mark> marks, Deadline deadline) {
  marks_ = marks;
  statuses_.assign(marks.size(), MarkStatus::gone);
  Places sent;
  Places singly;
  Places dead;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i].part == RowKey::kWhole) {
      continue;  // a row has a bucket
    }
    if (marks[i].kind == MarkKind::dead) {
      dead.push_back(i);
    } else if (marks[i].kind == MarkKind::sent && !marks[i].only_if) {
      sent.push_back(i);
    } else {
      singly.push_back(i);
    }
  }
  SLUICE_PASS_ON(write_sent(sent, deadline));
  const auto done = write_each(singly, deadline);
  const auto moved = done ? write_dead(dead, deadline) : done;
  if (!moved) {
    // Some may have been written by now, so that nobody may think that nothing was.
    return Error(sent.empty() ? moved.error().code() : ErrorCode::unknown_outcome, moved.error().message());
  }
  return std::move(statuses_);
}

dynamo::Item Marks::key(const Mark& mark) const { return key_of(place_.columns(), partition_of(mark.part), mark.id); }

Result<void> Marks::write_sent(const Places& places, Deadline deadline) {
  const std::string text = "DELETE FROM " + quoted(place_.table().table) + " WHERE " + quoted(kBucket) + " = ? AND " +
                           quoted(place_.columns().id) + " = ? RETURNING ALL OLD *";
  std::vector<std::vector<dynamo::Statement>> batches;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i % kStatementsAtOnce == 0) {
      batches.emplace_back();
    }
    const Mark& mark = marks_[places[i]];
    batches.back().push_back({text, {partition_of(mark.part), AttributeValue::number(mark.id)}});
  }
  const auto outputs = place_.client().batch_execute(batches, deadline);
  std::optional<Error> failure;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto& output = outputs[i / kStatementsAtOnce];
    if (!output) {
      // A row that was deleted by a request whose answer was lost is found to be gone when the mark is repeated.
      failure = failure ? failure : place_.error_of(output.error());
      continue;
    }
    const dynamo::StatementResult& result = output->results[i % kStatementsAtOnce];
    MarkStatus& status = statuses_[places[i]];
    if (!result.error) {
      status = result.item.empty() ? MarkStatus::gone : MarkStatus::written;
    } else if (const auto known = status_of(*result.error)) {
      status = *known;
    } else {
      failure = failure ? failure : known.error();
    }
  }
  if (failure) {
    const bool nothing_written =
        std::none_of(outputs.begin(), outputs.end(), [](const auto& output) { return output.has_value(); });
    return Error(nothing_written ? failure->code() : ErrorCode::unknown_outcome, failure->message());
  }
  return {};
}

Result<void> Marks::write_each(const Places& places, Deadline deadline) {
  if (places.empty()) {
    return {};
  }
  place_.be_sure_of_time(deadline);
  std::vector<dynamo::ItemWrite> writes;
  writes.reserve(places.size());
  for (const std::size_t i : places) {
    writes.push_back(write_of(marks_[i]));
  }
  const auto results = place_.client().write_each(writes, deadline);
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (results[k]) {
      statuses_[places[k]] = MarkStatus::written;
    } else if (const auto known = status_of(results[k].error())) {
      statuses_[places[k]] = *known;
    } else {
      return Error(places.size() == 1 ? known.error().code() : ErrorCode::unknown_outcome, known.error().message());
    }
  }
  return {};
}

dynamo::ItemWrite Marks::write_of(const Mark& mark) const {
  const Columns& columns = place_.columns();
  if (mark.kind == MarkKind::sent) {
    dynamo::DeleteItemRequest removal;
    removal.table = place_.table().table;
    removal.key = key(mark);
    removal.condition = still_tried(columns, mark.only_if, removal.names, removal.values);
    return removal;
  }
  dynamo::UpdateItemRequest update;
  update.table = place_.table().table;
  update.key = key(mark);
  update.condition = still_tried(columns, mark.only_if, update.names, update.values);
  update.update = "SET #tries = :tries, #at = :at";
  update.names.emplace("#tries", columns.retry_count);
  update.names.emplace("#at", columns.retry_at);
  update.values.emplace(":tries", AttributeValue::number(mark.retries));
  update.values.emplace(":at", format_timestamp(place_.now() + mark.wait));
  if (!columns.last_error.empty()) {
    update.update += ", #error = :error";
    update.names.emplace("#error", columns.last_error);
    update.values.emplace(":error", mark.error);
  }
  return update;
}

Result<void> Marks::write_dead(const Places& places, Deadline deadline) {
  for (const std::size_t i : places) {
    const Mark& mark = marks_[i];
    const auto read =
        place_.client().get_item({.table = place_.table().table, .key = key(mark), .consistent = true}, deadline);
    if (!read) {
      return place_.error_of(read.error());
    }
    const Row row = place_.rows().row_of(read->item, place_.now());
    if (read->item.empty() || (mark.only_if && row.retries != *mark.only_if)) {
      continue;
    }
    SLUICE_TRY(moved, RowMove(place_, read->item).to_dead_letters(mark.retries, mark.error, deadline));
    statuses_[i] = *moved == RowMove::Outcome::done         ? MarkStatus::written
                   : *moved == RowMove::Outcome::in_the_way ? MarkStatus::locked
                                                            : MarkStatus::gone;
  }
  return {};
}

// Of one row alone: somebody else's doing, or worth another try. Everything else is a failure of the whole.
Result<MarkStatus> Marks::status_of(const dynamo::Error& error) const {
  if (error.kind == dynamo::ErrorKind::conditional_check_failed) {
    return MarkStatus::gone;
  }
  if (error.kind == dynamo::ErrorKind::throttled || error.exception_name == "TransactionConflictException" ||
      error.exception_name == "TransactionConflict") {
    return MarkStatus::locked;
  }
  return place_.error_of(error);
}

}  // namespace sluice::queue::outbox
