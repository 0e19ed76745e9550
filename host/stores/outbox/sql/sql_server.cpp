#include "host/stores/outbox/sql/sql_server.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <set>

#include "base/ranges.hpp"
#include "base/timestamp.hpp"
#include "host/stores/outbox/lease_locks.hpp"

namespace sluice::queue::outbox {

std::int64_t number_of(const Cell& cell) {
  std::int64_t number = 0;
  if (cell) {
    std::from_chars(cell->data(), cell->data() + cell->size(), number);
  }
  return number;
}

Duration span_of(const Cell& cell) {
  constexpr std::int64_t kMost = kEndOfTime.time_since_epoch() / std::chrono::microseconds(1);
  return std::chrono::microseconds(std::clamp(number_of(cell), -kMost, kMost));
}

bool flag_of(const Cell& cell) { return cell == "t" || cell == "1"; }

std::string text_of(Cell&& cell) { return cell ? *std::move(cell) : std::string(); }

std::size_t end_of_user(std::string_view url) {
  const std::size_t at = url.find('@');
  const std::size_t query = url.find('?', at < url.find('/') ? at : 0);
  return url.substr(0, query).rfind('@');
}

Result<Answer> lock_rows(SqlConnection& connection, const std::string& select, bool skip, Deadline deadline) {
  return connection.run(select + (skip && connection.skips_locked() ? " FOR UPDATE SKIP LOCKED" : " FOR UPDATE"),
                        deadline);
}

Result<void> in_transaction(SqlConnection& connection, const std::function<Result<void>()>& work, Deadline deadline) {
  constexpr int kTries = 4;
  for (int attempt = 1;; ++attempt) {
    SLUICE_PASS_ON(connection.run("BEGIN", deadline));
    auto worked = work();
    if (worked) {
      const auto committed = connection.run("COMMIT", deadline);
      if (committed) {
        return {};
      }
      // The server may have done it before it was gone.
      const ErrorCode code = committed.error().code();
      return Error(ends_session(code) ? ErrorCode::unknown_outcome : code, committed.error().message());
    }
    // Where the session is over the server rolls back itself.
    if (ends_session(worked.error().code()) || connection.run("ROLLBACK", deadline).has_error() ||
        worked.error().code() != ErrorCode::throttled || attempt >= kTries) {
      return worked;
    }
  }
}

Result<std::vector<MarkStatus>> write_marks(SqlServer& server, SqlConnection& connection,
                                            std::span<const RowEdit> marks, const MarkFence* fence, Deadline deadline) {
  std::vector<MarkStatus> statuses(marks.size(), MarkStatus::written);
  if (marks.empty()) {
    return statuses;
  }
  SLUICE_TRY(written, server.write(connection, marks, fence, deadline));
  std::vector<RowEdit> others;
  std::copy_if(marks.begin(), marks.end(), std::back_inserter(others),
               [&](const RowEdit& mark) { return !written->contains(mark.key); });
  if (others.empty()) {
    return statuses;
  }
  auto markable = connection.run(server.table().markable(others), deadline);
  if (!markable) {
    // What the transaction wrote is committed; of the rest nothing is known.
    const ErrorCode code = markable.error().code();
    return Error(ends_session(code) ? ErrorCode::unknown_outcome : code, markable.error().message());
  }
  // What is still to be published and was not written, a transaction of somebody else's has.
  RowKeys locked;
  for (Cells& row : markable->rows) {
    locked.insert(server.table().key(std::move(row[0])));
  }
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const RowKey& key = marks[i].key;
    statuses[i] = written->contains(key) ? MarkStatus::written
                  : locked.contains(key) ? MarkStatus::locked
                                         : MarkStatus::gone;
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
  } else if (!contains(kind.types, type->second)) {
    fatal(ErrorCode::invalid, "column " + sql_.name(name) + " of " + table_ + " is of type " + type->second +
                                  ", and '" + key + "' must be " + kind.expected);
  }
}

