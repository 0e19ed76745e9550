#include "host/stores/outbox/postgres/postgres_database.hpp"

#include <atomic>

#include "host/stores/outbox/lease_locks.hpp"

namespace sluice::queue::outbox {
namespace {

constexpr int kIdleLimitSince = 140000;  // the server's version
// Whoever else uses a pool may have been given what would have shown that it shares sessions.
constexpr int kLooksAtPool = 3;

/// Whatever standard_conforming_strings says. There is no text with a zero in it.
std::string in_quotes(std::string_view text) {
  std::string literal = "E'";
  for (const char c : text) {
    if (c != '\0') {
      literal.append(c == '\'' || c == '\\' ? 2 : 1, c);
    }
  }
  return literal + "'";
}

std::string literal(std::string_view text) { return in_quotes(text) + "::text"; }

std::string text_id(std::string_view text, bool /*hex*/) { return in_quotes(text); }

/// An array of what `text_of` says of each.
template <typename Text>
std::string array_of(std::span<const Group> groups, Text text_of) {
  std::string list;
  for (const Group& group : groups) {
    list += list.empty() ? "{\"" : ",\"";
    for (const char c : text_of(group)) {
      list.append(c == '"' || c == '\\' ? "\\" : "").append(1, c);
    }
    list += "\"";
  }
  return in_quotes(list.empty() ? "{}" : list + "}") + "::text[]";
}

/// The types and the ids of groups, for unnest.
std::string group_arrays(std::span<const Group> groups) {
  return array_of(groups, [](const Group& group) { return group.type; }) + ", " +
         array_of(groups, [](const Group& group) { return group.id; });
}

constexpr const char* kDdl = R"(-- The outbox table of [outbox.@1]. Columns of your own may stand beside these.
CREATE TABLE IF NOT EXISTS @TABLE (
  @ID @3 PRIMARY KEY,
  @TYPE varchar(255) NOT NULL,
  @GROUP varchar(255) NOT NULL DEFAULT '',
  @EVENT varchar(255) NOT NULL,
  @PAYLOAD json NOT NULL,
  @RETRY_AT timestamptz,
  @RETRY_COUNT int,
  @SENT_AT timestamptz@2
);
)";

// Columns that may be NULL and have no default are there at once, however many rows there are.
constexpr const char* kInUseDdl =
    R"(-- What the outbox table of [outbox.@1] may lack, while it is in use: writers wait for nothing of it.
-- CREATE INDEX CONCURRENTLY cannot run in a transaction: give this to psql as it is, without --single-transaction and
-- not by -c. Where it was interrupted, `\d` shows an INVALID index: DROP INDEX CONCURRENTLY that one, and run it again.
@2)";

constexpr const char* kHelperDdl = R"(
-- What is to be published, in the order of publishing: with it, rows that were sent and are kept cost nothing.
CREATE INDEX @3IF NOT EXISTS @1 ON @TABLE (@PLACE) WHERE @SENT_AT IS NULL;
-- From a group to its rows, for groups that wait for a retry or have very many rows.
CREATE INDEX @3IF NOT EXISTS @2 ON @TABLE (@TYPE, @GROUP, @PLACE) WHERE @SENT_AT IS NULL;

-- Wakes the relay when a transaction with new rows commits. Without it they are looked for, once a second while none come.
CREATE OR REPLACE FUNCTION @SCHEMAsluice_outbox_notify() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('sluice_outbox', 'rows:' || TG_TABLE_NAME);
  RETURN NULL;
END
$$;
DROP TRIGGER IF EXISTS sluice_outbox_notify ON @TABLE;
CREATE TRIGGER sluice_outbox_notify AFTER INSERT ON @TABLE FOR EACH STATEMENT EXECUTE FUNCTION @SCHEMAsluice_outbox_notify();
)";

constexpr const char* kSideDdl = R"(
-- Who has which rows, for coordination = "table". Short-lived facts: it may be emptied while no host runs.
CREATE TABLE IF NOT EXISTS @SIDE (
  space text NOT NULL,       -- which job
  kind smallint NOT NULL,    -- 1: a bucket, 2: a host's session
  number bigint NOT NULL,    -- of the bucket, or of the session
  owner bigint NOT NULL,     -- of a bucket: the session that has it, or 0
  counter bigint NOT NULL,   -- grows with each change of hands, or with each heartbeat
  lease_ms bigint NOT NULL,  -- of a session: how long others wait without a heartbeat
  buckets int NOT NULL,      -- of a session: into how many it shares the outbox
  PRIMARY KEY (space, kind, number)
) WITH (fillfactor = 50);
)";

