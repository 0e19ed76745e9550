#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "host/stores/outbox/row_edit.hpp"
#include "host/stores/outbox/rows.hpp"
#include "host/stores/outbox/settings.hpp"
#include "host/stores/outbox/sql/sql_connection.hpp"

namespace sluice::queue::outbox::sql {

/// How a server spells what the others spell otherwise: patterns in which SqlTable's words stand, and @1, @2 for what
/// is given. A value.
struct SqlDialect {
  char quote;                             ///< of names
  std::string (*text)(std::string_view);  ///< a text, whatever is in it
  /// A text as it is compared with a column that `exact` has been applied to.
  std::string (*exact_text)(std::string_view);
  /// What a pair of exact texts is looked for in: what stands between the brackets of IN (...).
  std::string (*groups)(std::span<const Group>);
  const char* now;
  const char* later;     ///< @1 microseconds from now
  const char* micros;    ///< from @1 to @2
  const char* as_text;   ///< a column as it goes out
  const char* exact;     ///< a column so that only the same bytes are equal; NULL is empty
  const char* resource;  ///< what an ARN or RN ends with, after its fifth colon; another exact type as it is
  const char* bucket;
  const char* payload_bytes;  ///< where rows come without payloads that are large; 0: they come with them
  const char* fitted;         ///< a reason @1, cut to what its column holds where the server refuses what is longer
  const char* space;          ///< the name of a lock space, @1
  const char* insert_new;     ///< @1 into @SIDE, but for rows whose keys are there
  const char* prune;          ///< deletes rows for which @1 holds, at most @2
  const char* notice;         ///< tells sources of @1; empty: the server cannot
};

/// "1,2,3"
template <typename Range>
std::string list_of(const Range& numbers) {
  std::string text;
  for (const auto number : numbers) {
    text += (text.empty() ? "" : ",") + std::to_string(number);
  }
  return text;
}
std::string micros_of(Duration span);
/// In quotes, which are doubled within.
std::string quoted_name(char quote, std::string_view name);

/// A row as it was read.
struct ReadRow {
  Row row;
  std::size_t bytes = 0;  ///< of its payload
  bool left_out = false;  ///< the payload is to be read by itself
};

/// The SQL of one outbox table in one dialect. Immutable. `dialect` outlives it.
///
/// Statements are patterns with words for what the settings name: @TABLE, @ID, @SENT_AT and so on for columns, @TRIES
/// (retry_count, NULL is 0), @DEAD, @WAITS (retry_at lies ahead), @UNSENT, @SIDE (the table of leases), @NOW.
class SqlTable {
 public:
  SqlTable(const TableSettings& settings, const SqlDialect& dialect);

  const TableSettings& settings() const { return settings_; }
  const SqlDialect& dialect() const { return dialect_; }
  /// The pattern with its words, and with `values` for @1, @2 and so on.
  std::string sql(std::string_view pattern, std::initializer_list<std::string> values = {}) const;
  std::string name(std::string_view name) const { return quoted_name(dialect_.quote, name); }
  std::string text(std::string_view text) const { return dialect_.text(text); }
  bool keeps_errors() const { return !settings_.columns.last_error.empty(); }

  /// Of a row that is to be handed out; the payload of one that waits or is dead is left away.
  std::string row_columns() const;
  ReadRow read(Cells&& cells) const;
  /// Of a row for an operator.
  std::string stored_columns(bool payload) const;
  StoredRow read_stored(Cells&& cells) const;

  std::string page(const FetchRequest& request) const;
  /// The condition for rows to be published or, with `dead`, that were not sent, as the filter wants them.
  std::string wanted(const FetchRequest& request) const;

  std::string assignments(const RowEdit& edit) const;
  /// An edit of one row.
  std::string statement_of(std::int64_t id, const RowEdit& edit) const;
  /// Selects the ids of rows that may be marked.
  std::string markable(std::span<const Mark> marks) const;

 private:
  std::string columns(const std::string& payload) const;
  void read_common(Cells& cells, Row& row) const;

  const TableSettings settings_;
  const SqlDialect& dialect_;
  std::map<std::string, std::string, std::less<>> words_;
};

}  // namespace sluice::queue::outbox::sql
