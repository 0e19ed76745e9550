#include <fcntl.h>
#include <mysql.h>
#include <sys/socket.h>

#include <array>

#include "base/ranges.hpp"
#include "base/resolver.hpp"
#include "base/text/host_and_port.hpp"
#include "base/text/number.hpp"
#include "base/text/percent.hpp"
#include "host/stores/outbox/mysql/mysql_database.hpp"
#include "host/stores/outbox/network/tcp_connect.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

constexpr std::string_view kScheme = "mysql://";
constexpr const char* kForms =
    "must be mysql://USER:PASSWORD@HOST:3306/DATABASE or USER:PASSWORD@tcp(HOST:3306)/DATABASE (the value is not "
    "shown, "
    "for it may hold a password)";

Error wrong(const std::string& what) { return {ErrorCode::invalid, "the outbox's url " + what}; }

bool read_port(std::string_view text, std::uint32_t& port) {
  port = parse_number<std::uint16_t>(text).value_or(0);
  return port > 0;
}

bool read_place(std::string_view text, ServerAddress& address) {
  const auto [host, port] = host_and_port(text);
  address.host = host.empty() ? address.host : std::string(host);
  const bool odd = text.ends_with(':') || (text.starts_with('[') && text.find(']') == std::string_view::npos);
  return text.empty() || (!odd && !host.empty() && (port.empty() || read_port(port, address.port)));
}

/// "tcp(host:port)", "unix(path)", or nothing for the default; "mysql+tcp" was outbox-worker's name for its tunnel.
bool read_go_place(std::string_view text, ServerAddress& address) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) {
    return text.empty() || text == "tcp";
  }
  if (text.back() != ')') {
    return false;
  }
  const std::string_view kind = text.substr(0, open);
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  if (kind == "unix") {
    address.socket = std::string(inside);
    return !inside.empty();
  }
  return (kind == "tcp" || kind == "tcp6" || kind == "mysql+tcp") && read_place(inside, address);
}

constexpr std::array<std::pair<std::string_view, TlsUse>, 4> kTlsUses{{{"true", TlsUse::checked},
                                                                       {"skip-verify", TlsUse::unchecked},
                                                                       {"preferred", TlsUse::preferred},
                                                                       {"false", TlsUse::none}}};

Result<void> read_parameters(std::string_view text, ServerAddress& address) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view parameter = text.substr(0, end);
    text.remove_prefix(std::min(text.size(), end + 1));
    if (parameter.substr(0, 4) != "tls=") {
      continue;
    }
    const std::string_view value = parameter.substr(4);
    const auto* known = find_where(kTlsUses, [&](const auto& use) { return use.first == value; });
    if (known == nullptr) {
      return wrong("has a 'tls' other than true, false, skip-verify or preferred; write [outbox.NAME.tls]");
    }
    address.tls = known->second;
  }
  return {};
}

/// True where what follows the user is "tcp(", "unix(" and the like.
bool is_go_form(std::string_view text) {
  const std::size_t slash = text.rfind('/');
  const std::string_view left = text.substr(0, slash);
  const std::size_t at = left.rfind('@');
  const std::string_view place = at == std::string_view::npos ? left : left.substr(at + 1);
  return place.find('(') != std::string_view::npos && !place.empty() && place.back() == ')';
}

}  // namespace

std::string ServerAddress::place() const {
  return "mysql://" + (socket.empty() ? host + ":" + std::to_string(port) : "unix(" + socket + ")") + "/" + database;
}