// Sessions have the time zone UTC, so that `localtimestamp` fits columns with and without a zone alike. The channel on
// which the trigger and operators tell of one table has "rows:TABLE" and "changed:TABLE".
constexpr SqlDialect kDialect{
    .quote = '"',
    .text = literal,
    .text_id = text_id,
    .hex_text = "encode(@1, 'hex')",
    .id_order = "@1 COLLATE \"C\"",
    .sorts_all = false,  // from version 13 on: those of one place alone
    .exact_text = literal,
    // A hashed list, so that the rows are still read in the order of an index.
    .groups = [](std::span<const Group> groups) { return "SELECT * FROM unnest(" + group_arrays(groups) + ")"; },
    .now = "localtimestamp",
    .later = "(@1 + @2 * interval '1 microsecond')",
    // No difference is taken of 'infinity'. What stands for it is a time that PostgreSQL has, too.
    .micros =
        "(CASE WHEN isfinite(@1) AND isfinite(@2) THEN (extract(epoch FROM (@2 - @1)) * 1000000)::bigint "
        "WHEN @2 > @1 THEN 9000000000000000000 WHEN @2 < @1 THEN -200000000000000000 END)",
    .as_text = "@1::text",
    .exact = "COALESCE(@1, '')::text",
    .resource = "regexp_replace(@1, '^a?rn:([^:]*:){4}', '')",
    .bucket =
        "(CASE WHEN COALESCE(@GROUP, '') = '' THEN (@1)::int ELSE "
        "(hashtext(COALESCE(@GROUP, '')::text) & 2147483647) % @BUCKETS END)",
    .text_bucket = "(hashtext(@1) & 2147483647) % @BUCKETS",
    .payload_bytes = "0",
    .fitted =
        "left(@1, COALESCE((SELECT a.atttypmod - 4 FROM pg_attribute a WHERE a.attrelid = to_regclass(@TABLE_TEXT) "
        "AND a.attname = @LAST_ERROR_TEXT AND a.atttypmod > 4), 1000000))",
    .schema = "current_schema()",
    .of_table = "a.attrelid = to_regclass(@TABLE_TEXT) AND a.attnum > 0 AND NOT a.attisdropped",
    .column_types = "SELECT a.attname, format_type(a.atttypid, NULL) FROM pg_attribute a WHERE @OF_TABLE",
    .space = "@1",
    .insert_new = "INSERT INTO @SIDE @1 ON CONFLICT DO NOTHING",
    .prune =
        "DELETE FROM @TABLE WHERE @ID IN (SELECT @ID FROM @TABLE WHERE @1 ORDER BY @ID LIMIT @2 FOR UPDATE SKIP "
        "LOCKED)",
    .notice = "SELECT pg_notify('sluice_outbox', @1)",
    .id_type = "bigint GENERATED BY DEFAULT AS IDENTITY",
    .text_id_type = "uuid",
    .order_type = "bigint GENERATED ALWAYS AS IDENTITY",
    .created_type = "timestamptz NOT NULL DEFAULT clock_timestamp()",
    .reason_type = "text",
    .time_type = "timestamptz",
    .add_column = "ALTER TABLE @TABLE ADD COLUMN IF NOT EXISTS @1 @2;\n",
    .attribute_type = "text",
    .ddl = kDdl,
    .in_use_ddl = kInUseDdl,
    .helper_ddl = kHelperDdl,
    .concurrently = "CONCURRENTLY ",
    .side_ddl = kSideDdl};

const ColumnTypes kTypes{.id = {{"bigint", "integer", "smallint"},
                                "bigint; where it has no order, name the column that has as 'order_by' in "
                                "[outbox.NAME.columns]"},
                         .text_id = {{"uuid", "character varying", "text", "character", "bigint", "integer"}, "uuid"},
                         .text = {{"character varying", "text", "character", "citext"}, "varchar or text"},
                         .payload = {{"json", "jsonb", "text", "character varying"}, "json, jsonb or text"},
                         .time = {{"timestamp with time zone", "timestamp without time zone"}, "timestamp"},
                         .count = {{"bigint", "integer", "smallint"}, "int"},
                         .reason = {{"character varying", "text", "character", "citext"}, "text"}};

