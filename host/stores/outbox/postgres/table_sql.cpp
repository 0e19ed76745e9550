#include "host/stores/outbox/postgres/table_sql.hpp"

#include <chrono>
#include <cstdint>

namespace sluice::queue::outbox::postgres {
namespace {

using std::chrono::microseconds;

// Where row_of finds what row_columns asks for.
enum Column : int {
  kId,
  kType,
  kGroup,
  kEvent,
  kPayload,
  kRetries,
  kWait,
  kDead,
  kBucket,
  kCreated,
  kNull,
  kFirstOther
};

std::string micros(const std::string& interval) { return "(extract(epoch FROM " + interval + ")*1000000)::bigint"; }

std::string next_parameter(std::vector<Parameter>& parameters, Parameter value) {
  parameters.push_back(std::move(value));
  return "$" + std::to_string(parameters.size());
}

std::string fence_of(const Fence* fence, std::vector<Parameter>& parameters) {
  return fence == nullptr ? "" : fence->side.while_member(fence->space, fence->member.name, parameters);
}

std::string array_of_types(std::span<const Group> groups) {
  std::vector<std::string> types;
  types.reserve(groups.size());
  for (const Group& group : groups) {
    types.push_back(group.type);
  }
  return array_of(types);
}

std::string array_of_ids(std::span<const Group> groups) {
  std::vector<std::string> ids;
  ids.reserve(groups.size());
  for (const Group& group : groups) {
    ids.push_back(group.id);
  }
  return array_of(ids);
}

}  // namespace

TableSql::TableSql(const TableSettings& settings)
    : settings_(settings),
      table_((settings.schema.empty() ? "" : quoted(settings.schema) + ".") + quoted(settings.table)),
      id_("o." + quoted(settings.columns.id)),
      type_("coalesce(o." + quoted(settings.columns.aggregate_type) + ",'')"),
      group_("coalesce(o." + quoted(settings.columns.aggregate_id) + ",'')"),
      retries_("coalesce(o." + quoted(settings.columns.retry_count) + ",0)") {}

std::string TableSql::bucket() const {
  const std::string count = std::to_string(settings_.buckets);
  return "(CASE WHEN " + group_ + " = '' THEN ((" + id_ + " % " + count + " + " + count + ") % " + count +
         ")::int ELSE (hashtext(" + group_ + "::text) & 2147483647) % " + count + " END)";
}

std::string TableSql::is_dead() const { return retries_ + " >= " + std::to_string(settings_.retry_limit); }

std::string TableSql::waits() const {
  return "coalesce(o." + quoted(settings_.columns.retry_at) + " > localtimestamp, false)";
}

std::string TableSql::pending(bool dead) const {
  const std::string unsent = settings_.resend_sent ? "true" : "o." + quoted(settings_.columns.sent_at) + " IS NULL";
  return dead ? unsent : unsent + " AND " + retries_ + " < " + std::to_string(settings_.retry_limit);
}

std::string TableSql::row_columns(bool payload) const {
  const Columns& names = settings_.columns;
  const std::string raw = "o." + quoted(names.payload);
  const std::string keeps = payload
                                ? "CASE WHEN " + waits() + " OR " + is_dead() + " THEN NULL ELSE " + raw + "::text END"
                                : std::string("NULL");
  std::string all =
      id_ + ", o." + quoted(names.aggregate_type) + ", " + group_ + ", o." + quoted(names.event) + ", " + keeps + ", " +
      retries_ + ", " + micros("(o." + quoted(names.retry_at) + " - localtimestamp)") + ", " + is_dead() + ", " +
      bucket() + ", " +
      (names.created_at.empty() ? std::string("NULL")
                                : micros("(o." + quoted(names.created_at) + " - timestamp '1970-01-01')")) +
      ", " + raw + " IS NULL";
  for (const std::string& other : names.attributes) {
    all += ", o." + quoted(other) + "::text";
  }
  return all;
}

Row TableSql::row_of(const Answer& answer, int row) const {
  Row read;
  read.id = answer.number(row, kId);
  read.group = {std::string(answer.text(row, kType)), std::string(answer.text(row, kGroup))};
  read.event = answer.text(row, kEvent);
  read.payload = answer.text(row, kPayload);
  read.retries = static_cast<std::uint32_t>(answer.number(row, kRetries));
  if (const auto wait = answer.number_or_null(row, kWait); wait && *wait > 0) {
    read.wait = microseconds(*wait);
  }
  read.dead = answer.flag(row, kDead);
  read.bucket = static_cast<std::uint32_t>(answer.number(row, kBucket));
  if (const auto created = answer.number_or_null(row, kCreated)) {
    read.created_at = WallTime(microseconds(*created));
  }
  for (std::size_t i = 0; i < settings_.columns.attributes.size(); ++i) {
    const int column = kFirstOther + static_cast<int>(i);
    if (!answer.is_null(row, column)) {
      read.attributes[settings_.columns.attributes[i]] = answer.text(row, column);
    }
  }
  if (answer.is_null(row, kType)) {
    read.unreadable = settings_.columns.aggregate_type + " is NULL";
  } else if (answer.is_null(row, kEvent)) {
    read.unreadable = settings_.columns.event + " is NULL";
  } else if (answer.flag(row, kNull)) {
    read.unreadable = settings_.columns.payload + " is NULL";
  }
  return read;
}

// The whole type, or the resource that an ARN or RN ends with.
std::string TableSql::type_in(int parameter) const {
  const std::string list = "ANY ($" + std::to_string(parameter) + "::text[])";
  return "(" + type_ + " = " + list + " OR (" + type_ + " ~ '^a?rn:([^:]*:){4}' AND regexp_replace(" + type_ +
         ", '^a?rn:([^:]*:){4}', '') = " + list + "))";
}

void TableSql::add_filter(const Filter& filter, std::string& where, std::vector<Parameter>& parameters) const {
  const std::string event = "coalesce(o." + quoted(settings_.columns.event) + ",'')";
  const auto add = [&](const std::vector<std::string>& list, bool types, bool wanted) {
    if (list.empty()) {
      return;
    }
    const std::string name = next_parameter(parameters, array_of(list));
    where += std::string(" AND ") + (wanted ? "" : "NOT ") +
             (types ? type_in(static_cast<int>(parameters.size())) : "(" + event + " = ANY (" + name + "::text[]))");
  };
  add(filter.types, true, true);
  add(filter.deny_types, true, false);
  add(filter.events, false, true);
  add(filter.skip_events, false, false);
}

Statement TableSql::page(const FetchRequest& request) const {
  Statement statement;
  std::string where = pending(request.dead);
  if (!request.from_start) {
    where += " AND " + id_ + " > " + next_parameter(statement.parameters, std::to_string(request.after)) + "::bigint";
  }
  if (request.buckets.size() < settings_.buckets) {
    where +=
        " AND " + bucket() + " = ANY (" + next_parameter(statement.parameters, array_of(request.buckets)) + "::int[])";
  }
  if (!request.without.empty()) {
    // A hashed list, so that the rows are still read in the order of an index.
    where += " AND (" + group_ + " = '' OR (" + type_ + "::text, " + group_ + "::text) NOT IN (SELECT * FROM unnest(" +
             next_parameter(statement.parameters, array_of_types(request.without)) + "::text[], " +
             next_parameter(statement.parameters, array_of_ids(request.without)) + "::text[])))";
  }
  // A row without a group holds nobody while it waits.
  where += " AND NOT (" + group_ + " = '' AND " + waits() + ")";
  add_filter(*request.filter, where, statement.parameters);
  statement.sql = "SELECT " + row_columns(true) + " FROM " + table_ + " o WHERE " + where + " ORDER BY " + id_ +
                  " LIMIT " + std::to_string(request.limit);
  return statement;
}

Statement TableSql::groups(std::span<const Group> groups, std::size_t limit, const FetchRequest& request,
                           bool indexed) const {
  Statement statement;
  const std::string list = "unnest(" + next_parameter(statement.parameters, array_of_types(groups)) + "::text[], " +
                           next_parameter(statement.parameters, array_of_ids(groups)) +
                           "::text[]) WITH ORDINALITY AS g(type, id, place)";
  const std::string own = "o." + quoted(settings_.columns.aggregate_type) + " = g.type AND o." +
                          quoted(settings_.columns.aggregate_id) + " = g.id";
  std::string where = pending(request.dead) + " AND " + own;
  add_filter(*request.filter, where, statement.parameters);
  const std::string most = std::to_string(limit);
  if (indexed) {
    statement.sql = "SELECT r.*, g.place FROM " + list + ", LATERAL (SELECT " + row_columns(true) + " FROM " + table_ +
                    " o WHERE " + where + " ORDER BY " + id_ + " LIMIT " + most + ") r ORDER BY g.place, 1";
    return statement;
  }
  // Without an index one look at all that is pending is cheaper than one for each group.
  statement.sql = "SELECT " + row_columns(true) +
                  ", ranked.place FROM (SELECT o.*, g.place, row_number() OVER (PARTITION BY " + "g.place ORDER BY " +
                  id_ + ") AS sluice_rank FROM " + list + " JOIN " + table_ + " o ON " + where +
                  ") AS ranked, LATERAL (SELECT ranked.*) AS o WHERE ranked.sluice_rank <= " + most +
                  " ORDER BY ranked.place, " + id_;
  return statement;
}

std::string TableSql::clear_error() const {
  return settings_.columns.last_error.empty() ? "" : ", " + quoted(settings_.columns.last_error) + " = NULL";
}

std::string TableSql::cut_error(const std::string& reason, std::vector<Parameter>& parameters) const {
  const std::string table = next_parameter(parameters, table_);
  const std::string column = next_parameter(parameters, settings_.columns.last_error);
  return "left(" + reason + ", coalesce((SELECT a.atttypmod - 4 FROM pg_attribute a WHERE a.attrelid = to_regclass(" +
         table + ") AND a.attname = " + column + " AND a.atttypmod > 4), 1000000))";
}

Statement TableSql::mark_sent(std::span<const Mark> marks, const Fence* fence) const {
  Statement statement;
  std::vector<std::int64_t> ids;
  std::vector<Parameter> only_if;
  for (const Mark& mark : marks) {
    ids.push_back(mark.id);
    only_if.push_back(mark.only_if ? Parameter(std::to_string(*mark.only_if)) : std::nullopt);
  }
  const std::string list = next_parameter(statement.parameters, array_of(ids)) + "::bigint[]";
  const std::string conditions = next_parameter(statement.parameters, array_of(only_if)) + "::int[]";
  const std::string unsent = settings_.resend_sent ? "" : " AND o." + quoted(settings_.columns.sent_at) + " IS NULL";
  const std::string fenced = fence_of(fence, statement.parameters);
  statement.sql = "UPDATE " + table_ + " SET " + quoted(settings_.columns.sent_at) + " = localtimestamp" +
                  clear_error() + " WHERE " + quoted(settings_.columns.id) + " IN (SELECT " + id_ + " FROM " + table_ +
                  " o JOIN unnest(" + list + ", " + conditions + ") AS m(id, only_if) ON " + id_ +
                  " = m.id WHERE (m.only_if IS NULL OR " + retries_ + " = m.only_if)" + unsent + fenced +
                  " FOR UPDATE OF o SKIP LOCKED) RETURNING " + quoted(settings_.columns.id);
  return statement;
}

Statement TableSql::mark_failed(std::span<const Mark> marks, const Fence* fence) const {
  Statement statement;
  std::vector<std::int64_t> ids;
  std::vector<Parameter> retries;
  std::vector<Parameter> waits;
  std::vector<Parameter> errors;
  std::vector<Parameter> only_if;
  for (const Mark& mark : marks) {
    ids.push_back(mark.id);
    retries.emplace_back(std::to_string(mark.retries));
    const auto wait = std::chrono::duration_cast<microseconds>(mark.wait).count();
    waits.push_back(mark.kind == MarkKind::retry ? Parameter(std::to_string(wait)) : std::nullopt);
    errors.push_back(mark.error.empty() ? std::nullopt : Parameter(mark.error));
    only_if.push_back(mark.only_if ? Parameter(std::to_string(*mark.only_if)) : std::nullopt);
  }
  const Columns& names = settings_.columns;
  std::vector<Parameter>& parameters = statement.parameters;
  const std::string list =
      "unnest(" + next_parameter(parameters, array_of(ids)) + "::bigint[], " +
      next_parameter(parameters, array_of(retries)) + "::int[], " + next_parameter(parameters, array_of(waits)) +
      "::bigint[], " + next_parameter(parameters, array_of(errors)) + "::text[], " +
      next_parameter(parameters, array_of(only_if)) + "::int[]) AS m(id, retries, wait, error, only_if)";
  const std::string error =
      names.last_error.empty() ? "" : ", " + quoted(names.last_error) + " = " + cut_error("h.error", parameters);
  const std::string unsent = settings_.resend_sent ? "" : " AND o." + quoted(names.sent_at) + " IS NULL";
  const std::string fenced = fence_of(fence, parameters);
  statement.sql = "WITH h AS MATERIALIZED (SELECT m.* FROM " + table_ + " o JOIN " + list + " ON " + id_ +
                  " = m.id WHERE (m.only_if IS NULL OR " + retries_ + " = m.only_if)" + unsent + fenced +
                  " FOR UPDATE OF o SKIP LOCKED) UPDATE " + table_ + " AS o SET " + quoted(names.retry_count) +
                  " = h.retries, " + quoted(names.retry_at) + " = localtimestamp + h.wait * interval '1 microsecond'" +
                  error + " FROM h WHERE " + id_ + " = h.id RETURNING h.id";
  return statement;
}

Statement TableSql::still_pending(const std::vector<std::int64_t>& ids) const {
  const std::string unsent = settings_.resend_sent ? "" : " AND o." + quoted(settings_.columns.sent_at) + " IS NULL";
  return {"SELECT " + id_ + ", " + retries_ + " FROM " + table_ + " o WHERE " + id_ + " = ANY ($1::bigint[])" + unsent,
          {array_of(ids)}};
}

}  // namespace sluice::queue::outbox::postgres