void Inspection::columns(const std::map<std::string, std::string>& types, const ColumnTypes& expected) {
  const config::OutboxColumns& names = sql_.settings().columns;
  if (names.last_error.empty()) {
    remark(table_ +
           " has no column for 'last_error': why rows failed stands in the log alone; `sluice outbox ddl` "
           "has one");
  }
  column("id", names.id, has_text_ids(names) ? expected.text_id : expected.id, types);
  if (has_text_ids(names)) {
    ColumnTypes::Kind order{expected.time.types, "a number or a time"};
    order.types.insert(order.types.end(), expected.count.types.begin(), expected.count.types.end());
    column("order_by", names.order_by, order, types);
  }
  column("aggregate_type", names.aggregate_type, expected.text, types);
  column("aggregate_id", names.aggregate_id, expected.text, types);
  column("event", names.event, expected.text, types);
  column("payload", names.payload, expected.payload, types);
  column("retry_at", names.retry_at, expected.time, types);
  column("retry_count", names.retry_count, expected.count, types);
  column("sent_at", names.sent_at, expected.time, types);
  column("created_at", names.created_at, expected.time, types);
  column("last_error", names.last_error, expected.reason, types);
  column("failed_at", names.failed_at, expected.time, types);
  for (const std::string& other : sql_.settings().attributes) {
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

namespace {

constexpr const char* kTableDdl = R"(-- The outbox table of [outbox.@1]. Columns of your own may stand beside these.
CREATE TABLE IF NOT EXISTS @TABLE (
  @ID @2 PRIMARY KEY,
  @TYPE varchar(255) NOT NULL,
  @GROUP varchar(255) NOT NULL DEFAULT '',
  @EVENT varchar(255) NOT NULL,
  @PAYLOAD json NOT NULL@3)";

constexpr const char* kInUseDdl =
    R"(-- What the outbox table of [outbox.@1] may lack, while it is in use: writers wait for nothing of it.
@2@3)";

constexpr const char* kSideDdl = R"(
-- Who has which rows, for coordination = "table". Short-lived facts: it may be emptied while no host runs.
CREATE TABLE IF NOT EXISTS @SIDE (
  space @1 NOT NULL,  -- which job
  kind smallint NOT NULL,    -- 1: a bucket, 2: a host's session
  number bigint NOT NULL,    -- of the bucket, or of the session
  owner bigint NOT NULL,     -- of a bucket: the session that has it, or 0
  counter bigint NOT NULL,   -- grows with each change of hands, or with each heartbeat
  lease_ms bigint NOT NULL,  -- of a session: how long others wait without a heartbeat
  buckets int NOT NULL,      -- of a session: into how many it shares the outbox
  PRIMARY KEY (space, kind, number)
@2)";

// Errors are grouped by their beginning, and only the most frequent are told.
constexpr const char* kMostGroups = "50";
constexpr const char* kErrorLetters = "200";

std::uint64_t rows_of(const Cell& cell) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, number_of(cell)));
}

// In microseconds.
constexpr std::int64_t kLastTime = 253'402'300'799'999'999;

/// Where the server would sort all rows for which `where` holds, it is narrowed to the first ones, whose places an
/// index tells in their order. True: there are as many as asked for, or more.
Result<bool> narrow(const SqlTable& table, SqlConnection& connection, std::string& where, std::size_t limit,
                    bool newest_first, Deadline deadline) {
  if (!table.dialect().sorts_all || !has_text_ids(table.settings().columns)) {
    return false;
  }
  SLUICE_TRY(ends, connection.run(table.sql("SELECT COUNT(*), @1(place) FROM (SELECT @PLACE_CELL AS place FROM @TABLE "
                                            "WHERE @2 ORDER BY @PLACE@3 LIMIT @4) AS page",
                                            {newest_first ? "MIN" : "MAX", where, newest_first ? " DESC" : "",
                                             std::to_string(limit)}),
                                  deadline));
  const Cells& cells = ends->rows.front();
  const std::int64_t place = number_of(cells[1]);
  if (place == kLastTime || place == std::numeric_limits<std::int64_t>::max() ||
      place == std::numeric_limits<std::int64_t>::min()) {
    return false;  // there is none beyond it
  }
  // Of the last place all rows, as none is known to be the last of them.
  const RowKey next{.id = place + (newest_first ? -1 : 1)};
  where += table.sql(" AND (@PLACE IS NULL OR @1)", {cells[1] ? table.beyond(next, !newest_first) : "FALSE"});
  return rows_of(cells[0]) >= limit;
}