constexpr const char* kIdentity =
    R"(SELECT EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = a.attrelid AND i.indisunique AND i.indisvalid AND
i.indpred IS NULL AND i.indnkeyatts = 1 AND i.indkey[0] = a.attnum), a.attidentity <> '' OR EXISTS (SELECT 1 FROM
pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%')
FROM pg_attribute a WHERE @OF_TABLE AND a.attname = @ID_NAME)";

constexpr const char* kRights =
    R"(SELECT has_table_privilege(@TABLE_TEXT::regclass, 'SELECT'), COALESCE((SELECT string_agg(c, ', ') FROM
unnest(ARRAY[@1]) AS c JOIN pg_attribute a ON a.attrelid = @TABLE_TEXT::regclass AND a.attname = c AND NOT a.attisdropped
WHERE NOT has_column_privilege(@TABLE_TEXT::regclass, a.attnum, 'UPDATE')), ''), current_user)";

constexpr const char* kSideTable =
    R"(SELECT to_regclass(@1) IS NOT NULL, COALESCE((SELECT string_agg(p, ', ') FROM
unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) AS p WHERE NOT has_table_privilege(to_regclass(@1), p)), ''),
current_user)";

// An index leads from a group to its rows where it begins with both columns, in either order.
constexpr const char* kHelpers =
    R"(SELECT EXISTS (SELECT 1 FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = to_regclass(@TABLE_TEXT) AND i.indisvalid AND a.attname = @1 AND
pg_get_expr(i.indpred, i.indrelid) LIKE '%IS NULL%'), EXISTS (SELECT 1 FROM pg_trigger t JOIN pg_proc p ON
p.oid = t.tgfoid WHERE t.tgrelid = to_regclass(@TABLE_TEXT) AND p.prosrc LIKE '%pg_notify%' AND t.tgenabled <> 'D'),
EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = to_regclass(@TABLE_TEXT) AND i.indisvalid AND
(SELECT count(*) FROM pg_attribute a WHERE a.attrelid = i.indrelid AND a.attnum IN (i.indkey[0], i.indkey[1]) AND
a.attname IN (@2, @3)) = 2))";

/// `user`: as whom it was looked for.
Error no_table(const SqlTable& table, const std::string& user = {}) {
  return {ErrorCode::queue_missing,
          table.sql("there is no table @TABLE") + user +
              "; check 'schema' and 'table', or make it with what `sluice outbox ddl` prints"};
}

Error shared_sessions(ErrorCode code) {
  return {code,
          "the server's sessions are dealt out to several clients, as PgBouncer does with pool_mode = transaction, so "
          "that locks of a session keep nobody away; set coordination = \"table\" in [outbox.NAME], or connect "
          "directly, or through a pool with pool_mode = session and server_reset_query = DISCARD ALL"};
}

/// The first half of the keys of a space's locks: FNV-1a, which every version of the program computes alike, of the
/// table's full name, which is one for all, whatever their settings and search paths leave out.
Result<std::string> key_of(SqlConnection& connection, const SqlTable& table, const LockSpace& space,
                           Deadline deadline) {
  SLUICE_TRY(named, connection.run(table.sql("SELECT format('%I.%I', n.nspname, c.relname) FROM pg_class c JOIN "
                                             "pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = "
                                             "to_regclass(@TABLE_TEXT)"),
                                   deadline));
  if (named->rows.empty()) {
    return no_table(table);
  }
  std::uint32_t hash = 2166136261U;
  for (const char c : named->rows.front()[0].value_or("") + "/" + space.name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  }
  return std::to_string(static_cast<std::int32_t>(hash));
}

/// Advisory locks, which a session holds until it ends.
class PostgresLocks final : public LockSession {
 public:
  PostgresLocks(SqlServer& server, std::unique_ptr<SqlConnection> connection)
      : server_(server), connection_(std::move(connection)) {}

