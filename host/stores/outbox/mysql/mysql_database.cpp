#include "host/stores/outbox/mysql/mysql_database.hpp"

#include <cctype>
#include <numeric>

#include "base/text/hex.hpp"
#include "host/stores/outbox/lease_locks.hpp"

namespace sluice::queue::outbox {
namespace {

/// A text as bytes, in digits: nothing in it can be taken for SQL, whatever the server's modes.
std::string bytes_literal(std::string_view text) { return "x'" + to_hex(text) + "'"; }

std::string text_literal(std::string_view text) { return "CONVERT(" + bytes_literal(text) + " USING utf8mb4)"; }

/// A text that takes the character set and the collation of the column that it is compared with, so that its index
/// serves.
std::string column_literal(std::string_view text) { return "_utf8mb4 " + bytes_literal(text); }

std::string text_id(std::string_view text, bool hex) {
  const bool digits = std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  return !hex ? column_literal(text) : digits && text.size() % 2 == 0 ? "x'" + std::string(text) + "'" : "x''";
}

std::string group_list(std::span<const Group> groups) {
  return joined(
      mapped(groups,
             [](const Group& group) { return "(" + bytes_literal(group.type) + "," + bytes_literal(group.id) + ")"; }),
      ",");
}

constexpr const char* kTableEnd = R"(,
  -- What is pending lies together here, in its order, however much was sent before.
  KEY outbox_pending (@SENT_AT, @PLACE)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
)";

// MySQL knows no "IF NOT EXISTS" here, and takes it for a comment.
constexpr const char* kInUseIndex = R"(
-- What is pending lies together here, in its order, however much was sent before.
CREATE INDEX /*M! IF NOT EXISTS */ outbox_pending ON @TABLE (@SENT_AT, @PLACE);
)";

constexpr const char* kHelperDdl = R"(
-- What this database is called where messages are deduplicated: made once, and kept.
CREATE TABLE IF NOT EXISTS @SOURCE (
  one TINYINT NOT NULL PRIMARY KEY,  -- there is one row
  id CHAR(36) CHARACTER SET ascii NOT NULL
) ENGINE=InnoDB;
INSERT IGNORE INTO @SOURCE (one, id) VALUES (1, UUID());
)";

constexpr SqlDialect kDialect{
    .quote = '`',
    .text = text_literal,
    .text_id = text_id,
    .hex_text = "LOWER(HEX(@1))",
    .id_order = "CAST(CONVERT(@1 USING utf8mb4) AS BINARY)",
    .sorts_all = true,
    .exact_text = bytes_literal,
    .groups = group_list,
    .now = "UTC_TIMESTAMP(6)",
    .later = "@1 + INTERVAL @2 MICROSECOND",
    .micros = "TIMESTAMPDIFF(MICROSECOND, @1, @2)",
    .as_text = "@1",
    // Neither a column's character set nor its collation makes two texts equal.
    .exact = "IFNULL(CAST(CONVERT(@1 USING utf8mb4) AS BINARY), x'')",
    .resource = "IF(@1 LIKE 'arn:%' OR @1 LIKE 'rn:%', SUBSTRING(@1, LENGTH(SUBSTRING_INDEX(@1, ':', 5)) + 2), @1)",
    .bucket = "IF(@UNGROUPED, @1, MOD(CRC32(@GROUP), @BUCKETS))",
    .text_bucket = "MOD(CRC32(@1), @BUCKETS)",
    .payload_bytes = "LENGTH(@PAYLOAD)",
    .fitted = "@1",
    .schema = "DATABASE()",
    .of_table = "TABLE_SCHEMA = @SCHEMA_TEXT AND TABLE_NAME = @NAME_TEXT",
    .column_types = "SELECT COLUMN_NAME, LOWER(DATA_TYPE) FROM information_schema.COLUMNS WHERE @OF_TABLE",
    .space = "SHA1(@1)",
    .insert_new = "INSERT IGNORE INTO @SIDE @1",
    .prune = "DELETE FROM @TABLE WHERE @1 ORDER BY @SENT_AT LIMIT @2",
    .notice = "",
    .id_type = "BIGINT NOT NULL AUTO_INCREMENT",
    .text_id_type = "CHAR(36) CHARACTER SET ascii NOT NULL",
    .order_type = "BIGINT NOT NULL AUTO_INCREMENT UNIQUE",
    .created_type = "DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)",
    .reason_type = "TEXT NULL",
    .time_type = "DATETIME(6) NULL",
    .add_column = "ALTER TABLE @TABLE ADD COLUMN /*M! IF NOT EXISTS */ @1 @2;\n",
    .attribute_type = "VARCHAR(255) NULL",
    .table_end = kTableEnd,
    .in_use_note = "-- MariaDB runs this as often as you like; MySQL stops at what is there already.\n",
    .in_use_index = kInUseIndex,
    .helper_ddl = kHelperDdl,
    .concurrently = "",
    .space_type = "CHAR(40) CHARACTER SET ascii",
    .side_end = ") ENGINE=InnoDB;\n"};