std::string rows_in_order(const SqlTable& table, const std::string& columns, const std::string& where,
                          std::size_t limit, bool newest_first = false) {
  return table.sql("SELECT @1 FROM @TABLE WHERE @2 ORDER BY @3 LIMIT @4",
                   {columns, where, table.order(newest_first), std::to_string(limit)});
}

class SqlReadSession final : public ReadSession {
 public:
  SqlReadSession(SqlServer& server, std::unique_ptr<SqlConnection> connection)
      : server_(server), table_(server.table()), connection_(std::move(connection)) {}

  Result<SourceId> source_id(Deadline deadline) override { return server_.source_id(*connection_, deadline); }

  Result<Page> fetch(const FetchRequest& request, Deadline deadline) override {
    Page page;
    do {
      std::string where = table_.page(request);
      // Some of as many as asked for may be marked before they are read, or all of them.
      SLUICE_TRY(full, narrow(table_, *connection_, where, request.limit, false, deadline));
      SLUICE_TRY(stretch, read(rows_in_order(table_, table_.row_columns(), where, request.limit), request.bytes,
                               page.rows, deadline));
      page.more = *full || !stretch->all || stretch->rows >= request.limit;
    } while (page.more && page.rows.empty());
    return page;
  }

  Result<std::vector<Page>> fetch_groups(std::span<const Group> groups, const FetchRequest& request,
                                         Deadline deadline) override {
    std::vector<Page> answers(groups.size());
    if (groups.empty()) {
      return answers;
    }
    // One more row of each says whether there are more.
    SLUICE_TRY(statement,
               server_.group_statement(*connection_, groups, request.limit + 1, table_.wanted(request), deadline));
    if (statement->text.empty()) {
      return answers;
    }
    std::vector<Row> rows;
    SLUICE_TRY(stretch, read(statement->text, request.bytes, rows, deadline));
    // In the place of a row that has gone since there may be one that was not looked for.
    const bool some_gone = stretch->rows < statement->rows || stretch->rows > rows.size();
    std::map<Group, Page*> places;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      places.emplace(groups[i], &answers[i]);
      answers[i].more = !stretch->all || some_gone;
    }
    for (Row& row : rows) {
      const auto place = places.find(row.group);
      if (place != places.end() && place->second->rows.size() < request.limit) {
        place->second->rows.push_back(std::move(row));
      } else if (place != places.end()) {
        place->second->more = true;
      }
    }
    return answers;
  }

  bool wants_looks() const override { return !server_.tells_of_rows(); }

  int news_descriptor() const override { return connection_->descriptor(); }

  Result<News> news() override {
    SLUICE_TRY(told, connection_->notifications());
    const auto has = [&](const char* what) {
      return std::find(told->begin(), told->end(), what + table_.settings().table) != told->end();
    };
    return has("changed:") ? News::changed : has("rows:") ? News::rows : News::none;
  }

 private:
  struct Stretch {
    bool all = false;      ///< false: their payloads were more bytes than the caller wants to hold
    std::size_t rows = 0;  ///< that the statement found
  };
  Result<Stretch> read(const std::string& statement, std::size_t bytes, std::vector<Row>& rows, Deadline deadline) {
    RowKeys left_out;
    std::size_t held = 0;
    SLUICE_TRY(all, connection_->stream(
                        statement,
                        [&](Cells&& cells) {
                          ReadRow read = table_.read(std::move(cells));
                          held += read.bytes;
                          if (read.left_out) {
                            left_out.insert(read.row.key());
                          }
                          rows.push_back(std::move(read.row));
                          return held <= bytes;
                        },
                        deadline));
    const Stretch stretch{*all, rows.size()};
    for (const RowKey& key : left_out) {
      SLUICE_TRY(found, connection_->run(
                            table_.sql("SELECT @PAYLOAD_TEXT FROM @TABLE WHERE @ID = @1", {table_.id(key)}), deadline));
      const auto row = std::find_if(rows.begin(), rows.end(), [&key](const Row& one) { return one.key() == key; });
      if (found->rows.empty() || !found->rows.front()[0]) {
        rows.erase(row);  // deleted in between
      } else {
        row->payload = *std::move(found->rows.front()[0]);
      }
    }
    return stretch;
  }

  SqlServer& server_;
  const SqlTable& table_;
  const std::unique_ptr<SqlConnection> connection_;
};

