#pragma once

#include <algorithm>
#include <chrono>
#include <memory>

#include "base/deadline.hpp"
#include "base/random.hpp"
#include "config/config.hpp"
#include "host/stores/outbox/rows.hpp"

namespace sluice::queue::outbox {

/// A way to the database's server that somebody else keeps open: an SSH tunnel. Gives the private Unix socket that
/// leads to the server, ready to be connected to; opens the tunnel where it is not open. The file is named as libpq
/// wants it,
/// ".s.PGSQL." and the server's port. Thread-safe.
using Tunnel = std::function<Result<std::string>(Deadline deadline)>;

/// Everything about one outbox but its messages.
struct Settings {
  std::string name;  ///< NAME of [outbox.NAME]
  /// `url`: "postgres://user:password@host:5432/database?parameters", "mysql://user:password@host:3306/database", or
  /// for MySQL the Go form "user:password@tcp(host:3306)/database".
  /// `schema`, empty: what the session's search path (MySQL: the database of the URL) says.
  /// `lease`: how long a session may be idle before the server ends it, so that what its holder had locked goes to
  /// others.
  /// `buckets`: rows without a group are spread by id, the others by a hash of their aggregate id, over so many.
  /// `retry_limit`: a row with so many tries is a dead letter and is not fetched.
  /// `compat`: what has been sent counts as pending all the same, until its tries are used up.
  /// `side_table`: who has which bucket stands in a side table (`TABLE_sluice`), for servers behind a pool that shares
  /// sessions. False: locks of the session say it, without any change of the schema.
  /// `attributes`: further columns that go out as attributes of their names; NULL: absent.
  /// `tls`, absent: what the URL says.
  config::OutboxConfig config{};
  Tunnel tunnel{};  ///< empty: the server is asked directly
  /// As the server lists its sessions, where it can: this and the host's name.
  static constexpr std::string_view kApplication = "sluice ";
  std::string application = "sluice";
};

inline bool has_text_ids(const config::OutboxColumns& columns) { return !columns.order_by.empty(); }
inline bool keeps_errors(const config::OutboxColumns& columns) { return !columns.last_error.empty(); }
inline bool keeps_failed_at(const config::OutboxColumns& columns) { return !columns.failed_at.empty(); }

inline constexpr Duration kConnectTime = std::chrono::seconds(10);

/// After such an error the session is closed, and nothing but its destructor may be called.
inline bool ends_session(ErrorCode code) {
  return code == ErrorCode::unavailable || code == ErrorCode::timeout || code == ErrorCode::unknown_outcome;
}

/// The pauses between tries that fail one after the other: twice as long each time, and never in step with anybody
/// else's. Up to 1 s where the database cannot be reached: it refuses at once and costs nothing, or the try itself has
/// taken its time. Up to 5 s for everything else. Not thread-safe.
class RetryPause {
 public:
  Duration next(ErrorCode code, Random& random) {
    constexpr Duration kFirst = std::chrono::milliseconds(100);
    const Duration last = std::chrono::seconds(ends_session(code) ? 1 : 5);
    constexpr std::uint32_t kMostDoublings = 10;
    const Duration full = std::min(kFirst * (1U << std::min(failures_++, kMostDoublings)), last);
    return full / 2 + Duration(static_cast<Duration::rep>(random.below(static_cast<std::uint64_t>(full.count() / 2))));
  }
  void worked() { failures_ = 0; }

