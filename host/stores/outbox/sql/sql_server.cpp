#include "host/stores/outbox/sql/sql_server.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "host/stores/outbox/reconnect.hpp"

namespace sluice::queue::outbox::sql {

std::int64_t number_of(const Cell& cell) {
  std::int64_t number = 0;
  if (cell) {
    std::from_chars(cell->data(), cell->data() + cell->size(), number);
  }
  return number;
}

bool flag_of(const Cell& cell) { return cell == "t" || cell == "1"; }

std::string text_of(Cell&& cell) { return cell ? *std::move(cell) : std::string(); }

Result<void> in_transaction(SqlConnection& connection, const std::function<Result<void>()>& work, Deadline deadline) {
  for (int attempt = 1;; ++attempt) {
    SLUICE_PASS_ON(connection.begin(deadline));
    auto worked = work();
    if (worked) {
      auto committed = connection.end(true, deadline);
      if (committed || !ends_session(committed.error().code())) {
        return committed;
      }
      // The server may have done it before it was gone.
      return Error(ErrorCode::unknown_outcome, committed.error().message());
    }
    // Where the session is over the server rolls back itself.
    if (ends_session(worked.error().code()) || connection.end(false, deadline).has_error() ||
        worked.error().code() != ErrorCode::throttled || attempt >= connection.tries()) {
      return worked;
    }
  }
}

Result<std::vector<MarkStatus>> write_marks(SqlServer& server, SqlConnection& connection, std::span<const Mark> marks,
                                            const MarkFence* fence, Deadline deadline) {
  std::vector<MarkStatus> statuses(marks.size(), MarkStatus::written);
  if (marks.empty()) {
    return statuses;
  }
  SLUICE_TRY(written, server.write(connection, marks, fence, deadline));
  std::vector<std::int64_t> missing;
  for (const Mark& mark : marks) {
    if (!written->contains(mark.id)) {
      missing.push_back(mark.id);
    }
  }
  if (missing.empty()) {
    return statuses;
  }
  const auto pending = connection.run(
      server.table().sql("SELECT @ID, @TRIES FROM @TABLE WHERE @UNSENT AND @ID IN (@1)", {list_of(missing)}), deadline);
  if (!pending) {
    // What the transaction wrote is committed; of the rest nothing is known.
    return Error(ends_session(pending.error().code()) ? ErrorCode::unknown_outcome : pending.error().code(),
                 pending.error().message());
  }
  std::unordered_map<std::int64_t, std::uint32_t> retries;
  for (const Cells& row : pending->rows) {
    retries[number_of(row[0])] = static_cast<std::uint32_t>(number_of(row[1]));
  }
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (!written->contains(marks[i].id)) {
      const auto found = retries.find(marks[i].id);
      statuses[i] = status_of_unwritten(marks[i], found == retries.end() ? std::nullopt : std::optional(found->second));
    }
  }
  return statuses;
}

void Inspection::column(const char* key, const std::string& name, const ColumnTypes::Kind& kind,
                        const std::map<std::string, std::string>& types) {
  if (name.empty()) {
    return;
  }
  const auto type = types.find(name);
  if (type == types.end()) {
    fatal(ErrorCode::invalid, table_ + " has no column " + sql_.name(name) + "; name it as '" + key +
                                  "' in [outbox.NAME.columns], or add it");
  } else if (std::find(kind.types.begin(), kind.types.end(), type->second) == kind.types.end()) {
    fatal(ErrorCode::invalid, "column " + sql_.name(name) + " of " + table_ + " is of type " + type->second +
                                  ", and '" + key + "' must be " + kind.expected);
  }
}

void Inspection::columns(const std::map<std::string, std::string>& types, const ColumnTypes& expected) {
  const Columns& names = sql_.settings().columns;
  column("id", names.id, expected.id, types);
  column("aggregate_type", names.aggregate_type, expected.text, types);
  column("aggregate_id", names.aggregate_id, expected.text, types);
  column("event", names.event, expected.text, types);
  column("payload", names.payload, expected.payload, types);
  column("retry_at", names.retry_at, expected.time, types);
  column("retry_count", names.retry_count, expected.count, types);
  column("sent_at", names.sent_at, expected.time, types);
  column("created_at", names.created_at, expected.time, types);
  column("last_error", names.last_error, expected.reason, types);
  for (const std::string& other : names.attributes) {
    if (!types.contains(other)) {
      fatal(ErrorCode::invalid,
            table_ + " has no column " + sql_.name(other) + ", which 'attributes' in [outbox.NAME] names");
    }
  }
}

// A row is known by its id: where two have one, marking the one marks both, and the other is never published. Ids that
// the server counts differ though no index says so, as in a table that is partitioned by time.
void Inspection::identity(bool unique, bool counted, const char* how) {
  if (unique) {
    return;
  }
  const std::string what = sql_.sql("column @ID of ") + table_ + " is not unique by itself";
  const std::string mend =
      "; make a unique index on it alone, or name a column that has one as 'id' in [outbox.NAME.columns]";
  if (counted) {
    remark(what + ": rows are told apart by it, as " + how + mend);
  } else {
    fatal(ErrorCode::invalid, what + ", so that marking one row would mark others that were never published" + mend);
  }
}

std::vector<Finding> Inspection::findings() && {
  std::stable_partition(findings_.begin(), findings_.end(), [](const Finding& finding) { return finding.fatal; });
  return std::move(findings_);
}

}  // namespace sluice::queue::outbox::sql