  Result<Members> join(const LockSpace& space, Deadline deadline) override {
    SLUICE_TRY(key, key_of(*connection_, server_.table(), space, deadline));
    space_ = std::move(*key);
    member_ = std::to_string(kMembers + space.buckets);
    SLUICE_TRY(served, connection_->run("SELECT pg_backend_pid()", deadline));
    process_ = served->rows.front()[0].value_or("");
    // A session that has locks already is somebody else's too, and would have his locks as well.
    SLUICE_TRY(entered,
               run("WITH here AS MATERIALIZED (SELECT pg_backend_pid() = @3 AND NOT EXISTS (SELECT 1 FROM pg_locks "
                   "WHERE locktype = 'advisory' AND pid = pg_backend_pid()) AS fresh) SELECT CASE WHEN fresh THEN "
                   "pg_try_advisory_lock_shared((@1)::int, @2) ELSE false END FROM here",
                   deadline));
    return flag_of(entered->rows.front()[0]) ? beat(deadline) : Result<Members>(shared_sessions(ErrorCode::invalid));
  }

  Result<Members> beat(Deadline deadline) override {
    // Behind a pool it may be another process's turn, whose locks are not ours.
    SLUICE_TRY(
        counted,
        run("SELECT count(*) FILTER (WHERE objid = @2), COALESCE(max(objid::bigint) FILTER (WHERE objid <> @2), "
            "0), pg_backend_pid() = @3 AND COALESCE(bool_or(pid = @3 AND objid = @2), false) FROM pg_locks WHERE "
            "locktype = 'advisory' AND granted AND objsubid = 2 AND classid = ((@1)::bigint & 4294967295) AND "
            "objid >= 1073741824 AND database = (SELECT oid FROM pg_database WHERE datname = "
            "current_database())",
            deadline));
    const Cells& row = counted->rows.front();
    if (!flag_of(row[2])) {
      return shared_sessions(ErrorCode::unavailable);
    }
    const auto other = number_of(row[1]);
    return Members{.count = static_cast<std::uint32_t>(std::max<std::int64_t>(number_of(row[0]), 1)),
                   .other_buckets = other == 0 ? 0 : static_cast<std::uint32_t>(other) - kMembers};
  }

  Result<std::vector<std::uint32_t>> lock(std::span<const std::uint32_t> buckets, Deadline deadline) override {
    SLUICE_TRY(got, run("SELECT b FROM unnest('{@4}'::int[]) AS b WHERE CASE WHEN pg_backend_pid() = @3 THEN "
                        "pg_try_advisory_lock((@1)::int, b) END",
                        deadline, list_of(buckets)));
    return mapped(got->rows, [](const Cells& row) { return static_cast<std::uint32_t>(number_of(row[0])); });
  }

  Result<void> unlock(std::span<const std::uint32_t> buckets, Deadline deadline) override {
    SLUICE_PASS_ON(
        run("SELECT count(CASE WHEN pg_backend_pid() = @3 THEN pg_advisory_unlock((@1)::int, b) END) FROM "
            "unnest('{@4}'::int[]) AS b",
            deadline, list_of(buckets)));
    return {};
  }

  Result<std::vector<MarkStatus>> mark(std::span<const RowEdit> marks, Deadline deadline) override {
    return write_marks(server_, *connection_, marks, nullptr, deadline);
  }

 private:
  // Buckets are numbered below this, and members above it, in the second half of an advisory lock's key.
  static constexpr std::uint32_t kMembers = 0x40000000;

  Result<Answer> run(const char* pattern, Deadline deadline, const std::string& buckets = {}) {
    return connection_->run(server_.table().sql(pattern, {space_, member_, process_, buckets}), deadline);
  }

  SqlServer& server_;
  const std::unique_ptr<SqlConnection> connection_;
  std::string space_;
  std::string member_;
  std::string process_;  ///< the server's, whose locks these are
};

class PostgresServer final : public SqlServer {
 public:
  PostgresServer(const Settings& settings, const Clock& clock, Random& random)
      : SqlServer(settings, kDialect, kTypes, clock, random) {}