 private:
  std::uint32_t failures_ = 0;
};

/// Whose buckets these are: all sources of one job on one table, whatever host they run in, and nobody else. A value.
struct LockSpace {
  std::string name;  ///< the job's, of any length and any characters; which table it is the session itself finds out
  std::uint32_t buckets = 64;
};

/// How often a session is to be heard of where that costs next to nothing.
inline Duration default_beat(Duration lease) { return std::min<Duration>(std::chrono::seconds(1), lease / 4); }

/// The session that holds a source's locks and writes its marks, so that whoever has lost his locks cannot write. The
/// server ends it when nothing was asked of it for the lease; with it all its locks go.
/// Where locks are leases (LeaseLocks), the lease ends by itself.
///
/// Not thread-safe: one call at a time. Every call blocks and has returned by its deadline. After an error whose code
/// is `unavailable`, `timeout` or `unknown_outcome` the session is over: it has closed its connection, and with it
/// given its locks up; nothing but the destructor may be called then. Any other error leaves it as it was.
class LockSession : public Resource {
 public:
  /// How often it wants to be asked for a `beat` while no bucket changes hands.
  virtual Duration beat_every(Duration lease) const { return default_beat(lease); }
  /// Whether what a session holds is free at its end, so that it is found by looking often.
  virtual bool frees_at_once() const { return true; }
  /// Becomes a live member of the space. Once, before any other call; a session that only writes marks need not. A
  /// caller that sees others of another number of buckets goes away again.
  virtual Result<Members> join(const LockSpace& space, Deadline deadline) = 0;
  /// Who is there now; keeps the session alive.
  virtual Result<Members> beat(Deadline deadline) = 0;
  /// Tries to lock these buckets, of which it holds none, without waiting; those that it got. After an error of this
  /// call or the next one nobody knows which are locked: the session is to be given up.
  virtual Result<std::vector<std::uint32_t>> lock(std::span<const std::uint32_t> buckets, Deadline deadline) = 0;
  virtual Result<void> unlock(std::span<const std::uint32_t> buckets, Deadline deadline) = 0;
  /// Writes marks durably, in one transaction and few requests; one status each, in their order. Waits for no lock of
  /// the application's. After a failure as a whole all of them may be written again, unless its code is
  /// `unknown_outcome`.
  virtual Result<std::vector<MarkStatus>> mark(std::span<const RowEdit> marks, Deadline deadline) = 0;
};

/// A session that reads what is to be handed out. Threads and errors as LockSession's.
class ReadSession : public Resource {
 public:
  /// The id of the table that this session reads.
  virtual Result<SourceId> source_id(Deadline deadline) = 0;
  /// Pending rows by id. A row that waits for its retry is among them, so that it is known to hold its group (one
  /// without a group may be left out); what such a row, an unreadable one or a dead one holds beside its key is empty
  /// or not, as it is cheaper.
  virtual Result<Page> fetch(const FetchRequest& request, Deadline deadline) = 0;
  /// The first pending rows of each of these groups; one answer each, in their order. `request` says the filter, how
  /// many of each, and `bytes` (of all together: rows that follow are left out, and `more` is set).
  virtual Result<std::vector<Page>> fetch_groups(std::span<const Group> groups, const FetchRequest& request,
                                                 Deadline deadline) = 0;

  /// Nobody tells of new rows, and a look for them costs next to nothing.
  virtual bool wants_looks() const { return false; }
  enum class News : std::uint8_t {
    none,
    rows,     ///< the trigger has told of new rows
    changed,  ///< an operator has changed rows: what waits may be due
  };
  /// What the database has told since the last call. Does not wait.
  virtual Result<News> news() { return News::none; }
  /// The descriptor that is readable when there may be news; -1: the database tells of none.
  virtual int news_descriptor() const { return -1; }
};

/// A session for operators. Threads and errors as LockSession's.
class AdminSession : public Resource {
 public:
  /// What is wrong with the table, or could be better: no table, columns that are missing or of the wrong type (by
  /// name), rights, a server that is read-only, no index, no trigger. Fatal ones first; empty: nothing.
  virtual Result<std::vector<Finding>> inspect(Deadline deadline) = 0;
  /// As ReadSession's.
  virtual Result<SourceId> source_id(Deadline deadline) = 0;
  /// ErrorCode::not_found when absent.
  virtual Result<StoredRow> get(const RowKey& key, Deadline deadline) = 0;
  virtual Result<std::vector<StoredRow>> list(const ListRows& request, Deadline deadline) = 0;
  virtual Result<TableCounts> count(const CountRequest& request, Deadline deadline) = 0;
  /// One result each. Tells the sources (News::changed) where the database can.
  virtual Result<std::vector<ChangeStatus>> change(std::span<const RowEdit> edits, Deadline deadline) = 0;
  /// How many rows were deleted, or would be.
  virtual Result<std::uint64_t> prune(const PruneRequest& request, Deadline deadline) = 0;
  /// Whose session has the bucket: "host web-1", or the session as the server lists it; empty: nobody's. Nothing where
  /// the database does not tell.
  virtual Result<std::optional<std::string>> holder_of(const LockSpace& /*space*/, std::uint32_t /*bucket*/,
                                                       Deadline /*deadline*/) {
    return std::optional<std::string>();
  }
};

/// One outbox table in one database. Opening a session connects, and checks nothing about the table. Errors name what
/// is wrong for a person, without any password: ErrorCode::denied (user, password, rights, TLS: by name), queue_missing
/// (no database, table), invalid (the URL; a column, by name), unavailable (no answer, shutting down, read-only
/// replica). Thread-safe; outlives its sessions.
class Database : public Resource {
 public:
  virtual Result<std::unique_ptr<LockSession>> open_locks(Deadline deadline) = 0;
  virtual Result<std::unique_ptr<ReadSession>> open_reader(Deadline deadline) = 0;
  virtual Result<std::unique_ptr<AdminSession>> open_admin(Deadline deadline) = 0;

  /// The SQL that makes the table, its indexes, and what else there is: the trigger, and with coordination = "table"
  /// the side table. With `in_use` what a table lacks that others write to meanwhile, who wait for nothing of it. May
  /// be run again. Needs no connection.
  virtual std::string ddl(bool in_use) const = 0;
};

}  // namespace sluice::queue::outbox
