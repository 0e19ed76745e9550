#include "base/assert.hpp"
#include "host/stores/outbox/sql/sql_server.hpp"

namespace sluice::queue::outbox {
namespace {

// Larger payloads are not read with a page where the dialect says so, so that a page's bytes can be counted before they
// are there.
constexpr const char* kLargePayload = "65536";
constexpr Duration kLongestWait = std::chrono::hours(24) * 365 * 100;  // and yet it can be added to any time

// Where cells stand. Attributes follow, and what only operators see follows them.
enum CellPlace : std::size_t {
  kId,
  kText,
  kType,
  kGroup,
  kEvent,
  kTries,
  kWait,
  kBucketCell,
  kCreated,
  kPayloadBytes,
  kPayload,
  kAttributes
};

// Not before 1970, from where on a time can be taken from any other.
std::optional<WallTime> time_of(const Cell& microseconds) {
  return microseconds ? std::optional(WallTime(std::max(span_of(microseconds), Duration::zero()))) : std::nullopt;
}

std::uint32_t count_of(const Cell& cell) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(number_of(cell), 0, std::numeric_limits<std::uint32_t>::max()));
}

}  // namespace

std::string micros_of(Duration span) {
  return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(span).count());
}

SqlTable::SqlTable(const config::OutboxConfig& settings, const SqlDialect& dialect,
                   const std::map<std::string, std::string>& types)
    : settings_(settings), dialect_(dialect) {
  const config::OutboxColumns& names = settings_.columns;
  const auto is = [&types](const std::string& name, const char* part) {
    const auto type = types.find(name);
    return type != types.end() && type->second.find(part) != std::string::npos;
  };
  order_is_time_ = is(names.order_by, "time");
  id_is_bytes_ = is(names.id, "binary");
  group_is_bytes_ = is(names.aggregate_id, "binary");
  const std::string schema = settings_.schema.empty() ? "" : name(settings_.schema) + ".";
  words_ = {{"SCHEMA", schema},
            {"TABLE", schema + name(settings_.table)},
            {"SIDE", schema + name(settings_.table + "_sluice")},
            {"SOURCE", schema + name(settings_.table + "_source")},
            {"ID", name(names.id)},
            {"PLACE", name(has_text_ids(names) ? names.order_by : names.id)},
            {"TYPE", name(names.aggregate_type)},
            {"GROUP", name(names.aggregate_id)},
            {"EVENT", name(names.event)},
            {"PAYLOAD", name(names.payload)},
            {"RETRY_AT", name(names.retry_at)},
            {"RETRY_COUNT", name(names.retry_count)},
            {"SENT_AT", name(names.sent_at)},
            {"CREATED_AT", names.created_at.empty() ? "NULL" : name(names.created_at)},
            {"LAST_ERROR", keeps_errors(settings_.columns) ? name(names.last_error) : "NULL"},
            {"FAILED_AT", keeps_failed_at(settings_.columns) ? name(names.failed_at) : "NULL"},
            {"BUCKETS", std::to_string(settings_.buckets)},
            {"LIMIT", std::to_string(settings_.retry_limit)},
            {"NOW", dialect.now},
            {"EPOCH", "TIMESTAMP '1970-01-01 00:00:00'"}};
  words_["TABLE_TEXT"] = dialect_.text(words_["TABLE"]);
  words_["NAME_TEXT"] = dialect_.text(settings_.table);
  words_["SCHEMA_TEXT"] = settings_.schema.empty() ? dialect_.schema : dialect_.text(settings_.schema);
  words_["ID_NAME"] = dialect_.text(names.id);
  words_["OF_TABLE"] = sql(dialect_.of_table);
  words_["LAST_ERROR_TEXT"] = dialect_.text(names.last_error);
  words_["UNSENT"] = settings_.compat ? "TRUE" : sql("@SENT_AT IS NULL");
  words_["TRIES"] = sql("COALESCE(@RETRY_COUNT, 0)");
  words_["DEAD"] = sql("(@TRIES >= @LIMIT)");
  words_["WAITS"] = sql("COALESCE(@RETRY_AT > @NOW, FALSE)");
  words_["UNGROUPED"] = sql("(LENGTH(COALESCE(@GROUP, '')) = 0)");
  words_["ID_TEXT"] = sql(id_is_bytes_ ? dialect.hex_text : dialect.as_text, {words_["ID"]});
  words_["ID_CELL"] = words_[has_text_ids(names) ? "ID_TEXT" : "ID"];
  words_["ID_ORDER"] = sql(dialect.id_order, {words_["ID_TEXT"]});
  words_["PLACE_CELL"] = order_is_time_ ? sql(dialect.micros, {words_["EPOCH"], words_["PLACE"]}) : words_["PLACE"];
  words_["BUCKET"] =
      sql(dialect.bucket, {sql(has_text_ids(names) ? dialect.text_bucket : "((@ID % @BUCKETS + @BUCKETS) % @BUCKETS)",
                               {words_["ID_TEXT"]})});
  words_["BYTES"] = sql(dialect.payload_bytes);
  words_["PAYLOAD_TEXT"] = sql(dialect.as_text, {words_["PAYLOAD"]});
  // Bytes are no text of any character set.
  const auto exact = [&](const std::string& column) {
    return is(column, "binary") ? "COALESCE(@1, '')" : dialect.exact;
  };
  words_["EXACT_TYPE"] = sql(exact(names.aggregate_type), {words_["TYPE"]});
  words_["EXACT_GROUP"] = sql(exact(names.aggregate_id), {words_["GROUP"]});
  words_["EXACT_EVENT"] = sql(exact(names.event), {words_["EVENT"]});
  words_["RESOURCE"] = sql(dialect.resource, {words_["EXACT_TYPE"]});
}

