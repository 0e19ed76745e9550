#pragma once

#include <span>
#include <string>

#include "host/stores/outbox/mysql/session.hpp"
#include "host/stores/outbox/rows.hpp"
#include "host/stores/outbox/settings.hpp"

namespace sluice::queue::outbox::mysql {

/// A row as it was read, and how much of its payload was not.
struct ReadRow {
  Row row;
  std::size_t payload_size = 0;
  bool payload_missing = false;  ///< it is large, and is to be read by itself
};

/// The SQL of one table's rows. Immutable.
class RowsSql {
 public:
  explicit RowsSql(TableSettings settings);

  const TableSettings& settings() const { return settings_; }
  /// "`schema`.`table`"
  const std::string& table() const { return table_; }
  /// A column, quoted.
  std::string id() const;
  std::string sent_at() const;
  std::string retry_at() const;
  std::string retry_count() const;
  std::string last_error() const;

  /// Of a row that is to be handed out: `large` payloads and those of rows that are not are left away.
  std::string columns() const;
  ReadRow read(Cells&& cells) const;
  /// Of a row for an operator.
  std::string stored_columns(bool payload) const;
  StoredRow read_stored(Cells&& cells) const;
  std::string payload_of(std::int64_t id) const;

  /// "sent_at IS NULL" and tries left; with `dead` without the latter.
  std::string pending(bool dead) const;
  std::string dead() const;
  /// " AND ..." for what a job wants; empty for everything.
  std::string wanted(const Filter& filter) const;
  std::string in_buckets(std::span<const std::uint32_t> buckets) const;
  std::string without(std::span<const Group> groups) const;
  std::string within(std::span<const Group> groups) const;
  /// "type, id" of the group, exact.
  std::string group() const;

 private:
  std::string column(const std::string& name) const;
  std::string bucket() const;
  void read_common(Cells& cells, Row& row) const;

  const TableSettings settings_;
  const std::string table_;
};

std::int64_t number_of(const Cell& cell);

}  // namespace sluice::queue::outbox::mysql