  // No statement or lock for ever. With coordination = "table" the settings are given with every request, for a pool's
  // connections are everybody's.
  Result<std::unique_ptr<SqlConnection>> connect(Use use, Deadline deadline) override {
    const bool pooled = settings().config.side_table;
    std::string statement;
    const auto set = [&](const char* name, const std::string& value) {
      statement += (statement.empty() ? "SELECT set_config('" : ", set_config('") + std::string(name) + "', '" + value +
                   (pooled ? "', true)" : "', false)");
    };
    set("timezone", "UTC");
    set("datestyle", "ISO");
    set("statement_timeout", "60s");
    set("lock_timeout", "5s");
    if (use == Use::rows) {
      // Rows are wanted by id and few at a time; a plan that reads all of them to sort them is never the better one.
      set("enable_seqscan", "off");
      set("enable_bitmapscan", "off");
      set("enable_sort", "off");
    }
    SLUICE_TRY(connection, postgres::connect(settings(), pooled ? statement : "", deadline));
    if (!pooled) {
      SLUICE_PASS_ON((*connection)->run(statement, deadline));
    }
    if (use == Use::locks && !pooled) {
      const auto lease = std::chrono::duration_cast<std::chrono::milliseconds>(settings().config.lease);
      SLUICE_PASS_ON(ask(**connection, deadline,
                         "SELECT set_config('idle_session_timeout', '@1', false) WHERE "
                         "current_setting('server_version_num')::int >= @2",
                         {std::to_string(lease.count()), std::to_string(kIdleLimitSince)}));
    }
    if (use == Use::rows && !pooled) {
      SLUICE_PASS_ON((*connection)->run("LISTEN sluice_outbox", deadline));
    }
    if (use == Use::rows) {
      SLUICE_TRY(helpers, helpers_of(**connection, deadline));
      group_index_ = helpers->group_index;
      tells_of_rows_ = helpers->trigger && !pooled;
    }
    return connection;
  }

  std::unique_ptr<LockSession> locks_on(std::unique_ptr<SqlConnection> connection) override {
    return std::make_unique<PostgresLocks>(*this, std::move(connection));
  }

  bool tells_of_rows() const override { return tells_of_rows_; }

  // Without an index one look at all that is pending is cheaper than one for each group.
  Result<GroupStatement> group_statement(SqlConnection& connection, std::span<const Group> groups, std::size_t limit,
                                         const std::string& wanted, Deadline deadline) override {
    if (!group_index_) {
      return SqlServer::group_statement(connection, groups, limit, wanted, deadline);
    }
    return GroupStatement{table().sql(
        "SELECT r.* FROM unnest(@1) WITH ORDINALITY AS g(of_type, of_group, of_place), LATERAL (SELECT @2 FROM @TABLE "
        "WHERE @3 AND @TYPE = g.of_type AND @GROUP = g.of_group ORDER BY @5 LIMIT @4) r ORDER BY g.of_place, 1, 2",
        {group_arrays(groups), table().row_columns(), wanted, std::to_string(limit), table().order()})};
  }

  Result<RowKeys> write(SqlConnection& connection, std::span<const RowEdit> marks, const MarkFence* fence,
                        Deadline deadline) override {
    std::vector<std::string> statements;
    if (fence != nullptr) {
      statements.push_back(fence->heartbeat);
    }
    const auto free = [&](std::span<const RowEdit> some) {
      return table().markable(some, "@ID") + (fence == nullptr ? "" : fence->condition) + " FOR UPDATE SKIP LOCKED";
    };
    for (const std::string& update : table().updates({marks.begin(), marks.end()}, free)) {
      statements.push_back(update + table().sql(" RETURNING @ID_CELL"));
    }
    SLUICE_TRY(answers, connection.run_together(statements, deadline));
    if (fence != nullptr && answers->front().touched == 0) {
      return name_is_gone();
    }
    RowKeys written;
    for (std::size_t i = fence == nullptr ? 0 : 1; i < answers->size(); ++i) {
      for (Cells& row : (*answers)[i].rows) {
        written.insert(table().key(std::move(row[0])));
      }
    }
    return written;
  }

  Result<Answer> holder_of(SqlConnection& connection, const LockSpace& space, std::uint32_t bucket,
                           Deadline deadline) override {
    SLUICE_TRY(key, key_of(connection, table(), space, deadline));
    return ask(connection, deadline,
               "SELECT l.pid, host(a.client_addr), a.application_name FROM pg_locks l LEFT JOIN pg_stat_activity a ON "
               "a.pid = l.pid WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid = "
               "((@1)::bigint & 4294967295) AND l.objid = @2 AND l.database = (SELECT oid FROM pg_database WHERE "
               "datname = current_database())",
               {*key, std::to_string(bucket)});
  }