class SqlAdminSession final : public AdminSession {
 public:
  SqlAdminSession(SqlServer& server, std::unique_ptr<SqlConnection> connection)
      : server_(server), table_(server.table()), connection_(std::move(connection)) {}

  Result<std::vector<Finding>> inspect(Deadline deadline) override { return server_.inspect(*connection_, deadline); }
  Result<SourceId> source_id(Deadline deadline) override { return server_.source_id(*connection_, deadline); }
  Result<std::optional<std::string>> holder_of(const LockSpace& space, std::uint32_t bucket,
                                               Deadline deadline) override {
    if (server_.settings().config.side_table) {
      return std::optional<std::string>();
    }
    SLUICE_TRY(holder, server_.holder_of(*connection_, space, bucket, deadline));
    if (holder->rows.empty() || !holder->rows.front()[0]) {
      return std::optional<std::string>("");
    }
    const Cells& cells = holder->rows.front();
    const std::string application = cells[2].value_or("");
    constexpr std::string_view kHost = Settings::kApplication;
    return std::optional(application.starts_with(kHost)
                             ? "host " + application.substr(kHost.size())
                             : "the server's session " + *cells[0] + (cells[1] ? " from " + *cells[1] : std::string()));
  }

  Result<StoredRow> get(const RowKey& key, Deadline deadline) override {
    SLUICE_TRY(found,
               run("SELECT @1 FROM @TABLE WHERE @ID = @2", {table_.stored_columns(true), table_.id(key)}, deadline));
    if (found->rows.empty()) {
      return Error(ErrorCode::not_found, table_.sql("table @TABLE has no row @1", {to_string(key)}));
    }
    return table_.read_stored(std::move(found->rows.front()));
  }

  Result<std::vector<StoredRow>> list(const ListRows& request, Deadline deadline) override {
    const std::string half =
        table_.sql(request.half == Half::dlq ? "@SENT_AT IS NULL AND @DEAD" : "@SENT_AT IS NULL AND NOT @DEAD");
    std::vector<StoredRow> rows;
    std::optional<RowKey> last = request.beyond;
    // In the place of those that were marked before they were read come the next ones: a short page is the last one.
    for (bool more = true; more && rows.size() < request.limit;) {
      std::string where = half + (last ? " AND " + table_.beyond(*last, request.newest_first) : std::string());
      const std::size_t missing = request.limit - rows.size();
      SLUICE_TRY(full, narrow(table_, *connection_, where, missing, request.newest_first, deadline));
      SLUICE_TRY(found, connection_->run(rows_in_order(table_, table_.stored_columns(request.payload), where, missing,
                                                       request.newest_first),
                                         deadline));
      for (Cells& cells : found->rows) {
        rows.push_back(table_.read_stored(std::move(cells)));
        last = rows.back().row.key();
      }
      more = *full;
    }
    return rows;
  }

  Result<TableCounts> count(const CountRequest& request, Deadline deadline) override {
    const std::string taken = table_.taken_by(request.jobs);
    const std::string pending = table_.sql("NOT @DEAD AND @1", {taken});
    const std::string oldest = table_.sql("MIN(CASE WHEN @1 THEN @CREATED_AT END)", {pending});
    const std::string age = table_.settings().columns.created_at.empty()
                                ? "NULL"
                                : table_.sql(table_.dialect().micros, {oldest, table_.sql("@NOW")});
    SLUICE_TRY(found, run("SELECT SUM(CASE WHEN @1 AND NOT @WAITS THEN 1 ELSE 0 END), "
                          "SUM(CASE WHEN @1 AND @WAITS THEN 1 ELSE 0 END), "
                          "SUM(CASE WHEN @DEAD THEN 1 ELSE 0 END), MIN(CASE WHEN @1 THEN @PLACE_CELL END), @2, "
                          "SUM(CASE WHEN NOT @DEAD AND NOT @3 THEN 1 ELSE 0 END) FROM @TABLE WHERE @SENT_AT IS NULL",
                          {pending, age, taken}, deadline));
    const Cells& cells = found->rows.front();
    TableCounts counts{.ready = rows_of(cells[0]),
                       .waiting = rows_of(cells[1]),
                       .dead = rows_of(cells[2]),
                       .excluded = rows_of(cells[5])};
    if (cells[3] && !has_text_ids(table_.settings().columns)) {
      counts.oldest_id = number_of(cells[3]);
    }
    if (cells[4]) {
      counts.oldest = std::max(Duration::zero(), span_of(cells[4]));
    }
    if (request.sent) {
      SLUICE_TRY(sent, run("SELECT COUNT(*) FROM @TABLE WHERE @SENT_AT IS NOT NULL", {}, deadline));
      counts.sent = rows_of(sent->rows.front()[0]);
    }
    if (request.details) {
      SLUICE_PASS_ON(count_by(table_.sql("@EXACT_TYPE"), pending, counts.by_type, deadline));
    }
    if (request.details && keeps_errors(table_.settings().columns)) {
      const std::string begin = table_.sql("LEFT(@LAST_ERROR, @1)", {kErrorLetters});
      const std::string kind = table_.sql(table_.dialect().exact, {begin});
      SLUICE_PASS_ON(count_by(kind, table_.sql("@LAST_ERROR IS NOT NULL"), counts.by_error, deadline));
    }
    return counts;
  }

