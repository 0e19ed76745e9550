#include "host/stores/outbox/sql/inspection.hpp"

#include <algorithm>

namespace sluice::queue::outbox::sql {

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