std::string SqlTable::name(std::string_view name) const {
  std::string text(1, dialect_.quote);
  for (const char c : name) {
    text.append(c == dialect_.quote ? 2 : 1, c);
  }
  return text + dialect_.quote;
}

// In one pass, so that nothing is looked for in what was put in.
std::string SqlTable::sql(std::string_view pattern, std::initializer_list<std::string> values) const {
  std::string text;
  for (std::size_t at = 0; at < pattern.size();) {
    const std::size_t mark = std::min(pattern.find('@', at), pattern.size());
    text += pattern.substr(at, mark - at);
    at = mark + 1;
    if (at < pattern.size() && pattern[at] >= '1' && pattern[at] <= '9') {
      text += values.begin()[pattern[at++] - '1'];
    } else if (at <= pattern.size()) {
      const std::size_t end = std::min(pattern.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", at), pattern.size());
      const auto word = words_.find(pattern.substr(at, end - at));
      SLUICE_ASSERT(word != words_.end());
      text += word->second;
      at = end;
    }
  }
  return text;
}

std::string SqlTable::columns(const std::string& payload) const {
  const std::string created =
      settings_.columns.created_at.empty() ? "NULL" : sql(dialect_.micros, {sql("@EPOCH"), sql("@CREATED_AT")});
  std::string list =
      sql("@PLACE_CELL, @4, @5, @6, @7, @RETRY_COUNT, @1, @BUCKET, @2, "
          "CASE WHEN @PAYLOAD IS NULL THEN NULL ELSE @BYTES END, @3",
          {sql(dialect_.micros, {sql("@NOW"), sql("@RETRY_AT")}), created, payload,
           has_text_ids(settings_.columns) ? sql("@ID_ORDER") : "NULL", sql(dialect_.as_text, {sql("@TYPE")}),
           sql(dialect_.as_text, {sql("@GROUP")}), sql(dialect_.as_text, {sql("@EVENT")})});
  // A name of its own each, or ORDER BY would take a text for the column of that name.
  std::size_t number = 0;
  for (const std::string& attribute : settings_.attributes) {
    list += ", " + sql(dialect_.as_text, {name(attribute)}) + " AS sluice_attribute" + std::to_string(++number);
  }
  return list;
}

std::string SqlTable::row_columns() const {
  return columns(sql("CASE WHEN @BYTES > @1 OR @WAITS OR @DEAD THEN NULL ELSE @PAYLOAD_TEXT END", {kLargePayload}));
}

void SqlTable::read_common(Cells& cells, Row& row) const {
  const config::OutboxColumns& names = settings_.columns;
  if (!cells[kType]) {
    row.unreadable = names.aggregate_type + " is NULL";
  } else if (!cells[kEvent]) {
    row.unreadable = names.event + " is NULL";
  }
  if (!cells[kId]) {
    row.unreadable = names.order_by + " is NULL";
  }
  row.id = number_of(cells[kId]);
  row.text = text_of(std::move(cells[kText]));
  if (has_text_ids(names) && row.text.empty()) {
    row.unreadable = names.id + " is empty";
  }
  row.group = {text_of(std::move(cells[kType])), text_of(std::move(cells[kGroup]))};
  row.event = text_of(std::move(cells[kEvent]));
  row.payload = text_of(std::move(cells[kPayload]));
  row.tombstone = !cells[kPayloadBytes];
  row.retries = count_of(cells[kTries]);
  row.dead = row.retries >= settings_.retry_limit;
  if (const Duration wait = span_of(cells[kWait]); wait > Duration::zero()) {
    row.wait = std::min(wait, kLongestWait);
  }
  row.bucket = count_of(cells[kBucketCell]);
  row.created_at = time_of(cells[kCreated]);
  for (std::size_t i = 0; i < settings_.attributes.size(); ++i) {
    if (Cell& cell = cells[kAttributes + i]) {
      row.attributes.emplace(settings_.attributes[i], *std::move(cell));
    }
  }
}

ReadRow SqlTable::read(Cells&& cells) const {
  ReadRow read;
  const bool absent = !cells[kPayload];
  read_common(cells, read.row);
  read.left_out = absent && !read.row.tombstone && read.row.unreadable.empty() && !read.row.wait && !read.row.dead;
  read.bytes = read.left_out ? static_cast<std::size_t>(number_of(cells[kPayloadBytes])) : read.row.payload.size();
  return read;
}

std::string SqlTable::stored_columns(bool payload) const {
  const auto since_epoch = [this](const char* column) { return sql(dialect_.micros, {sql("@EPOCH"), sql(column)}); };
  return columns(sql(payload ? "@PAYLOAD_TEXT" : "NULL")) + ", " + since_epoch("@RETRY_AT") + ", " +
         since_epoch("@SENT_AT") + ", " + sql(dialect_.as_text, {sql("@LAST_ERROR")}) + ", " +
         (keeps_failed_at(settings_.columns) ? since_epoch("@FAILED_AT") : "NULL");
}

StoredRow SqlTable::read_stored(Cells&& cells) const {
  StoredRow stored;
  read_common(cells, stored.row);
  const std::size_t further = kAttributes + settings_.attributes.size();
  stored.retry_at = time_of(cells[further]);
  stored.sent_at = time_of(cells[further + 1]);
  stored.last_error = text_of(std::move(cells[further + 2]));
  stored.failed_at = time_of(cells[further + 3]);
  return stored;
}

std::string SqlTable::chosen_by(const Selection& filter) const {
  std::string where;
  const auto add = [&](const char* pattern, const std::vector<std::string>& texts) {
    const std::string list = joined(mapped(texts, dialect_.exact_text), ",");
    where += list.empty() ? std::string() : (where.empty() ? "" : " AND ") + sql(pattern, {list});
  };
  // The whole type, or the resource that an ARN or RN ends with.
  add("(@EXACT_TYPE IN (@1) OR @RESOURCE IN (@1))", filter.types);
  add("NOT (@EXACT_TYPE IN (@1) OR @RESOURCE IN (@1))", filter.deny_types);
  add("@EXACT_EVENT IN (@1)", filter.events);
  add("@EXACT_EVENT NOT IN (@1)", filter.skip_events);
  return where;
}

std::string SqlTable::wanted(const FetchRequest& request) const {
  const std::string chosen = chosen_by(*request.filter);
  return sql(request.filter->hold_dead ? "@UNSENT" : "@UNSENT AND NOT @DEAD") +
         (chosen.empty() ? "" : " AND " + chosen);
}

std::string SqlTable::taken_by(std::span<const Selection> jobs) const {
  const auto chosen = mapped(jobs, [this](const Selection& job) { return chosen_by(job); });
  const bool all = std::find(chosen.begin(), chosen.end(), "") != chosen.end();
  return chosen.empty() || all ? "TRUE" : "((" + joined(chosen, ") OR (") + "))";
}

std::string SqlTable::page(const FetchRequest& request) const {
  std::string where = wanted(request);
  if (request.beyond) {
    where += " AND " + beyond(*request.beyond);
  }
  if (request.buckets.size() < settings_.buckets) {
    where += sql(" AND @BUCKET IN (@1)", {list_of(request.buckets)});
  }
  if (!request.without.empty()) {
    where += sql(" AND (@UNGROUPED OR (@EXACT_TYPE, @EXACT_GROUP) NOT IN (@1))", {dialect_.groups(request.without)});
  }
  // A row without a group holds nobody while it waits.
  return where + sql(" AND NOT (@UNGROUPED AND @WAITS)");
}

std::vector<SqlTable::Assignment> SqlTable::assignments(const RowEdit& edit) const {
  std::vector<Assignment> list;
  const auto assign = [&](const char* column, RowEdit::Value kind, const std::string& value) {
    if (kind != RowEdit::Value::keep) {
      list.push_back({sql(column), kind == RowEdit::Value::set ? value : "NULL"});
    }
  };
  const std::string retries = std::to_string(edit.retries);
  assign("@SENT_AT", edit.sent ? RowEdit::Value::set : RowEdit::Value::keep, sql("@NOW"));
  assign("@RETRY_COUNT", edit.tries, edit.at_least ? sql("GREATEST(@TRIES, @1)", {retries}) : retries);
  assign("@RETRY_AT", edit.due, from_now(edit.after));
  assign("@LAST_ERROR", keeps_errors(settings_.columns) ? edit.reason : RowEdit::Value::keep,
         sql(dialect_.fitted, {dialect_.text(edit.error)}));
  assign("@FAILED_AT", keeps_failed_at(settings_.columns) ? edit.failed() : RowEdit::Value::keep, sql("@NOW"));
  return list;
}

std::string SqlTable::update(std::span<const RowEdit> edits, const std::string& which) const {
  const auto of_each = mapped(edits, [this](const RowEdit& edit) { return assignments(edit); });
  std::string list;
  for (std::size_t column = 0; column < of_each.front().size(); ++column) {
    const auto& [name, first] = of_each.front()[column];
    const bool alike = std::all_of(of_each.begin(), of_each.end(),
                                   [column, &first = first](const auto& one) { return one.at(column).value == first; });
    std::string cases;
    for (std::size_t i = 0; !alike && i < edits.size(); ++i) {
      cases += " WHEN " + id(edits[i].key) + " THEN " + of_each[i].at(column).value;
    }
    list += (list.empty() ? "" : ", ") + name + " = " + (alike ? first : sql("CASE @ID@1 END", {cases}));
  }
  return sql("UPDATE @TABLE SET @1 WHERE @2", {list, which});
}

std::vector<std::string> SqlTable::updates(std::vector<RowEdit> marks, const RowsOfMarks& rows) const {
  const auto sent_end =
      std::stable_partition(marks.begin(), marks.end(), [](const RowEdit& mark) { return mark.sent; });
  const std::span<const RowEdit> sent(marks.begin(), sent_end);
  const std::span<const RowEdit> failed(sent_end, marks.end());
  std::vector<std::string> statements;
  if (!sent.empty()) {
    statements.push_back(update(sent.first(1), sql("@ID IN (@1)", {rows(sent)})));  // which all assign the same
  }
  if (!failed.empty()) {
    statements.push_back(update(failed, sql("@ID IN (@1)", {rows(failed)})));
  }
  return statements;
}

std::string SqlTable::statement_of(const RowEdit& edit) const {
  return update(std::span(&edit, 1), sql("@ID = @1 AND @SENT_AT IS NULL", {id(edit.key)})) +
         (edit.dead_only ? sql(" AND @DEAD") : "") +
         (edit.only_if ? sql(" AND @TRIES = @1", {std::to_string(*edit.only_if)}) : "");
}

std::string SqlTable::markable(std::span<const RowEdit> marks, const char* wanted_id) const {
  std::string conditions;
  for (const RowEdit& mark : marks) {
    conditions +=
        mark.only_if ? sql(" WHEN @1 THEN @TRIES = @2", {id(mark.key), std::to_string(*mark.only_if)}) : std::string();
  }
  return sql("SELECT @1 FROM @TABLE WHERE @UNSENT AND @ID IN (@2)", {sql(wanted_id), ids(marks)}) +
         (conditions.empty() ? std::string() : sql(" AND CASE @ID@1 ELSE TRUE END", {conditions}));
}

std::string SqlTable::id(const RowKey& key) const {
  return has_text_ids(settings_.columns) ? dialect_.text_id(key.text, id_is_bytes_) : std::to_string(key.id);
}

RowKey SqlTable::key(Cell&& cell) const {
  return has_text_ids(settings_.columns) ? RowKey{.text = text_of(std::move(cell))} : RowKey{.id = number_of(cell)};
}

std::string SqlTable::beyond(const RowKey& key, bool before) const {
  const std::string number = std::to_string(key.id);
  if (!has_text_ids(settings_.columns)) {
    return sql(before ? "@ID < @1" : "@ID > @1", {number});
  }
  const std::string place = order_is_time_ ? sql(dialect_.later, {words_.at("EPOCH"), number}) : number;
  // The first part alone can use an index.
  return sql(
      before ? "@PLACE <= @1 AND (@PLACE < @1 OR @ID_ORDER < @2)" : "@PLACE >= @1 AND (@PLACE > @1 OR @ID_ORDER > @2)",
      {place, dialect_.exact_text(key.text)});
}

std::string SqlTable::groups_by_index(std::span<const Group> groups) const {
  return joined(mapped(groups,
                       [this](const Group& one) {
                         return group_is_bytes_ ? dialect_.exact_text(one.id) : dialect_.text_id(one.id, false);
                       }),
                ",");
}

std::string SqlTable::order(bool newest_first) const {
  const std::string way = newest_first ? " DESC" : "";
  return sql("@PLACE") + way + (has_text_ids(settings_.columns) ? sql(", @ID_ORDER") + way : "");
}

std::string SqlTable::from_now(Duration span) const { return sql(dialect_.later, {sql("@NOW"), micros_of(span)}); }

}  // namespace sluice::queue::outbox