// Both forms are "user:password@place/database?parameters". In Go's the last '/' ends the place, and nothing but the
// database is decoded.
Result<ServerAddress> parse_url(const std::string& url) {
  std::string_view text = url;
  const bool scheme = text.starts_with(kScheme);
  text.remove_prefix(scheme ? kScheme.size() : 0);
  const bool go = is_go_form(text);
  const std::size_t at = go ? text.substr(0, text.rfind('/')).rfind('@') : end_of_user(text);
  const std::string_view user = at == std::string_view::npos ? "" : text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? 0 : at + 1);
  const std::size_t slash = std::min(go ? text.rfind('/') : text.find_first_of("/?"), text.size());
  const std::size_t question = std::min(text.find('?', slash), text.size());
  const std::string_view place = text.substr(0, slash);
  const std::string_view parameters = text.substr(std::min(question + 1, text.size()));

  ServerAddress address;
  const auto decoded = [go](std::string_view part) {
    return go ? std::optional(std::string(part)) : percent_decoded(part);
  };
  const auto name = decoded(user.substr(0, user.find(':')));
  const auto password = decoded(user.substr(std::min(user.find(':'), user.size() - 1) + 1));
  const auto database = percent_decoded(text.substr(0, question).substr(std::min(slash + 1, question)));
  // Otherwise the '?' is one of a password, and all before it may be.
  const bool whole = go || at != std::string_view::npos || parameters.find('@') == std::string_view::npos;
  if (!(go || scheme) || !whole || !name || !password || !database ||
      !(go ? read_go_place(place, address) : read_place(place, address))) {
    return wrong(kForms);
  }
  address.user = *name;
  address.password = *password;
  address.database = *database;
  SLUICE_PASS_ON(read_parameters(parameters, address));
  if (address.database.empty()) {
    return wrong("names no database: write it behind the '/' that follows the host");
  }
  return address;
}

Result<ServerAddress> address_of(const Settings& settings) {
  auto address = parse_url(settings.config.url);
  if (address.has_error()) {
    return address;
  }
  if (!settings.config.username.empty()) {
    address->user = settings.config.username;
  }
  if (!settings.config.password.empty()) {
    address->password = settings.config.password;
  }
  if (settings.config.tls) {
    address->tls = settings.config.tls->verify ? TlsUse::checked : TlsUse::unchecked;
  }
  return address;
}