const std::vector<std::string> kNumbers{"bigint", "int", "mediumint", "smallint", "tinyint"};
const std::vector<std::string> kTexts{"varchar",  "char",      "text",   "tinytext", "mediumtext",
                                      "longtext", "varbinary", "binary", "enum",     "uuid"};
const ColumnTypes kTypes{.id = {kNumbers,
                                "BIGINT; where it has no order, name the column that has as 'order_by' in "
                                "[outbox.NAME.columns]"},
                         .text_id = {{"uuid", "char", "varchar", "binary", "varbinary", "bigint", "int"}, "CHAR(36)"},
                         .text = {kTexts, "VARCHAR(255)"},
                         .payload = {{"json", "longtext", "mediumtext", "text", "tinytext", "varchar", "longblob",
                                      "blob", "mediumblob", "varbinary"},
                                     "JSON"},
                         .time = {{"datetime", "timestamp"}, "DATETIME(6)"},
                         .count = {kNumbers, "INT"},
                         .reason = {kTexts, "TEXT"}};

// Members hold a place each, which whoever counts them looks at.
constexpr std::uint32_t kPlaces = 128;
// A member says with locks how many buckets it knows: one for each bit that is set.
constexpr std::uint32_t kBits = 13;
constexpr std::size_t kLocksAtOnce = 256;
constexpr Duration kJoinTime = std::chrono::seconds(5);

/// What the names of a space's locks begin with. They have 64 characters at most, so that the space's is hashed; by the
/// server, which adds whose table it is.
Result<std::string> prefix_of(SqlConnection& connection, const SqlTable& table, const LockSpace& space,
                              Deadline deadline) {
  SLUICE_TRY(hashed, connection.run(table.sql("SELECT SHA1(CONCAT_WS('/', IF(@2 = 0, @SCHEMA_TEXT, "
                                              "LOWER(@SCHEMA_TEXT)), IF(@2 = 0, @NAME_TEXT, LOWER(@NAME_TEXT)), @1))",
                                              {bytes_literal(space.name), "@@lower_case_table_names"}),
                                    deadline));
  return "sluice:" + hashed->rows.front()[0].value_or("") + ":";
}
std::string bucket_name(const std::string& prefix, std::uint32_t bucket) {
  return "'" + prefix + "b" + std::to_string(bucket) + "'";
}

/// Locks of the server by name, which a session holds until it ends. They are the server's and not a database's, and
/// each node of a Galera cluster has its own.
class MysqlLocks final : public LockSession {
 public:
  MysqlLocks(SqlServer& server, std::unique_ptr<SqlConnection> connection, std::string place, const Clock& clock)
      : server_(server), connection_(std::move(connection)), server_place_(std::move(place)), clock_(clock) {}

