#pragma once

#include <string>
#include <vector>

#include "host/stores/outbox/postgres/connection.hpp"
#include "host/stores/outbox/postgres/side_table.hpp"
#include "host/stores/outbox/rows.hpp"
#include "host/stores/outbox/settings.hpp"

namespace sluice::queue::outbox::postgres {

/// The channel on which the trigger and operators tell of one table: "rows:TABLE" and "changed:TABLE".
inline constexpr const char* kChannel = "sluice_outbox";

/// The SQL of one outbox table. A value. Sessions have the time zone UTC, so that `localtimestamp` fits columns with
/// and without a zone alike.
class TableSql {
 public:
  explicit TableSql(const TableSettings& settings);

  const TableSettings& settings() const { return settings_; }
  const std::string& table() const { return table_; }
  /// A column, quoted.
  std::string column(const std::string& name) const { return quoted(name); }

  /// What `row_of` reads, with `payload` or without.
  std::string row_columns(bool payload) const;
  int row_width() const { return 11 + static_cast<int>(settings_.columns.attributes.size()); }
  Row row_of(const Answer& answer, int row) const;

  /// Rows that are to be published or, with `dead`, that are not sent.
  std::string pending(bool dead) const;
  std::string is_dead() const;
  std::string waits() const;

  Statement page(const FetchRequest& request) const;
  /// The first rows of each group; `indexed`: there is an index that leads to a group's rows. The last column is the
  /// group's place, from 1.
  Statement groups(std::span<const Group> groups, std::size_t limit, const FetchRequest& request, bool indexed) const;

  /// `fence`: null, or the member without whose name nothing is written.
  Statement mark_sent(std::span<const Mark> marks, const Fence* fence) const;
  Statement mark_failed(std::span<const Mark> marks, const Fence* fence) const;
  /// Of these ids, those that are still to be marked: the id and retry_count.
  Statement still_pending(const std::vector<std::int64_t>& ids) const;
  std::string clear_error() const;
  /// A reason, cut to what its column holds: PostgreSQL refuses what is longer.
  std::string cut_error(const std::string& reason, std::vector<Parameter>& parameters) const;

 private:
  std::string bucket() const;
  void add_filter(const Filter& filter, std::string& where, std::vector<Parameter>& parameters) const;
  std::string type_in(int parameter) const;

  TableSettings settings_;
  std::string table_;
  std::string id_;
  std::string type_;
  std::string group_;
  std::string retries_;
};

}  // namespace sluice::queue::outbox::postgres
