#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"

/// What an outbox is and where it lies: the host file's [outbox.NAME] as the stores need it. Values.
namespace sluice::queue::outbox {

/// The names of the columns. All but the last ones have the original's names as their default.
struct Columns {
  std::string id = "id";
  std::string aggregate_type = "aggregate_type";
  std::string aggregate_id = "aggregate_id";
  std::string event = "event";
  std::string payload = "payload";
  std::string retry_at = "retry_at";
  std::string retry_count = "retry_count";
  std::string sent_at = "sent_at";
  std::string created_at{};  ///< empty: there is none; a message's `sent_at` is then when it was fetched
  std::string last_error{};  ///< empty: there is none; why a row failed is then in the log only
  /// Further columns that go out as attributes of their names; NULL: absent.
  std::vector<std::string> attributes{};
};

/// The table, and how its rows are read.
struct TableSettings {
  std::string schema{};  ///< empty: what the session's search path (MySQL: the database of the URL) says
  std::string table = "outbox";
  Columns columns{};
  /// A row with so many tries is a dead letter and is not fetched.
  std::uint32_t retry_limit = 10;
  /// Rows without a group are spread by id, the others by a hash of their aggregate id, over so many buckets.
  std::uint32_t buckets = 64;
  /// compat = "outbox-worker": what has been sent counts as pending all the same, until its tries are used up.
  bool resend_sent = false;
};

struct TlsSettings {
  bool required = false;      ///< false: what the URL says, and the other fields are empty
  bool verify = true;         ///< the chain and the server's name; false: encrypted, whoever answers
  std::string ca{};           ///< a file; empty: the system's
  std::string server_name{};  ///< that the certificate must be for; empty: the host that was connected to
  std::string certificate{};  ///< a file: the client's
  std::string key{};          ///< a file: its private key
};

/// A way to the database's server that somebody else keeps open: an SSH tunnel. Thread-safe.
class Tunnel {
 public:
  Tunnel() = default;
  Tunnel(const Tunnel&) = delete;
  Tunnel& operator=(const Tunnel&) = delete;
  virtual ~Tunnel() = default;

  /// The private Unix socket that leads to the server, ready to be connected to; opens the tunnel where it is not open.
  /// The file is named as libpq wants it, ".s.PGSQL." and the server's port.
  virtual Result<std::string> socket(Deadline deadline) = 0;
};

/// Where the database answers, and as whom it is asked.
struct ConnectSettings {
  /// "postgres://user:password@host:5432/database?parameters", "mysql://user:password@host:3306/database", or for MySQL
  /// the Go form "user:password@tcp(host:3306)/database".
  std::string url;
  std::string username{};  ///< not empty: wins over the URL's
  std::string password{};
  TlsSettings tls{};
  std::shared_ptr<Tunnel> tunnel{};  ///< null: the server is asked directly
  /// How long a session may be idle before the server ends it, so that what its holder had locked goes to others.
  Duration lease = std::chrono::seconds(15);
  std::string application = "sluice";  ///< as the server lists its sessions, where it can
  /// True: who has which bucket stands in a side table (`TABLE_sluice`), for servers behind a pool that shares
  /// sessions. False: locks of the session say it, without any change of the schema.
  bool side_table = false;
};

/// Everything about one outbox but its messages.
struct Settings {
  std::string name;  ///< NAME of [outbox.NAME]
  ConnectSettings connect;
  TableSettings table;
};

}  // namespace sluice::queue::outbox