  Result<Members> join(const LockSpace& space, Deadline deadline) override {
    SLUICE_TRY(prefix, prefix_of(*connection_, server_.table(), space, deadline));
    prefix_ = std::move(*prefix);
    buckets_ = space.buckets;
    // One at a time, so that nobody sees a place without its bits.
    const Deadline waits = deadline.earlier(Deadline::after(clock_, kJoinTime));
    const auto seconds = std::chrono::floor<std::chrono::seconds>(waits.left(clock_.steady_now())).count();
    SLUICE_TRY(alone, flags({"GET_LOCK(" + lock_name("join") + "," + std::to_string(seconds) + ")"}, deadline));
    if (!alone->front()) {
      return Error(ErrorCode::throttled, server_place_ + ": others are joining the same outbox; try again");
    }
    SLUICE_TRY(members, take_place(space, deadline));  // after an error the lock goes with the session
    SLUICE_PASS_ON(flags({"RELEASE_LOCK(" + lock_name("join") + ")"}, deadline));
    return *members;
  }

  Result<Members> beat(Deadline deadline) override { return look(deadline); }

  Result<std::vector<std::uint32_t>> lock(std::span<const std::uint32_t> buckets, Deadline deadline) override {
    const auto lock_one = [this](std::uint32_t bucket) {
      return if_here("GET_LOCK(" + bucket_name(prefix_, bucket) + ",0)");
    };
    SLUICE_TRY(answers, flags(mapped(buckets, lock_one), deadline));
    std::vector<std::uint32_t> got;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      if ((*answers)[i]) {
        got.push_back(buckets[i]);
      }
    }
    return got;
  }

  Result<void> unlock(std::span<const std::uint32_t> buckets, Deadline deadline) override {
    const auto release = [this](std::uint32_t bucket) {
      return if_here("RELEASE_LOCK(" + bucket_name(prefix_, bucket) + ")");
    };
    SLUICE_PASS_ON(flags(mapped(buckets, release), deadline));
    return {};
  }

  Result<std::vector<MarkStatus>> mark(std::span<const RowEdit> marks, Deadline deadline) override {
    return write_marks(server_, *connection_, marks, nullptr, deadline);
  }

 private:
  std::string lock_name(const std::string& what) const { return "'" + prefix_ + what + "'"; }
  std::string place_name(std::uint32_t place) const { return lock_name("m" + std::to_string(place)); }
  std::string bit_name(std::uint32_t place, std::uint32_t bit) const {
    return lock_name("m" + std::to_string(place) + "n" + std::to_string(bit));
  }

  /// Whether the session that answers holds this place: behind a proxy it may be another one than before.
  std::string held_here(std::uint32_t place) const {
    return "IFNULL(IS_USED_LOCK(" + place_name(place) + ")=CONNECTION_ID(),0)";
  }
  /// Locks of another session are not ours, whose they seem to be there.
  std::string if_here(const std::string& call) const { return "IF(" + held_here(place_) + "," + call + ",0)"; }
  Error shared_session(ErrorCode code) const {
    return {code, server_place_ +
                      ": the server's sessions are dealt out to several clients, by a proxy in between, so that locks "
                      "of a session keep nobody away; set coordination = \"table\" in [outbox.NAME], or connect "
                      "directly"};
  }

  /// What each of these functions answers: 1 is true; 0 and NULL are false.
  Result<std::vector<bool>> flags(const std::vector<std::string>& calls, Deadline deadline) {
    std::vector<bool> answers;
    for (std::size_t begin = 0; begin < calls.size(); begin += kLocksAtOnce) {
      const auto some = std::span(calls).subspan(begin, std::min(kLocksAtOnce, calls.size() - begin));
      SLUICE_TRY(answer, connection_->run("SELECT " + joined(some, ","), deadline));
      for (const Cell& cell : answer->rows.front()) {
        answers.push_back(cell && *cell != "0");
      }
    }
    return answers;
  }

  /// What is asked of each place, in their order.
  template <typename Call>
  Result<std::vector<bool>> of_places(Call call, Deadline deadline) {
    std::vector<std::uint32_t> places(kPlaces);
    std::iota(places.begin(), places.end(), 0U);
    return flags(mapped(places, call), deadline);
  }
  Result<std::vector<bool>> taken_places(Deadline deadline) {
    return of_places([this](auto place) { return "IS_USED_LOCK(" + place_name(place) + ") IS NOT NULL"; }, deadline);
  }

  Result<Members> take_place(const LockSpace& space, Deadline deadline) {
    SLUICE_TRY(taken, taken_places(deadline));
    const auto free = std::find(taken->begin(), taken->end(), false);
    if (free == taken->end()) {
      return Error(ErrorCode::over_limit, server_place_ + ": the outbox has " + std::to_string(kPlaces) +
                                              " members already, and no more can share it");
    }
    SLUICE_TRY(here, of_places([this](auto place) { return held_here(place); }, deadline));
    if (std::find(here->begin(), here->end(), true) != here->end()) {
      return shared_session(ErrorCode::invalid);
    }
    place_ = static_cast<std::uint32_t>(free - taken->begin());
    std::vector<std::string> calls;
    for (std::uint32_t bit = 0; bit < kBits; ++bit) {
      if (((space.buckets >> bit) & 1U) != 0) {
        calls.push_back("GET_LOCK(" + bit_name(place_, bit) + ",0)");
      }
    }
    calls.push_back("GET_LOCK(" + place_name(place_) + ",0)");
    SLUICE_TRY(got, flags(calls, deadline));
    if (std::find(got->begin(), got->end(), false) != got->end()) {
      return Error(ErrorCode::throttled, server_place_ + ": a member's place is being given up; try again");
    }
    return look(deadline);
  }

  Result<Members> look(Deadline deadline) {
    SLUICE_TRY(taken, taken_places(deadline));
    Members members{.count = 0};
    std::vector<std::string> calls{held_here(place_)};
    for (std::uint32_t place = 0; place < kPlaces; ++place) {
      if (!(*taken)[place]) {
        continue;
      }
      ++members.count;
      for (std::uint32_t bit = 0; place != place_ && bit < kBits; ++bit) {
        calls.push_back("IS_USED_LOCK(" + bit_name(place, bit) + ") IS NOT NULL");
      }
    }
    SLUICE_TRY(bits, flags(calls, deadline));
    if (!bits->front()) {
      return shared_session(ErrorCode::unavailable);
    }
    for (std::size_t begin = 1; begin < bits->size(); begin += kBits) {
      std::uint32_t buckets = 0;
      for (std::uint32_t bit = 0; bit < kBits; ++bit) {
        buckets |= (*bits)[begin + bit] ? 1U << bit : 0;
      }
      // None: it has gone between the two looks.
      if (buckets != 0 && buckets != buckets_) {
        members.other_buckets = buckets;
      }
    }
    return members;
  }

  SqlServer& server_;
  const std::unique_ptr<SqlConnection> connection_;
  const std::string server_place_;
  const Clock& clock_;
  std::string prefix_;
  std::uint32_t buckets_ = 0;
  std::uint32_t place_ = kPlaces;
};