  Result<std::vector<ChangeStatus>> change(std::span<const RowEdit> edits, Deadline deadline) override {
    auto statements = mapped(edits, [this](const RowEdit& edit) { return table_.statement_of(edit); });
    statements.push_back(table_.sql("SELECT @ID_CELL FROM @TABLE WHERE @ID IN (@1)", {table_.ids(edits)}));
    if (*table_.dialect().notice != '\0') {
      statements.push_back(
          table_.sql(table_.dialect().notice, {table_.dialect().text("changed:" + table_.settings().table)}));
    }
    SLUICE_TRY(answers, connection_->run_together(statements, deadline));
    RowKeys there;
    for (Cells& row : (*answers)[edits.size()].rows) {
      there.insert(table_.key(std::move(row[0])));
    }
    std::vector<ChangeStatus> changed;
    for (std::size_t i = 0; i < edits.size(); ++i) {
      changed.push_back((*answers)[i].touched > 0      ? ChangeStatus::applied
                        : there.contains(edits[i].key) ? ChangeStatus::conflict
                                                       : ChangeStatus::not_found);
    }
    return changed;
  }

  Result<std::uint64_t> prune(const PruneRequest& request, Deadline deadline) override {
    const std::string old = table_.sql("@SENT_AT < ") + table_.from_now(-request.sent_before);
    if (request.dry_run) {
      SLUICE_TRY(found, run("SELECT COUNT(*) FROM @TABLE WHERE @1", {old}, deadline));
      return rows_of(found->rows.front()[0]);
    }
    const std::string statement = table_.sql(table_.dialect().prune, {old, std::to_string(request.limit)});
    SLUICE_TRY(done, connection_->run_together(std::span(&statement, 1), deadline));
    return done->front().touched;
  }

 private:
  Result<Answer> run(std::string_view pattern, std::initializer_list<std::string> values, Deadline deadline) {
    return connection_->run(table_.sql(pattern, values), deadline);
  }

  /// How many unsent rows there are of each kind, an exact text, of which there may be very many.
  Result<void> count_by(const std::string& kind, const std::string& where, std::map<std::string, std::uint64_t>& into,
                        Deadline deadline) {
    SLUICE_TRY(found, run("SELECT @1, COUNT(*) FROM @TABLE WHERE @SENT_AT IS NULL AND @2 GROUP BY 1 ORDER BY 2 DESC "
                          "LIMIT @3",
                          {kind, where, kMostGroups}, deadline));
    for (Cells& row : found->rows) {
      into[text_of(std::move(row[0]))] = rows_of(row[1]);
    }
    return {};
  }

  SqlServer& server_;
  const SqlTable& table_;
  const std::unique_ptr<SqlConnection> connection_;
};

/// Leases in the side table that coordination = "table" has: a row for each bucket of a space and one for each member.
/// Whoever takes a bucket of a dead member takes its name away in the same transaction, and marks are written together
/// with a heartbeat of their writer: one that is late by any amount writes nothing, on a cluster whose nodes are all
/// written to as well.
class SqlLeaseBook final : public LeaseBook {
 public:
  /// `server` outlives it.
  SqlLeaseBook(SqlServer& server, std::unique_ptr<SqlConnection> connection)
      : server_(server), connection_(std::move(connection)) {}