namespace {

// The versions from which on each of them can pass over locked rows. Before that they are waited for, as long as
// innodb_lock_wait_timeout says.
constexpr unsigned long kMariaDbSkipsLocked = 100600;
constexpr unsigned long kMysqlSkipsLocked = 80001;

struct Known {
  unsigned int code;
  ErrorCode kind;
  const char* what;
};

// By the numbers of the servers (1000 and up, 3000 of MySQL 5.7 and 8, 4000 of both) and of the client (2000).
constexpr std::array<Known, 37> kKnown{{
    {1021, ErrorCode::full, "the server's disk is full"},
    {1040, ErrorCode::unavailable, "the server has no connection left"},
    {1044, ErrorCode::denied, "the user has no right to this database"},
    {1045, ErrorCode::denied, "the server refuses the user or the password"},
    {1049, ErrorCode::queue_missing, "there is no such database"},
    {1053, ErrorCode::unavailable, "the server is shutting down"},
    {1054, ErrorCode::invalid, "a column is missing; its name can be given in [outbox.NAME.columns]"},
    {1114, ErrorCode::full, "the table is full"},
    {1129, ErrorCode::unavailable,
     "the server blocks this machine after too many failures; FLUSH HOSTS there ends that"},
    {1130, ErrorCode::denied, "the server takes no connections from this machine"},
    {1142, ErrorCode::denied, "the user lacks a right to the table; GRANT SELECT, UPDATE ON the table to it"},
    {1143, ErrorCode::denied, "the user lacks a right to a column; GRANT SELECT, UPDATE ON the table to it"},
    {1146, ErrorCode::queue_missing, "there is no such table; `sluice outbox ddl` prints what makes it"},
    {1153, ErrorCode::invalid, "a value is larger than the server's max_allowed_packet"},
    {1203, ErrorCode::unavailable, "the user has no connection left"},
    {1205, ErrorCode::throttled, "somebody else holds a lock on the rows for too long"},
    {1213, ErrorCode::throttled, "a deadlock with another transaction"},
    {1226, ErrorCode::unavailable, "the user's limit of connections or queries is reached"},
    {1227, ErrorCode::denied, "the user lacks a right"},
    {1290, ErrorCode::unavailable, "the server is read-only, as a replica is; name the one that is written to"},
    {1317, ErrorCode::throttled, "the query was ended by somebody at the server"},
    {1366, ErrorCode::invalid, "a value does not fit its column"},
    {1644, ErrorCode::conflict, "a trigger of the table refuses the change"},
    {1698, ErrorCode::denied, "the server refuses the user"},
    {1792, ErrorCode::unavailable, "the server is read-only, as a replica is; name the one that is written to"},
    {1836, ErrorCode::unavailable, "the server is read-only, as a replica is; name the one that is written to"},
    {1927, ErrorCode::unavailable, "somebody at the server ended the session"},
    {1969, ErrorCode::throttled, "the query took longer than the server allows"},
    {2002, ErrorCode::unavailable, "nobody answers"},
    {2003, ErrorCode::unavailable, "nobody answers"},
    {2005, ErrorCode::unavailable, "the name of the server is not known"},
    {2006, ErrorCode::unavailable, "the session has ended"},
    {2013, ErrorCode::unavailable, "the session has ended"},
    {2026, ErrorCode::denied, "no TLS session with the server"},
    {2055, ErrorCode::unavailable, "the session has ended"},
    {2059, ErrorCode::denied, "the user logs in by a way that this machine's libmariadb lacks"},
    {4031, ErrorCode::unavailable, "the server ended the idle session"},
}};

/// For a person: what is wrong at that place, and the mend where there is one.
Error error_of(unsigned int code, const std::string& text, const std::string& place) {
  const Known* known = find_where(kKnown, [code](const Known& one) { return one.code == code; });
  const std::string said = " (" + std::to_string(code) + ": " + text + ")";
  if (known == nullptr) {
    return {ErrorCode::internal, place + ": the server refuses a request" + said};
  }
  return {known->kind, place + ": " + known->what + said};
}

/// How long the thread's call of libmariadb may wait, and what for.
struct Waiting {
  const Clock* clock = nullptr;
  Deadline deadline = Deadline::never();
  bool sending = false;  ///< a statement, which TLS sessions wait to send as if they waited for an answer
};
constinit thread_local Waiting waiting;

/// libmariadb waits by this alone: 1 once its socket is ready, 0 at the deadline.
int wait_for(my_socket socket, my_bool reads, int /*timeout*/) {
  // It leaves the socket blocking, so that OpenSSL would wait by itself.
  ::fcntl(socket, F_SETFL, O_NONBLOCK);
  pollfd watched{socket, static_cast<short>(reads != 0 && !waiting.sending ? POLLIN : POLLOUT), 0};
  return waiting.clock != nullptr && poll_until(std::span(&watched, 1), *waiting.clock, waiting.deadline) ? 1 : 0;
}

/// libmariadb has one set-up for the process, which must not happen in two threads at once.
void set_up_library() {
  static const int kDone = mysql_library_init(0, nullptr, nullptr);
  static_cast<void>(kDone);
}

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

/// A session with a server of MySQL or MariaDB. The one boundary of libmariadb.
class MysqlConnection final : public SqlConnection {
 public:
  static Result<std::unique_ptr<SqlConnection>> open(const Settings& settings, const Clock& clock, Deadline deadline) {
    set_up_library();
    SLUICE_TRY(known, address_of(settings));
    const ServerAddress& address = *known;
    std::string socket = address.socket;
    if (settings.tunnel != nullptr) {
      SLUICE_TRY(private_socket, settings.tunnel(deadline));
      socket = *private_socket;
    }
    if (socket.empty()) {
      // libmariadb looks the name up again and heeds no deadline then: by now somebody is known to answer.
      if (const auto known_name = addresses_of(address.host, clock, deadline); !known_name) {
        return Error(known_name.error().code(), address.place() + ": " + known_name.error().message());
      }
    }
    MYSQL* mysql = mysql_init(nullptr);
    if (mysql == nullptr) {
      return Error(ErrorCode::internal, "libmariadb gives no session");
    }
    std::unique_ptr<MysqlConnection> session(new MysqlConnection(mysql, address.place(), clock));
    session->configure(settings, address);
    SLUICE_PASS_ON(session->expect_server(settings, address, socket, deadline));
    SLUICE_PASS_ON(session->connect(address, socket, deadline));
    SLUICE_PASS_ON(session->settle_in(deadline));
    return std::unique_ptr<SqlConnection>(std::move(session));
  }