class MysqlServer final : public SqlServer {
 public:
  MysqlServer(const Settings& settings, const Clock& clock, Random& random)
      : SqlServer(settings, kDialect, kTypes, clock, random) {}

  Result<std::unique_ptr<SqlConnection>> connect(Use use, Deadline deadline) override {
    SLUICE_TRY(connection, mysql::connect(settings(), clock(), deadline));
    if (use == Use::locks) {
      // A session of which nothing is heard for the lease ends, and with it its locks.
      const auto lease = std::chrono::ceil<std::chrono::seconds>(settings().config.lease).count();
      SLUICE_PASS_ON(ask(**connection, deadline, "SET SESSION wait_timeout = @1, net_read_timeout = @1",
                         {std::to_string(std::max<std::int64_t>(2, lease))}));
    }
    return connection;
  }

  std::unique_ptr<LockSession> locks_on(std::unique_ptr<SqlConnection> connection) override {
    return std::make_unique<MysqlLocks>(*this, std::move(connection), place(), clock());
  }

  bool tells_of_rows() const override { return false; }

  Result<Answer> holder_of(SqlConnection& connection, const LockSpace& space, std::uint32_t bucket,
                           Deadline deadline) override {
    SLUICE_TRY(prefix, prefix_of(connection, table(), space, deadline));
    // Who may not see other sessions is told the number alone.
    return ask(connection, deadline,
               "SELECT used.id, sessions.HOST, NULL FROM (SELECT IS_USED_LOCK(@1) AS id) AS used LEFT JOIN "
               "information_schema.PROCESSLIST AS sessions ON sessions.ID = used.id",
               {bucket_name(*prefix, bucket)});
  }