  // A row's kind: 1 of a bucket, 2 of a member.
  void open(const LockSpace& space) override {
    const SqlDialect& dialect = server_.table().dialect();
    space_ = sql(dialect.space, {dialect.exact_text(space.name)});
    bucket_rows_ = "space = " + space_ + " AND kind = 1";
    member_rows_ = "space = " + space_ + " AND kind = 2";
  }

  Result<void> announce(const LeaseMember& member, Deadline deadline) override {
    if (member.counter > 1) {
      SLUICE_TRY(written, connection_->run(heartbeat(member), deadline));
      return written->touched == 1 ? Result<void>() : Result<void>(name_is_gone());
    }
    const auto rows = [](const std::string& values) {
      return "(space, kind, number, owner, counter, lease_ms, buckets) VALUES " + values;
    };
    const auto lease = std::chrono::duration_cast<std::chrono::milliseconds>(member.lease).count();
    const std::string self = sql("(@1, 2, @2, 0, 1, @3, @4)", {space_, std::to_string(member.name),
                                                               std::to_string(lease), std::to_string(member.buckets)});
    std::string buckets;
    for (std::uint32_t bucket = 0; bucket < member.buckets; ++bucket) {
      buckets += (bucket == 0 ? "" : ", ") + sql("(@1, 1, @2, 0, 1, 0, 0)", {space_, std::to_string(bucket)});
    }
    const std::array both{sql("INSERT INTO @SIDE @1", {rows(self)}),
                          sql(server_.table().dialect().insert_new, {rows(buckets)})};
    SLUICE_PASS_ON(connection_->run_together(both, deadline));
    return {};
  }

  Result<std::vector<LeaseMember>> members(Deadline deadline) override {
    SLUICE_TRY(found, run("SELECT number, counter, lease_ms, buckets FROM @SIDE WHERE @1", {member_rows_}, deadline));
    return mapped(found->rows, [](const Cells& row) {
      return LeaseMember{.name = number_of(row[0]),
                         .counter = number_of(row[1]),
                         .lease = lease_of(number_of(row[2])),
                         .buckets = static_cast<std::uint32_t>(number_of(row[3]))};
    });
  }

  void bury(std::span<const LeaseMember> members, Deadline deadline) override {
    const auto which = mapped(members, [this](const LeaseMember& member) {
      return sql("(number = @1 AND counter <= @2)", {std::to_string(member.name), std::to_string(member.counter)});
    });
    (void)run("DELETE FROM @SIDE WHERE @1 AND (@2)", {member_rows_, joined(which, " OR ")}, deadline);
  }

  Result<BucketLeases> buckets(Deadline deadline) override {
    SLUICE_TRY(found, run("SELECT b.number, b.counter, COALESCE(m.number, 0) FROM @SIDE b LEFT JOIN @SIDE m ON m.space "
                          "= b.space AND m.kind = 2 AND m.number = b.owner WHERE b.space = @1 AND b.kind = 1",
                          {space_}, deadline));
    BucketLeases leases;
    for (const Cells& row : found->rows) {
      leases[static_cast<std::uint32_t>(number_of(row[0]))] = {.owner = number_of(row[2]), .epoch = number_of(row[1])};
    }
    return leases;
  }

  Result<std::vector<std::uint32_t>> change_hands(const BucketLeases& before, std::int64_t owner,
                                                  Deadline deadline) override {
    std::vector<std::uint32_t> taken;
    SLUICE_PASS_ON(in_transaction(
        *connection_, [&] { return take(before, owner, taken, deadline); }, deadline));
    return taken;
  }

  Result<std::vector<MarkStatus>> mark(std::span<const RowEdit> marks, const LeaseMember* member,
                                       Deadline deadline) override {
    if (member == nullptr) {
      return write_marks(server_, *connection_, marks, nullptr, deadline);
    }
    const MarkFence fence{heartbeat(*member), sql(" AND EXISTS (SELECT 1 FROM @SIDE WHERE @1 AND number = @2)",
                                                  {member_rows_, std::to_string(member->name)})};
    return write_marks(server_, *connection_, marks, &fence, deadline);
  }

  bool marks_are_heartbeats() const override { return true; }