  ~MysqlConnection() override { close(); }

  Result<Answer> run(const std::string& statement, Deadline deadline) override {
    Answer answer;
    SLUICE_TRY(touched, query(
                            statement,
                            [&answer](Cells&& row) {
                              answer.rows.push_back(std::move(row));
                              return true;
                            },
                            deadline));
    answer.touched = *touched;
    return answer;
  }

  Result<bool> stream(const std::string& statement, const TakeRow& take, Deadline deadline) override {
    bool all = true;
    SLUICE_PASS_ON(query(
        statement, [&](Cells&& row) { return all = take(std::move(row)); }, deadline));
    return all;
  }

  Result<std::vector<Answer>> run_together(std::span<const std::string> statements, Deadline deadline) override {
    std::vector<Answer> answers;
    const auto run_all = [&]() -> Result<void> {
      answers.clear();
      for (const std::string& statement : statements) {
        SLUICE_TRY(answer, run(statement, deadline));
        answers.push_back(*std::move(answer));
      }
      return {};
    };
    SLUICE_PASS_ON(in_transaction(*this, run_all, deadline));
    return answers;
  }

  bool skips_locked() const override { return skips_locked_; }

 private:
  MysqlConnection(MYSQL* mysql, std::string place, const Clock& clock)
      : mysql_(mysql), place_(std::move(place)), clock_(clock) {}

  void close() {
    if (mysql_ == nullptr) {
      return;
    }
    // A polite farewell may block; the server takes the end of the connection for one.
    if (const auto socket = mysql_get_socket(mysql_); socket >= 0) {
      ::shutdown(socket, SHUT_RDWR);
    }
    mysql_close(std::exchange(mysql_, nullptr));
  }