  Result<RowKeys> write(SqlConnection& connection, std::span<const RowEdit> marks, const MarkFence* fence,
                        Deadline deadline) override {
    RowKeys written;
    const auto work = [&]() -> Result<void> {
      written.clear();
      if (fence != nullptr) {
        SLUICE_TRY(beaten, connection.run(fence->heartbeat, deadline));
        if (beaten->touched == 0) {
          return name_is_gone();
        }
      }
      SLUICE_TRY(locked, lock_rows(connection, table().markable(marks), true, deadline));
      for (Cells& row : locked->rows) {
        written.insert(table().key(std::move(row[0])));
      }
      std::vector<RowEdit> ours;
      std::copy_if(marks.begin(), marks.end(), std::back_inserter(ours),
                   [&written](const RowEdit& mark) { return written.contains(mark.key); });
      for (const std::string& update :
           table().updates(std::move(ours), [this](auto some) { return table().ids(some); })) {
        SLUICE_PASS_ON(connection.run(update, deadline));
      }
      return {};
    };
    SLUICE_PASS_ON(in_transaction(connection, work, deadline));
    return written;
  }

  // Neither MySQL nor MariaDB has an id that a fail-over leaves alone, so that it is kept in a table of one row beside
  // the outbox, which is replicated with it.
  Result<SourceId> source_id(SqlConnection& connection, Deadline deadline) override {
    const auto kept = ask(connection, deadline, "SELECT id FROM @SOURCE WHERE one = 1");
    if (kept && !kept->rows.empty()) {
      return SourceId{"mysql-" + kept->rows.front()[0].value_or(""), {}};
    }
    if (!kept && kept.error().code() != ErrorCode::queue_missing && kept.error().code() != ErrorCode::denied &&
        kept.error().code() != ErrorCode::invalid) {
      return kept.error();
    }
    // As much as a server says of itself.
    SLUICE_TRY(variables, ask(connection, deadline,
                              "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('hostname','port','server_uuid')"));
    std::string server;
    for (const Cells& variable : variables->rows) {
      server += variable[1].value_or("") + "/";
    }
    SLUICE_TRY(hash, ask(connection, deadline, "SELECT SHA1(CONCAT_WS('/', @1, @SCHEMA_TEXT, @NAME_TEXT))",
                         {text_literal(server)}));
    return SourceId{
        "mysql-" + hash->rows.at(0)[0].value_or(""),
        table().sql("there is no row of @SOURCE that the user may read, so that deduplication knows the "
                    "database by its server's name, which others may have and a fail-over changes; make the "
                    "table with what `sluice outbox ddl` prints and grant SELECT on it, or give each "
                    "database a 'producer' of its own")};
  }