  /// The id of the cluster, which its physical standbys share, and in it those of the database and the table.
  Result<SourceId> source_id(SqlConnection& connection, Deadline deadline) override {
    SLUICE_TRY(named, ask(connection, deadline,
                          "SELECT d.oid::text || '-' || to_regclass(@TABLE_TEXT)::oid::text FROM pg_database d WHERE "
                          "d.datname = current_database()"));
    if (named->rows.empty() || !named->rows.front()[0]) {
      return no_table(table());
    }
    const std::string place = "-" + *named->rows.front()[0];
    const auto id_of = [&](const Answer& answer) { return "postgres-" + answer.rows.at(0)[0].value_or("") + place; };
    const auto cluster = connection.run("SELECT system_identifier::text FROM pg_control_system()", deadline);
    if (cluster) {
      return SourceId{id_of(*cluster), {}};
    }
    if (cluster.error().code() != ErrorCode::denied && cluster.error().code() != ErrorCode::invalid) {
      return cluster.error();
    }
    SLUICE_TRY(address,
               connection.run("SELECT COALESCE(host(inet_server_addr()), 'local') || '-' || current_setting('port')",
                              deadline));
    return SourceId{
        id_of(*address),
        "the user may not run pg_control_system(), so that deduplication knows the database by its server's "
        "address, which others may have and a fail-over changes; GRANT EXECUTE ON FUNCTION "
        "pg_control_system() to the user, or give each database a 'producer' of its own"};
  }

  Result<std::vector<Finding>> inspect(SqlConnection& connection, Deadline deadline) override {
    Inspection found(table(), table().sql("table @TABLE"));
    SLUICE_TRY(state, ask(connection, deadline,
                          "SELECT to_regclass(@TABLE_TEXT) IS NOT NULL, pg_is_in_recovery(), "
                          "current_setting('default_transaction_read_only')::boolean, current_user, "
                          "current_setting('server_version_num')"));
    const Cells& row = state->rows.front();
    if (flag_of(row[1])) {
      found.fatal(ErrorCode::unavailable,
                  "the server is a read-only replica; name the primary in the url, or add "
                  "?target_session_attrs=read-write to it");
    } else if (flag_of(row[2])) {
      found.fatal(ErrorCode::unavailable, "the database is set to read-only; rows could not be marked");
    }
    if (!flag_of(row[0])) {
      const Error missing = no_table(table(), " (as user " + row[3].value_or("") + " sees it)");
      found.fatal(missing.code(), missing.message());
      return std::move(found).findings();
    }
    SLUICE_TRY(there, columns(connection, deadline));
    found.columns(*there, kTypes);
    SLUICE_PASS_ON(look_at_rights(connection, found, deadline));
    SLUICE_TRY(identity, ask(connection, deadline, kIdentity));
    if (!identity->rows.empty()) {
      const Cells& flags = identity->rows.front();
      found.identity(flag_of(flags[0]), flag_of(flags[1]), "its values come from a sequence");
    }
    SLUICE_PASS_ON(look_at_helpers(connection, found, deadline));
    if (settings().config.side_table) {
      SLUICE_PASS_ON(look_at_side_table(connection, found, deadline));
      return std::move(found).findings();
    }
    if (number_of(row[4]) < kIdleLimitSince) {
      found.remark(
          "PostgreSQL before 14 does not end idle sessions: what a host that vanishes without a word held is free only "
          "when TCP notices");
    }
    auto findings = std::move(found).findings();
    SLUICE_TRY(shared, sessions_are_shared(connection, deadline));
    if (*shared) {
      findings.insert(findings.begin(), {true, ErrorCode::invalid, shared_sessions(ErrorCode::invalid).message()});
    }
    return findings;
  }

 private:
  /// What makes it quick.
  struct Helpers {
    bool pending_index = false;
    bool trigger = false;
    bool group_index = false;
  };
  Result<Helpers> helpers_of(SqlConnection& connection, Deadline deadline) const {
    const config::OutboxColumns& names = settings().config.columns;
    SLUICE_TRY(found, ask(connection, deadline, kHelpers,
                          {literal(has_text_ids(names) ? names.order_by : names.id), literal(names.aggregate_type),
                           literal(names.aggregate_id)}));
    const Cells& flags = found->rows.front();
    return Helpers{flag_of(flags[0]), flag_of(flags[1]), flag_of(flags[2])};
  }

