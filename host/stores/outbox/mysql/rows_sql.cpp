#include "host/stores/outbox/mysql/rows_sql.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "host/stores/outbox/mysql/names.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

// Larger payloads are not read with a page, so that a page's bytes can be counted before they are there.
constexpr std::size_t kLargePayload = 64UL * 1024;
constexpr std::size_t kCommonCells = 9;

std::optional<WallTime> time_of(const Cell& microseconds) {
  return microseconds ? std::optional(WallTime(std::chrono::microseconds(number_of(microseconds)))) : std::nullopt;
}

/// Since 1970, in microseconds.
std::string since_epoch(const std::string& column) {
  return "TIMESTAMPDIFF(MICROSECOND, '1970-01-01 00:00:00', " + column + ")";
}

std::string text_of(Cell& cell) { return cell ? std::move(*cell) : std::string(); }

std::uint32_t count_of(const Cell& cell) {
  const std::int64_t number = cell ? number_of(cell) : 0;
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(number, 0, std::numeric_limits<std::uint32_t>::max()));
}

std::string groups_list(std::span<const Group> groups) {
  std::string list;
  for (const Group& group : groups) {
    list += (list.empty() ? "(" : ",(") + bytes_literal(group.type) + "," + bytes_literal(group.id) + ")";
  }
  return list;
}

}  // namespace

std::int64_t number_of(const Cell& cell) {
  std::int64_t number = 0;
  if (cell) {
    std::from_chars(cell->data(), cell->data() + cell->size(), number);
  }
  return number;
}

RowsSql::RowsSql(TableSettings settings)
    : settings_(std::move(settings)),
      table_((settings_.schema.empty() ? "" : identifier(settings_.schema) + ".") + identifier(settings_.table)) {}

std::string RowsSql::column(const std::string& name) const { return identifier(name); }
std::string RowsSql::id() const { return column(settings_.columns.id); }
std::string RowsSql::sent_at() const { return column(settings_.columns.sent_at); }
std::string RowsSql::retry_at() const { return column(settings_.columns.retry_at); }
std::string RowsSql::retry_count() const { return column(settings_.columns.retry_count); }
std::string RowsSql::last_error() const {
  return settings_.columns.last_error.empty() ? std::string() : column(settings_.columns.last_error);
}

std::string RowsSql::bucket() const {
  const std::string count = std::to_string(settings_.buckets);
  const std::string aggregate = column(settings_.columns.aggregate_id);
  return "IF(LENGTH(IFNULL(" + aggregate + ",''))=0,MOD(MOD(" + id() + "," + count + ")+" + count + "," + count +
         "),MOD(CRC32(" + aggregate + ")," + count + "))";
}

std::string RowsSql::columns() const {
  const Columns& names = settings_.columns;
  const std::string payload = column(names.payload);
  const std::string held = "IFNULL(" + retry_at() + ">UTC_TIMESTAMP(6),0) OR IFNULL(" + retry_count() +
                           ",0)>=" + std::to_string(settings_.retry_limit);
  std::string list =
      id() + "," + column(names.aggregate_type) + "," + column(names.aggregate_id) + "," + column(names.event) + "," +
      retry_count() + ",TIMESTAMPDIFF(MICROSECOND,UTC_TIMESTAMP(6)," + retry_at() + ")," + bucket() + "," +
      (names.created_at.empty() ? "NULL" : since_epoch(column(names.created_at))) + ",LENGTH(" + payload +
      "),IF(LENGTH(" + payload + ")>" + std::to_string(kLargePayload) + " OR " + held + ",NULL," + payload + ")";
  for (const std::string& attribute : names.attributes) {
    list += "," + column(attribute);
  }
  return list;
}

void RowsSql::read_common(Cells& cells, Row& row) const {
  row.id = number_of(cells[0]);
  const bool typed = cells[1].has_value();
  const bool told = cells[3].has_value();
  row.group = {text_of(cells[1]), text_of(cells[2])};
  row.event = text_of(cells[3]);
  row.retries = count_of(cells[4]);
  row.dead = row.retries >= settings_.retry_limit;
  if (cells[5] && number_of(cells[5]) > 0) {
    row.wait = std::chrono::microseconds(number_of(cells[5]));
  }
  row.bucket = count_of(cells[6]);
  row.created_at = time_of(cells[7]);
  if (!typed) {
    row.unreadable = settings_.columns.aggregate_type + " is NULL";
  } else if (!told) {
    row.unreadable = settings_.columns.event + " is NULL";
  } else if (!cells[8]) {
    row.unreadable = settings_.columns.payload + " is NULL";
  }
}

ReadRow RowsSql::read(Cells&& cells) const {
  ReadRow read;
  read_common(cells, read.row);
  read.payload_missing = read.row.unreadable.empty() && !read.row.wait && !read.row.dead && !cells[kCommonCells];
  read.payload_size = cells[8] ? static_cast<std::size_t>(number_of(cells[8])) : 0;
  read.row.payload = text_of(cells[kCommonCells]);
  for (std::size_t i = 0; i < settings_.columns.attributes.size(); ++i) {
    if (Cell& cell = cells[kCommonCells + 1 + i]) {
      read.row.attributes.emplace(settings_.columns.attributes[i], std::move(*cell));
    }
  }
  return read;
}