  Result<std::vector<Finding>> inspect(SqlConnection& connection, Deadline deadline) override {
    const config::OutboxColumns& names = settings().config.columns;
    const auto sql = [this](const std::string& pattern) { return table().sql(pattern); };
    Inspection found(table(), place() + table().sql(": table @TABLE"));
    // "information_schema" shows only what the user has a right to.
    SLUICE_TRY(types, columns(connection, deadline));
    if (types->empty()) {
      SLUICE_TRY(seen, may(connection, {sql("SELECT 1 FROM @TABLE LIMIT 0")}, "", found, deadline));
      if (*seen) {
        found.fatal(ErrorCode::denied, found.table() + ": the user may not see its columns");
      }
      return std::move(found).findings();
    }
    found.columns(*types, kTypes);
    if (!found.any_fatal()) {
      const std::string read = table().sql("SELECT @1 FROM @TABLE LIMIT 0", {table().row_columns()});
      const std::string error =
          std::string(keeps_errors(table().settings().columns) ? ", @LAST_ERROR = @LAST_ERROR" : "") +
          (keeps_failed_at(table().settings().columns) ? ", @FAILED_AT = @FAILED_AT" : "");
      const std::string update =
          sql("UPDATE @TABLE SET @SENT_AT = @SENT_AT, @RETRY_AT = @RETRY_AT, @RETRY_COUNT = @RETRY_COUNT" + error +
              " WHERE FALSE");
      SLUICE_TRY(allowed, may(connection, {read, update}, "", found, deadline));
      if (!*allowed) {
        return std::move(found).findings();
      }
    }
    SLUICE_PASS_ON(look_at_keys(connection, types->contains(names.id), found, deadline));
    SLUICE_TRY(tables, ask(connection, deadline, "SELECT ENGINE FROM information_schema.TABLES WHERE @OF_TABLE"));
    const std::string engine = tables->rows.empty() ? "" : tables->rows.front()[0].value_or("");
    if (!engine.empty() && engine != "InnoDB") {
      found.remark(found.table() + " is of the engine " + engine +
                   ", which has no transactions: an event may be there without what it tells of; use InnoDB");
    }
    if (settings().config.side_table) {
      SLUICE_PASS_ON(
          may(connection,
              {sql("SELECT counter FROM @SIDE LIMIT 0"), sql("UPDATE @SIDE SET counter = counter WHERE FALSE"),
               sql("DELETE FROM @SIDE WHERE FALSE"), sql("INSERT INTO @SIDE SELECT * FROM @SIDE WHERE FALSE")},
              sql("; coordination = \"table\" needs @SIDE and SELECT, INSERT, UPDATE and DELETE on it; "
                  "`sluice outbox ddl` prints it"),
              found, deadline));
    }
    return std::move(found).findings();
  }

 private:
  std::string place() const {
    const auto address = mysql::address_of(settings());
    return address ? address->place() : std::string();
  }

  Result<void> look_at_keys(SqlConnection& connection, bool has_id, Inspection& found, Deadline deadline) const {
    const config::OutboxColumns& names = settings().config.columns;
    SLUICE_TRY(counted, ask(connection, deadline,
                            "SELECT 1 FROM information_schema.COLUMNS WHERE @OF_TABLE AND COLUMN_NAME = @ID_NAME AND "
                            "EXTRA LIKE '%auto_increment%'"));
    SLUICE_TRY(keys, ask(connection, deadline,
                         "SELECT INDEX_NAME, MAX(IF(SEQ_IN_INDEX = 1, COLUMN_NAME, '')), MAX(NON_UNIQUE) = 0 AND "
                         "COUNT(*) = 1 FROM information_schema.STATISTICS WHERE @OF_TABLE GROUP BY INDEX_NAME"));
    const auto any_on = [&keys](const std::string& column, bool unique) {
      return std::any_of(keys->rows.begin(), keys->rows.end(),
                         [&](const Cells& row) { return row[1] == column && (!unique || flag_of(row[2])); });
    };
    if (has_id) {
      found.identity(any_on(names.id, true), !counted->rows.empty(), "the server counts its values");
    }
    if (!any_on(names.id, false)) {
      found.remark(found.table() + " has no key on " + names.id +
                   ": rows are searched for one after the other; make it the primary key");
    }
    if (!any_on(names.sent_at, false)) {
      found.remark(found.table() + " has no index that begins with " + names.sent_at +
                   ": each look reads what was sent long ago; `" +
                   table().sql("CREATE INDEX outbox_pending ON @TABLE (@SENT_AT, @PLACE)") + "` mends that");
    }
    return {};
  }

  /// Whether the server lets this user run all of these, in which no row is meant: it checks rights before. Otherwise a
  /// finding says why not, with `more`.
  Result<bool> may(SqlConnection& connection, const std::vector<std::string>& statements, const std::string& more,
                   Inspection& found, Deadline deadline) const {
    for (const std::string& statement : statements) {
      const auto allowed = connection.run(statement, deadline);
      if (!allowed && allowed.error().code() == ErrorCode::timeout) {
        return allowed.error();
      }
      if (!allowed) {
        found.fatal(allowed.error().code(), allowed.error().message() + more);
        return false;
      }
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<SqlServer> make_mysql_database(const Settings& settings, const Clock& clock, Random& random) {
  return std::make_unique<MysqlServer>(settings, clock, random);
}

}  // namespace sluice::queue::outbox