  /// Whether requests of one connection are dealt out to several sessions, by a pool in between. A server tells its
  /// process when it lets somebody in; a pool tells something of its own.
  Result<bool> sessions_are_shared(SqlConnection& connection, Deadline deadline) const {
    const auto process_of = [deadline](SqlConnection& one) -> Result<std::int64_t> {
      SLUICE_TRY(answer, one.run("SELECT pg_backend_pid()", deadline));
      return number_of(answer->rows.front()[0]);
    };
    SLUICE_TRY(own, process_of(connection));
    if (*own == connection.greeted_as()) {
      return false;
    }
    SLUICE_TRY(other, postgres::connect(settings(), "", deadline));
    for (int i = 0; i < kLooksAtPool; ++i) {
      // Which process answers the one while the other has one to itself.
      SLUICE_PASS_ON((*other)->run("BEGIN", deadline));
      SLUICE_TRY(theirs, process_of(**other));
      SLUICE_TRY(ours, process_of(connection));
      SLUICE_PASS_ON((*other)->run("ROLLBACK", deadline));
      if (*ours != *own || *theirs == *own) {
        return true;
      }
    }
    return false;
  }

  Result<void> look_at_rights(SqlConnection& connection, Inspection& found, Deadline deadline) const {
    const config::OutboxColumns& names = settings().config.columns;
    std::string written = literal(names.retry_at) + ", " + literal(names.retry_count) + ", " + literal(names.sent_at);
    written += keeps_errors(table().settings().columns) ? ", " + literal(names.last_error) : "";
    written += keeps_failed_at(table().settings().columns) ? ", " + literal(names.failed_at) : "";
    SLUICE_TRY(answer, ask(connection, deadline, kRights, {written}));
    const Cells& row = answer->rows.front();
    const std::string user = "user " + row[2].value_or("");
    if (!flag_of(row[0])) {
      found.fatal(ErrorCode::denied, user + table().sql(" may not read table @TABLE; GRANT SELECT ON @TABLE to it"));
    }
    if (const std::string missing = row[1].value_or(""); !missing.empty()) {
      found.fatal(
          ErrorCode::denied,
          user + table().sql(" may not write @1 of table @TABLE; GRANT UPDATE (@1) ON @TABLE to it", {missing}));
    }
    return {};
  }
  Result<void> look_at_side_table(SqlConnection& connection, Inspection& found, Deadline deadline) const {
    SLUICE_TRY(answer, ask(connection, deadline, kSideTable, {literal(table().sql("@SIDE"))}));
    const Cells& row = answer->rows.front();
    const std::string user = row[2].value_or("");
    if (!flag_of(row[0])) {
      found.fatal(
          ErrorCode::queue_missing,
          table().sql("there is no table @SIDE (as user @1 sees it), which coordination = \"table\" needs; make it "
                      "with what `sluice outbox ddl` prints",
                      {user}));
    } else if (const std::string missing = row[1].value_or(""); !missing.empty()) {
      found.fatal(ErrorCode::denied,
                  table().sql("user @1 lacks a right to table @SIDE, which coordination = \"table\" needs; GRANT @2 ON "
                              "@SIDE to it",
                              {user, missing}));
    }
    return {};
  }
  Result<void> look_at_helpers(SqlConnection& connection, Inspection& found, Deadline deadline) const {
    SLUICE_TRY(helpers, helpers_of(connection, deadline));
    const std::string mend = "; `sluice outbox ddl` prints it";
    if (!helpers->pending_index) {
      found.remark(
          found.table() +
          table().sql(" has no index on @PLACE WHERE @SENT_AT IS NULL: each look reads past all rows that were sent "
                      "and are kept") +
          mend);
    }
    if (!helpers->group_index) {
      found.remark(
          found.table() +
          table().sql(" has no index that begins with @TYPE and @GROUP: after each retry all that is pending is "
                      "read") +
          mend);
    }
    if (!helpers->trigger && !settings().config.side_table) {
      found.remark(found.table() +
                   " has no trigger that tells of new rows: they are looked for, once a second while none come" + mend);
    }
    return {};
  }

  // When rows were last connected for.
  std::atomic<bool> group_index_ = false;
  std::atomic<bool> tells_of_rows_ = false;
};

}  // namespace

std::unique_ptr<Database> make_postgres_database(const Settings& settings, const Clock& clock, Random& random) {
  return std::make_unique<PostgresServer>(settings, clock, random);
}

}  // namespace sluice::queue::outbox