std::string RowsSql::stored_columns(bool payload) const {
  const Columns& names = settings_.columns;
  std::string list = id() + "," + column(names.aggregate_type) + "," + column(names.aggregate_id) + "," +
                     column(names.event) + "," + retry_count() + ",TIMESTAMPDIFF(MICROSECOND,UTC_TIMESTAMP(6)," +
                     retry_at() + ")," + bucket() + "," +
                     (names.created_at.empty() ? "NULL" : since_epoch(column(names.created_at))) + ",LENGTH(" +
                     column(names.payload) + ")," + (payload ? column(names.payload) : "''");
  list += "," + since_epoch(retry_at()) + "," + since_epoch(sent_at()) + "," +
          (names.last_error.empty() ? "NULL" : last_error());
  for (const std::string& attribute : names.attributes) {
    list += "," + column(attribute);
  }
  return list;
}

StoredRow RowsSql::read_stored(Cells&& cells) const {
  StoredRow stored;
  read_common(cells, stored.row);
  stored.row.payload = text_of(cells[kCommonCells]);
  stored.retry_at = time_of(cells[kCommonCells + 1]);
  stored.sent_at = time_of(cells[kCommonCells + 2]);
  stored.last_error = text_of(cells[kCommonCells + 3]);
  for (std::size_t i = 0; i < settings_.columns.attributes.size(); ++i) {
    if (Cell& cell = cells[kCommonCells + 4 + i]) {
      stored.row.attributes.emplace(settings_.columns.attributes[i], std::move(*cell));
    }
  }
  return stored;
}

std::string RowsSql::payload_of(std::int64_t row) const {
  return "SELECT " + column(settings_.columns.payload) + " FROM " + table_ + " WHERE " + id() + "=" +
         std::to_string(row);
}

std::string RowsSql::pending(bool with_dead) const {
  std::string text = settings_.resend_sent ? "TRUE" : sent_at() + " IS NULL";
  if (!with_dead) {
    text +=
        " AND (" + retry_count() + " IS NULL OR " + retry_count() + "<" + std::to_string(settings_.retry_limit) + ")";
  }
  return text;
}

std::string RowsSql::dead() const {
  return sent_at() + " IS NULL AND " + retry_count() + ">=" + std::to_string(settings_.retry_limit);
}

std::string RowsSql::wanted(const Filter& filter) const {
  const std::string type = exact(column(settings_.columns.aggregate_type));
  const std::string event = "IFNULL(" + exact(column(settings_.columns.event)) + ",x'')";
  // What stands after the fifth colon of an ARN or RN; empty where there are fewer.
  const std::string resource = "SUBSTRING(" + type + ",LENGTH(SUBSTRING_INDEX(" + type + ",':',5))+2)";
  const std::string is_name = "(" + type + " LIKE 'arn:%' OR " + type + " LIKE 'rn:%')";
  const auto one_of = [&](const std::vector<std::string>& types) {
    const std::string list = list_of(types);
    return "(" + type + " IN (" + list + ") OR (" + is_name + " AND " + resource + " IN (" + list + ")))";
  };
  std::string text;
  if (!filter.types.empty()) {
    text += " AND " + one_of(filter.types);
  }
  if (!filter.deny_types.empty()) {
    text += " AND NOT " + one_of(filter.deny_types);
  }
  if (!filter.events.empty()) {
    text += " AND " + event + " IN (" + list_of(filter.events) + ")";
  }
  if (!filter.skip_events.empty()) {
    text += " AND " + event + " NOT IN (" + list_of(filter.skip_events) + ")";
  }
  return text;
}

std::string RowsSql::in_buckets(std::span<const std::uint32_t> buckets) const {
  return buckets.size() >= settings_.buckets ? std::string() : " AND " + bucket() + " IN (" + list_of(buckets) + ")";
}

std::string RowsSql::group() const {
  return exact(column(settings_.columns.aggregate_type)) + "," + exact(column(settings_.columns.aggregate_id));
}

std::string RowsSql::without(std::span<const Group> groups) const {
  // NULL is in no list, and then nothing is known of NOT.
  return groups.empty() ? std::string() : " AND IFNULL((" + group() + ") IN (" + groups_list(groups) + "),FALSE)=FALSE";
}

std::string RowsSql::within(std::span<const Group> groups) const {
  std::string ids;
  for (const Group& one : groups) {
    ids += (ids.empty() ? "" : ",") + text_literal(one.id);
  }
  // The first part alone can use an index: it finds whatever the collation takes for equal.
  return column(settings_.columns.aggregate_id) + " IN (" + ids + ") AND (" + group() + ") IN (" + groups_list(groups) +
         ")";
}

}  // namespace sluice::queue::outbox::mysql