 private:
  // Rows are locked in the order of their numbers, as everybody does, so that nobody waits for somebody who waits for
  // him.
  Result<void> take(const BucketLeases& before, std::int64_t owner, std::vector<std::uint32_t>& taken,
                    Deadline deadline) {
    const auto numbers = mapped(before, [](const auto& one) { return one.first; });
    if (owner != 0) {
      const auto deposed = mapped(before, [](const auto& one) { return one.second.owner; });
      const std::string rows = sql("@SIDE WHERE @1 AND number IN (@2)", {member_rows_, list_of(deposed)});
      SLUICE_PASS_ON(lock_rows(*connection_, "SELECT number FROM " + rows + " ORDER BY number", false, deadline));
      SLUICE_PASS_ON(connection_->run("DELETE FROM " + rows, deadline));
    }
    // What somebody else is taking is not waited for. What is given back is: whoever was too late for it has it locked
    // for a moment, and a bucket that stayed in the name of somebody who does not work on it would be lost.
    SLUICE_TRY(locked, lock_rows(*connection_,
                                 sql("SELECT number, counter FROM @SIDE WHERE @1 AND number IN (@2) "
                                     "ORDER BY number",
                                     {bucket_rows_, list_of(numbers)}),
                                 owner != 0, deadline));
    taken.clear();
    for (const Cells& row : locked->rows) {
      const auto bucket = static_cast<std::uint32_t>(number_of(row[0]));
      if (number_of(row[1]) == before.at(bucket).epoch) {
        taken.push_back(bucket);
      }
    }
    if (!taken.empty()) {
      SLUICE_PASS_ON(run("UPDATE @SIDE SET owner = @1, counter = counter + 1 WHERE @2 AND number IN (@3)",
                         {std::to_string(owner), bucket_rows_, list_of(taken)}, deadline));
    }
    return {};
  }

  std::string sql(std::string_view pattern, std::initializer_list<std::string> values = {}) const {
    return server_.table().sql(pattern, values);
  }
  Result<Answer> run(std::string_view pattern, std::initializer_list<std::string> values, Deadline deadline) {
    return server_.ask(*connection_, deadline, pattern, values);
  }

  std::string heartbeat(const LeaseMember& member) const {
    return sql("UPDATE @SIDE SET counter = @1 WHERE @2 AND number = @3",
               {std::to_string(member.counter), member_rows_, std::to_string(member.name)});
  }

  SqlServer& server_;
  const std::unique_ptr<SqlConnection> connection_;
  std::string bucket_rows_;  ///< conditions for the rows of the space
  std::string member_rows_;
  std::string space_;  ///< its name as it stands in SQL
};

}  // namespace

Result<std::map<std::string, std::string>> SqlServer::columns(SqlConnection& connection, Deadline deadline) const {
  SLUICE_TRY(answer, ask(connection, deadline, table().dialect().column_types));
  std::map<std::string, std::string> types;
  for (Cells& column : answer->rows) {
    types.emplace(text_of(std::move(column[0])), text_of(std::move(column[1])));
  }
  return types;
}

// Ids alone are numbered, so that the server sorts no payloads.
Result<GroupStatement> SqlServer::group_statement(SqlConnection& connection, std::span<const Group> groups,
                                                  std::size_t limit, const std::string& wanted, Deadline deadline) {
  SLUICE_TRY(numbered, ask(connection, deadline,
                           "SELECT found FROM (SELECT @ID_CELL AS found, ROW_NUMBER() OVER (PARTITION BY @EXACT_TYPE, "
                           "@EXACT_GROUP ORDER BY @5) AS place FROM @TABLE WHERE @1 AND @GROUP IN (@2) AND "
                           "(@EXACT_TYPE, @EXACT_GROUP) IN (@3)) AS numbered WHERE place <= @4",
                           {wanted, table().groups_by_index(groups), table().dialect().groups(groups),
                            std::to_string(limit), table().order()}));
  const auto found = mapped(numbered->rows, [this](Cells& cells) { return table().key(std::move(cells[0])); });
  if (found.empty()) {
    return GroupStatement();
  }
  return GroupStatement{table().sql("SELECT @1 FROM @TABLE WHERE @ID IN (@2) AND @3 ORDER BY @4",
                                    {table().row_columns(), table().ids(found), wanted, table().order()}),
                        found.size()};
}