  void configure(const Settings& settings, const ServerAddress& address) {
    const my_bool no = 0;
    const unsigned int off = 0;
    mysql_options(mysql_, MARIADB_OPT_IO_WAIT, reinterpret_cast<const void*>(&wait_for));
    mysql_options(mysql_, MYSQL_OPT_RECONNECT, &no);
    mysql_options(mysql_, MYSQL_OPT_LOCAL_INFILE, &off);
    mysql_options(mysql_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_options4(mysql_, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", settings.application.c_str());
    // Otherwise "localhost" would be the socket of whatever server this machine has.
    const unsigned int protocol =
        address.socket.empty() && settings.tunnel == nullptr ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
    mysql_options(mysql_, MYSQL_OPT_PROTOCOL, &protocol);
  }

  /// TLS with a server that has to be `name`, or the host that is connected to where it is empty.
  Result<void> expect_server(const Settings& settings, const ServerAddress& address, const std::string& socket,
                             Deadline deadline) {
    if (address.tls == TlsUse::none) {
      return {};
    }
    const config::OutboxTls tls = settings.config.tls.value_or(config::OutboxTls());
    const my_bool no = 0;
    const my_bool yes = 1;
    const std::string name = tls.server_name.empty() ? address.host : tls.server_name;
    const bool otherwise = !socket.empty() || name != address.host;
    const bool checked = address.tls == TlsUse::checked;
    mysql_ssl_set(mysql_, or_null(tls.key), or_null(tls.certificate), or_null(tls.ca), nullptr, nullptr);
    mysql_options(mysql_, MYSQL_OPT_SSL_ENFORCE, address.tls == TlsUse::preferred ? &no : &yes);
    mysql_options(mysql_, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, checked && !otherwise ? &yes : &no);
    if (!checked || !otherwise) {
      return {};
    }
    // libmariadb knows the host's name only; what it can be held to is a certificate that was found to be good.
    SLUICE_TRY(fingerprint, fingerprint_of_server(address, socket, tls, name, clock_, deadline));
    mysql_options(mysql_, MARIADB_OPT_TLS_PEER_FP, fingerprint->c_str());
    return {};
  }

  Result<void> connect(const ServerAddress& address, const std::string& socket, Deadline deadline) {
    waiting = {&clock_, deadline};
    // For a greeting that nobody had to wait for, after which OpenSSL waits for the server's handshake by itself.
    const auto left = std::chrono::ceil<std::chrono::seconds>(deadline.left(clock_.steady_now())).count();
    const auto seconds = static_cast<unsigned int>(std::clamp<std::int64_t>(left, 1, 3600));
    mysql_options(mysql_, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    const bool local = !socket.empty();
    if (mysql_real_connect(mysql_, local ? nullptr : address.host.c_str(), address.user.c_str(),
                           address.password.c_str(), address.database.c_str(), local ? 0 : address.port,
                           or_null(socket), CLIENT_FOUND_ROWS) == nullptr) {
      return failed(deadline);
    }
    ::fcntl(mysql_get_socket(mysql_), F_SETFL, O_NONBLOCK);
    return {};
  }

  Result<void> settle_in(Deadline deadline) {
    const unsigned long since = mariadb_connection(mysql_) != 0 ? kMariaDbSkipsLocked : kMysqlSkipsLocked;
    // A proxy may tell another version than that of whoever answers behind it.
    skips_locked_ = mysql_get_server_version(mysql_) >= since && run("SELECT 1 FOR UPDATE SKIP LOCKED", deadline);
    // Without a strict mode a text that is too long for last_error is cut.
    SLUICE_PASS_ON(
        run("SET SESSION time_zone = '+00:00', sql_mode = 'NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = 2",
            deadline));
    SLUICE_PASS_ON(run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", deadline));
    return {};
  }

  /// Runs a statement; how many rows it has touched.
  Result<std::uint64_t> query(const std::string& statement, const TakeRow& take, Deadline deadline) {
    if (mysql_ == nullptr) {
      return Error(ErrorCode::unavailable, place_ + ": the session has ended");
    }
    waiting = {&clock_, deadline, true};
    const bool sent = mysql_send_query(mysql_, statement.data(), statement.size()) == 0;
    waiting.sending = false;
    if (!sent || mysql_read_query_result(mysql_) != 0) {
      return failed(deadline);
    }
    if (mysql_field_count(mysql_) != 0) {
      SLUICE_PASS_ON(read_rows(take, deadline));
      return 0;
    }
    return mysql_affected_rows(mysql_);
  }

  Result<void> read_rows(const TakeRow& take, Deadline deadline) {
    MYSQL_RES* result = mysql_use_result(mysql_);
    if (result == nullptr) {
      return failed(deadline);
    }
    const unsigned int fields = mysql_num_fields(result);
    bool taking = true;
    while (MYSQL_ROW row = mysql_fetch_row(result)) {
      if (!taking) {
        continue;  // the others are read off and dropped
      }
      const unsigned long* lengths = mysql_fetch_lengths(result);
      Cells cells;
      cells.reserve(fields);
      for (unsigned int i = 0; i < fields; ++i) {
        cells.push_back(row[i] == nullptr ? Cell() : Cell(std::string(row[i], lengths[i])));
      }
      taking = take(std::move(cells));
    }
    const unsigned int code = mysql_errno(mysql_);
    const std::string text = mysql_error(mysql_);
    mysql_free_result(result);
    return code == 0 ? Result<void>() : failed(deadline, code, text);
  }

  Error failed(Deadline deadline) { return failed(deadline, mysql_errno(mysql_), mysql_error(mysql_)); }

  Error failed(Deadline deadline, unsigned int code, const std::string& text) {
    Error error = deadline.passed(clock_.steady_now()) ? Error(ErrorCode::timeout, place_ + ": no answer in time")
                                                       : error_of(code, text, place_);
    if (ends_session(error.code())) {
      close();
    }
    return error;
  }

  MYSQL* mysql_;
  const std::string place_;
  const Clock& clock_;
  bool skips_locked_ = false;
};

}  // namespace

Result<std::unique_ptr<SqlConnection>> connect(const Settings& settings, const Clock& clock, Deadline deadline) {
  return MysqlConnection::open(settings, clock, deadline);
}

}  // namespace sluice::queue::outbox::mysql