// Columns that a table may lack are used where it has them, under the names that they have by themselves.
Result<std::unique_ptr<SqlConnection>> SqlServer::open(Use use, Deadline deadline) {
  SLUICE_TRY(connection, connect(use, deadline));
  {
    const MutexLock lock(mutex_);
    if (tables_.size() > 1) {
      return connection;
    }
  }
  SLUICE_TRY(there, columns(**connection, deadline));
  if (there->empty()) {
    return connection;  // it may be made meanwhile
  }
  config::OutboxConfig settings = settings_.config;
  const auto use_if = [&there](std::string& name, const std::string& usual, const ColumnTypes::Kind& kind) {
    const auto found = there->find(name);
    if (name == usual && (found == there->end() || !contains(kind.types, found->second))) {
      name.clear();
    }
  };
  const config::OutboxColumns usual;
  use_if(settings.columns.created_at, usual.created_at, types_.time);
  use_if(settings.columns.last_error, usual.last_error, types_.reason);
  use_if(settings.columns.failed_at, usual.failed_at, types_.time);
  const MutexLock lock(mutex_);
  if (tables_.size() == 1) {
    tables_.push_back(std::make_unique<SqlTable>(settings, table().dialect(), *there));
    table_ = tables_.back().get();
  }
  return connection;
}

Result<std::unique_ptr<LockSession>> SqlServer::open_locks(Deadline deadline) {
  SLUICE_TRY(connection, open(Use::locks, deadline));
  if (!settings_.config.side_table) {
    return locks_on(*std::move(connection));
  }
  return make_lease_locks(std::make_unique<SqlLeaseBook>(*this, *std::move(connection)), settings_,
                          default_beat(settings_.config.lease), clock_, random_);
}

Result<std::unique_ptr<ReadSession>> SqlServer::open_reader(Deadline deadline) {
  SLUICE_TRY(connection, open(Use::rows, deadline));
  return std::unique_ptr<ReadSession>(std::make_unique<SqlReadSession>(*this, *std::move(connection)));
}

Result<std::unique_ptr<AdminSession>> SqlServer::open_admin(Deadline deadline) {
  SLUICE_TRY(connection, open(Use::operators, deadline));
  return std::unique_ptr<AdminSession>(std::make_unique<SqlAdminSession>(*this, *std::move(connection)));
}

std::string SqlServer::ddl(bool in_use) const {
  const SqlTable table(settings_.config, this->table().dialect());
  const SqlDialect& dialect = table.dialect();
  const config::OutboxColumns& names = settings_.config.columns;
  std::string columns;
  const std::set<std::string> own{names.id,       names.aggregate_type, names.aggregate_id, names.event,
                                  names.payload,  names.retry_at,       names.retry_count,  names.sent_at,
                                  names.order_by, names.created_at,     names.last_error,   names.failed_at};
  const auto add = [&](const std::string& name, const char* type) {
    if (!name.empty()) {
      columns +=
          in_use ? table.sql(dialect.add_column, {table.name(name), type}) : ",\n  " + table.name(name) + " " + type;
    }
  };
  add(names.retry_at, dialect.time_type);
  add(names.retry_count, "int");
  add(names.sent_at, dialect.time_type);
  if (!in_use) {
    if (names.order_by != names.created_at) {
      add(names.order_by, dialect.order_type);
    }
    add(names.created_at, dialect.created_type);  // a default for rows that are there would take its time
  }
  add(names.last_error, dialect.reason_type);
  add(names.failed_at, dialect.time_type);
  for (const std::string& other : settings_.config.attributes) {
    if (!own.contains(other)) {
      add(other, dialect.attribute_type);
    }
  }
  const std::string& name = settings_.config.table;
  const char* id_type = has_text_ids(names) ? dialect.text_id_type : dialect.id_type;
  return (in_use
              ? table.sql(kInUseDdl, {settings_.name, dialect.in_use_note, columns}) + table.sql(dialect.in_use_index)
              : table.sql(kTableDdl, {settings_.name, id_type, columns}) + table.sql(dialect.table_end)) +
         table.sql(dialect.helper_ddl,
                   {table.name(name + "_pending"), table.name(name + "_groups"), in_use ? dialect.concurrently : ""}) +
         (settings_.config.side_table ? table.sql(kSideDdl, {dialect.space_type, dialect.side_end}) : std::string());
}

}  // namespace sluice::queue::outbox
