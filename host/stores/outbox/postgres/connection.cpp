#include <libpq-fe.h>
#include <unistd.h>

#include <array>
#include <boost/algorithm/string/classification.hpp>
#include <boost/algorithm/string/erase.hpp>
#include <boost/algorithm/string/replace.hpp>
#include <boost/algorithm/string/split.hpp>
#include <boost/algorithm/string/trim_all.hpp>
#include <charconv>
#include <map>

#include "base/hanging_calls.hpp"
#include "base/ranges.hpp"
#include "base/resolver.hpp"
#include "base/text/joined.hpp"
#include "base/text/number.hpp"
#include "base/text/percent.hpp"
#include "host/stores/outbox/network/tcp_connect.hpp"
#include "host/stores/outbox/postgres/postgres_database.hpp"

namespace sluice::queue::outbox::postgres {
namespace {

const SystemClock kClock;

/// libpq's keywords and their values, in its order: later ones win. The first one is the URL, without user and
/// password.
using ConnectionInfo = std::vector<std::pair<std::string, std::string>>;

// Where Debian, and others, keep the system's own authorities; libpq 15 has no word for it.
constexpr const char* kSystemAuthorities = "/etc/ssl/certs/ca-certificates.crt";
constexpr std::uint32_t kDefaultPort = 5432;

std::string decoded(std::string_view text) { return percent_decoded(text).value_or(std::string(text)); }

struct UrlParts {
  std::string url;  ///< without the user and the password
  std::string user;
  std::string password;
};

/// postgres://user:password@host:port/database?...
UrlParts parts_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) {
    return {.url = std::string(url)};
  }
  UrlParts parts{.url = std::string(url.substr(0, scheme + 3))};
  url.remove_prefix(parts.url.size());
  if (const std::size_t at = end_of_user(url); at != std::string_view::npos) {
    const std::string_view user = url.substr(0, at);
    const std::size_t colon = user.find(':');
    parts.user = decoded(user.substr(0, colon));
    parts.password = colon == std::string_view::npos ? "" : decoded(user.substr(colon + 1));
    url.remove_prefix(at + 1);
  }
  parts.url += url;
  return parts;
}

/// What a URL says, by libpq's keywords.
std::map<std::string, std::string> options_in(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(PQconninfoParse(url.c_str(), nullptr),
                                                                             PQconninfoFree);
  std::map<std::string, std::string> read;
  for (const PQconninfoOption* one = options.get(); one != nullptr && one->keyword != nullptr; ++one) {
    read.emplace(one->keyword, one->val == nullptr ? "" : one->val);
  }
  return read;
}

/// The servers that a URL names, in the order in which they are to be tried; never empty. An empty host or the port 0:
/// it is libpq's to say.
std::vector<ServerPlace> servers_of(std::map<std::string, std::string> read) {
  std::vector<std::string> hosts;
  std::vector<std::string> ports;
  boost::split(hosts, read["host"], boost::is_any_of(","));
  boost::split(ports, read["port"], boost::is_any_of(","));
  if (!read["hostaddr"].empty() || (ports.size() != 1 && ports.size() != hosts.size())) {
    return {ServerPlace()};  // of the one there is nothing to look up, of the other libpq complains
  }
  std::vector<ServerPlace> servers;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const std::string& port = ports[ports.size() == 1 ? 0 : i];
    servers.push_back(
        {hosts[i], ports.size() > 1 && port.empty() ? kDefaultPort : parse_number<std::uint16_t>(port).value_or(0)});
  }
  return servers;
}

void add(ConnectionInfo& info, const char* key, std::string value) {
  if (!value.empty()) {
    info.emplace_back(key, std::move(value));
  }
}

/// All but where the server is.
ConnectionInfo connection_info(const Settings& settings) {
  const UrlParts parts = parts_of(settings.config.url);
  ConnectionInfo info{{"dbname", parts.url}};
  add(info, "user", settings.config.username.empty() ? parts.user : settings.config.username);
  add(info, "password", settings.config.password.empty() ? parts.password : settings.config.password);
  if (settings.config.tls) {
    const config::OutboxTls& tls = *settings.config.tls;
    add(info, "sslmode", tls.verify ? "verify-full" : "require");
    const bool system = tls.ca.empty() && ::access(kSystemAuthorities, R_OK) == 0;
    add(info, "sslrootcert", !tls.verify ? "" : system ? kSystemAuthorities : tls.ca);
    add(info, "sslcert", tls.certificate);
    add(info, "sslkey", tls.certificate.empty() ? "" : tls.key);
  }
  info.emplace_back("application_name", settings.application);
  info.emplace_back("client_encoding", "UTF8");
  // A peer that is gone without a word is found out within the lease.
  const auto lease = std::chrono::duration_cast<std::chrono::seconds>(settings.config.lease).count();
  const auto third = std::max<std::int64_t>(lease / 3, 1);
  info.emplace_back("keepalives_idle", std::to_string(third));
  info.emplace_back("keepalives_interval", std::to_string(std::max<std::int64_t>(third / 3, 1)));
  info.emplace_back("keepalives_count", "3");
  info.emplace_back("tcp_user_timeout", std::to_string(lease * 1000));
  return info;
}

/// `address`: a number, so that libpq looks no name up; empty: there is none.
ConnectionInfo at(ConnectionInfo info, const ServerPlace& server, std::string address) {
  add(info, "host", server.host);
  add(info, "hostaddr", std::move(address));
  add(info, "port", server.port == 0 ? "" : std::to_string(server.port));
  return info;
}

struct Meaning {
  std::string_view state;  ///< the whole code, or the class that it begins with
  ErrorCode code;
  const char* mend;
};

// The first that fits.
constexpr std::array kMeanings{
    Meaning{"28", ErrorCode::denied, "check the user and the password"},
    Meaning{"3D000", ErrorCode::queue_missing, "name the database in the url, or create it"},
    Meaning{"3F000", ErrorCode::queue_missing, "check 'schema'"},
    Meaning{"42P01", ErrorCode::queue_missing,
            "check 'schema' and 'table', or make it with what `sluice outbox ddl` prints"},
    Meaning{"42703", ErrorCode::invalid, "name the column in [outbox.NAME.columns], or add it"},
    Meaning{"42501", ErrorCode::denied, "grant SELECT and UPDATE on the table to the user"},
    Meaning{"42883", ErrorCode::invalid,
            "a column has another type than an outbox needs; `sluice outbox status` names it"},
    Meaning{"42804", ErrorCode::invalid,
            "a column has another type than an outbox needs; `sluice outbox status` names it"},
    Meaning{"42", ErrorCode::invalid, ""},
    Meaning{"25006", ErrorCode::unavailable,
            "the server is a read-only replica: name the primary in the url, or add ?target_session_attrs=read-write"},
    Meaning{"40001", ErrorCode::throttled, "it is tried again"},
    Meaning{"40P01", ErrorCode::throttled, "a deadlock with another transaction; it is tried again"},
    Meaning{"55P03", ErrorCode::throttled, "another transaction holds a lock; it is tried again"},
    Meaning{"57014", ErrorCode::throttled, "the statement took too long; it is tried again"},
    Meaning{"57P05", ErrorCode::unavailable, "this host was silent for longer than its lease"},
    Meaning{"57", ErrorCode::unavailable, "it is tried again"},
    Meaning{"53100", ErrorCode::full, "the server's disk is full"},
    Meaning{"53", ErrorCode::unavailable, "it is tried again"},
    Meaning{"58", ErrorCode::unavailable, "it is tried again"},
    Meaning{"08", ErrorCode::unavailable, "it is tried again"},
    Meaning{"22", ErrorCode::invalid, ""},
    Meaning{"23", ErrorCode::conflict, ""},
    Meaning{"P0", ErrorCode::conflict, "a trigger of the table refuses it"},
};

// What libpq says when it cannot connect; it gives no code.
constexpr std::array kConnectMeanings{
    Meaning{"password authentication failed", ErrorCode::denied, "check the user and the password"},
    Meaning{"no password supplied", ErrorCode::denied, "give a password in the url or as 'password'"},
    Meaning{"no pg_hba.conf entry", ErrorCode::denied, "the server lets nobody in from here"},
    Meaning{"authentication failed", ErrorCode::denied, "check the user and the password"},
    Meaning{"certificate verify failed", ErrorCode::denied, "check 'ca' in [outbox.NAME.tls]"},
    Meaning{"does not match host name", ErrorCode::denied, "check 'server_name' in [outbox.NAME.tls]"},
    Meaning{"root certificate file", ErrorCode::denied, "give 'ca' in [outbox.NAME.tls]"},
    Meaning{"could not load", ErrorCode::denied, "check the files in [outbox.NAME.tls]"},
    Meaning{"could not read certificate", ErrorCode::denied, "check the files in [outbox.NAME.tls]"},
    Meaning{"server does not support SSL", ErrorCode::denied, "take [outbox.NAME.tls] away, or turn TLS on there"},
    Meaning{"certificate", ErrorCode::denied, "check [outbox.NAME.tls]"},
    Meaning{"role \"", ErrorCode::denied, "check the user"},
    Meaning{"permission denied for database", ErrorCode::denied, "grant CONNECT to the user"},
    Meaning{"database \"", ErrorCode::queue_missing, "check the database in the url"},
};

std::string one_line(std::string text) {
  for (const char* prefix : {"FATAL:  ", "ERROR:  "}) {
    boost::erase_all(text, prefix);
  }
  return boost::trim_fill_copy(text, " ");
}

/// Without the URL, the password, and what may be a piece of them.
std::string without_secrets(std::string text, const ConnectionInfo& info) {
  const std::string& url = info.front().second;
  boost::replace_all(text, url, "the url");
  for (const auto& [key, value] : info) {
    boost::replace_all(text, key == "password" ? value : "", "...");
  }
  // Where nobody can tell what belongs to a password, libpq may show a piece of it for something else.
  const bool clear = url.find("://") != std::string::npos && url.find('@') == std::string::npos &&
                     url.find("password") == std::string::npos;
  for (std::size_t at = clear ? std::string::npos : text.find('"'); at != std::string::npos; at = text.find('"', at)) {
    const std::size_t end = std::min(text.find('"', at + 1), text.size());
    text.replace(at, end + 1 - at, "(not shown)");
  }
  return text;
}

Error connect_error(const std::string& text, const ConnectionInfo& info) {
  std::string shown = one_line(without_secrets(text, info));
  const Meaning* meaning =
      find_where(kConnectMeanings, [&](const Meaning& one) { return text.find(one.state) != std::string::npos; });
  if (meaning == nullptr) {
    return {ErrorCode::unavailable, shown.empty() ? "the server cannot be reached" : std::move(shown)};
  }
  return {meaning->code, shown + "; " + meaning->mend};
}

Error error_of(const PGresult* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return statement_error(state == nullptr ? "" : state, text == nullptr ? PQresultErrorMessage(result) : text);
}

Cells cells_of(const PGresult* result, int row) {
  Cells cells(static_cast<std::size_t>(PQnfields(result)));
  for (int column = 0; column < PQnfields(result); ++column) {
    if (PQgetisnull(result, row, column) == 0) {
      cells[static_cast<std::size_t>(column)].emplace(PQgetvalue(result, row, column),
                                                      static_cast<std::size_t>(PQgetlength(result, row, column)));
    }
  }
  return cells;
}

Answer answer_of(PGresult* result) {
  Answer answer;
  for (int row = 0; row < PQntuples(result); ++row) {
    answer.rows.push_back(cells_of(result, row));
  }
  const std::string_view touched = PQcmdTuples(result);
  std::from_chars(touched.data(), touched.data() + touched.size(), answer.touched);
  return answer;
}

struct Clear {
  void operator()(PGresult* result) const { PQclear(result); }
};
using OwnedResult = std::unique_ptr<PGresult, Clear>;

Error closed() { return {ErrorCode::unavailable, "the connection is closed"}; }

}  // namespace

ServerPlace server_of(const std::string& url) {
  const ServerPlace first = servers_of(options_in(parts_of(url).url)).front();
  return {first.host.empty() ? "localhost" : first.host, first.port == 0 ? kDefaultPort : first.port};
}

Error statement_error(std::string_view sqlstate, std::string text) {
  text = one_line(std::move(text));
  const Meaning* meaning = find_where(kMeanings, [&](const Meaning& one) { return sqlstate.starts_with(one.state); });
  if (meaning == nullptr) {
    return {sqlstate.empty() ? ErrorCode::unavailable : ErrorCode::internal,
            text + (sqlstate.empty() ? "" : " (SQLSTATE " + std::string(sqlstate) + ")")};
  }
  const std::string mend = meaning->mend;
  return {meaning->code, text + " (SQLSTATE " + std::string(sqlstate) + ")" + (mend.empty() ? "" : "; " + mend)};
}

namespace {

/// A session with a PostgreSQL server: the only place that knows libpq.
class PostgresConnection final : public SqlConnection {
 public:
  static Result<std::unique_ptr<SqlConnection>> open(const ConnectionInfo& info, const std::string& preamble,
                                                     Deadline deadline) {
    auto keys = mapped(info, [](const auto& one) { return one.first.c_str(); });
    auto values = mapped(info, [](const auto& one) { return one.second.c_str(); });
    keys.push_back(nullptr);
    values.push_back(nullptr);
    PGconn* const raw = PQconnectStartParams(keys.data(), values.data(), 1);
    if (raw == nullptr) {
      return Error(ErrorCode::unavailable, "no memory for a connection");
    }
    std::unique_ptr<PostgresConnection> connection(new PostgresConnection(raw, preamble));
    PQsetNoticeProcessor(
        raw, [](void*, const char*) {}, nullptr);
    PostgresPollingStatusType status = PQstatus(raw) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
    while (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING) {
      const short events = status == PGRES_POLLING_READING ? POLLIN : POLLOUT | POLLIN;
      if (!connection->await(events, deadline)) {
        return Error(ErrorCode::unavailable,
                     "the server at \"" + std::string(PQhost(raw)) + "\" did not answer in time");
      }
      status = PQconnectPoll(raw);
    }
    if (status != PGRES_POLLING_OK) {
      return connect_error(PQerrorMessage(raw), info);
    }
    PQsetnonblocking(raw, 1);
    return std::unique_ptr<SqlConnection>(std::move(connection));
  }

  ~PostgresConnection() override { close(); }

  Result<Answer> run(const std::string& statement, Deadline deadline) override {
    auto answers = exchange(std::span(&statement, 1), deadline);
    return answers ? Result<Answer>(std::move(answers->back())) : known(answers.error(), deadline);
  }

  Result<bool> stream(const std::string& statement, const TakeRow& take, Deadline deadline) override {
    const auto answers = exchange(std::span(&statement, 1), deadline, take);
    return answers ? Result<bool>(!answers->empty()) : known(answers.error(), deadline);
  }

  /// In one round trip.
  Result<std::vector<Answer>> run_together(std::span<const std::string> statements, Deadline deadline) override {
    return exchange(statements, deadline);
  }

  Result<std::vector<std::string>> notifications() override {
    if (connection_ == nullptr) {
      return closed();
    }
    if (PQconsumeInput(connection_) == 0) {
      return lost("the session");
    }
    std::vector<std::string> payloads;
    while (PGnotify* const notify = PQnotifies(connection_)) {
      payloads.emplace_back(notify->extra == nullptr ? "" : notify->extra);
      PQfreemem(notify);
    }
    return payloads;
  }
  int descriptor() const override { return PQsocket(connection_); }

  std::int64_t greeted_as() const override { return PQbackendPID(connection_); }

 private:
  PostgresConnection(PGconn* connection, std::string preamble)
      : connection_(connection), preamble_(std::move(preamble)) {}

  void close() {
    if (connection_ != nullptr) {
      PQfinish(std::exchange(connection_, nullptr));
    }
  }

  /// All of them in one round trip and, but for a transaction that has begun, one transaction: in one text, in which
  /// all values are literals. `take`: is given the rows of the only one as they come; once it has enough, the server is
  /// told to stop, and there are no answers.
  Result<std::vector<Answer>> exchange(std::span<const std::string> statements, Deadline deadline,
                                       const TakeRow& take = nullptr) {
    SLUICE_PASS_ON(still_there());
    // A transaction that a BEGIN of the text begins has what stands before it too.
    const std::size_t before = preamble_.empty() || PQtransactionStatus(connection_) != PQTRANS_IDLE ? 0 : 1;
    const std::string text = (before == 0 ? std::string() : preamble_ + ";\n") + joined(statements, ";\n");
    const auto sent = PQsendQuery(connection_, text.c_str()) == 1 ? flush(deadline) : lost("the transaction");
    if (!sent) {
      return Error(ErrorCode::unknown_outcome, sent.error().message());
    }
    if (take) {
      PQsetSingleRowMode(connection_);
    }
    std::vector<Answer> answers;
    std::optional<Error> error;
    bool enough = false;
    while (true) {
      const auto result = next_result(deadline);
      if (!result) {
        return Error(ErrorCode::unknown_outcome, error ? error->message() : result.error().message());
      }
      if (*result == nullptr) {
        break;
      }
      const OwnedResult owned(*result);
      const ExecStatusType status = PQresultStatus(*result);
      if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) {
        answers.push_back(answer_of(*result));
      } else if (status == PGRES_SINGLE_TUPLE) {
        if (answers.size() == before && !enough && !take(cells_of(*result, 0))) {
          enough = true;
          if (const auto told = stop_server(deadline); !told) {
            close();  // it might be told later, and end another statement
            return Error(ErrorCode::unknown_outcome, told.error().message());
          }
        }
      } else {
        error = error || enough ? error : error_of(*result);  // after `enough` it is what was asked for
        if (PQstatus(connection_) != CONNECTION_OK) {
          // The server was going away while it worked: whether it had committed before, nobody knows.
          const Error gone = error.value_or(error_of(*result));
          close();
          return Error(ErrorCode::unknown_outcome, gone.message());
        }
      }
    }
    if (error) {
      if (PQstatus(connection_) != CONNECTION_OK || error->code() == ErrorCode::unavailable) {
        close();
      }
      return *error;
    }
    answers.erase(answers.begin(), enough ? answers.end() : answers.begin() + static_cast<std::ptrdiff_t>(before));
    return answers;
  }

  /// A session that the server has ended meanwhile has said so: nothing that is not asked of it is in doubt.
  Result<void> still_there() {
    if (connection_ == nullptr) {
      return closed();
    }
    for (pollfd arrived{PQsocket(connection_), POLLIN, 0}; ::poll(&arrived, 1, 0) > 0;) {
      if (PQconsumeInput(connection_) == 0) {
        return lost("the session");
      }
    }
    return {};
  }

  /// libpq tells it on a connection of its own, and heeds no deadline there: where that hangs, no other one is made to
  /// the same server.
  Result<void> stop_server(Deadline deadline) {
    static auto* const calls = new HangingCalls<std::int64_t>();
    const std::int64_t session = greeted_as();
    const std::shared_ptr<PGcancel> cancel(PQgetCancel(connection_), PQfreeCancel);
    const auto tell = [cancel, session]() -> Result<std::int64_t> {
      std::array<char, 256> complaint{};
      PQcancel(cancel.get(), complaint.data(), complaint.size());
      return session;
    };
    const std::string word = std::string("the word to stop to ") + PQhost(connection_) + ":" + PQport(connection_);
    SLUICE_TRY(told, calls->make(word, tell, kClock, deadline));
    return *told == session ? Result<void>() : Error(ErrorCode::unavailable, word + " was another session's");
  }

  /// Of a request that leaves nothing unknown: it only reads, or is one of several of a transaction.
  static Error known(const Error& error, Deadline deadline) {
    if (error.code() != ErrorCode::unknown_outcome) {
      return error;
    }
    return {deadline.passed(kClock.steady_now()) ? ErrorCode::timeout : ErrorCode::unavailable, error.message()};
  }

  /// False: the deadline has passed, or the system cannot wait.
  bool await(short events, Deadline deadline) const {
    pollfd watched{PQsocket(connection_), events, 0};
    return poll_until(std::span(&watched, 1), kClock, deadline).has_value();
  }

  Result<void> flush(Deadline deadline) {
    int left = 0;
    while ((left = PQflush(connection_)) > 0) {
      const bool in_time = await(POLLOUT | POLLIN, deadline);
      if (!in_time || PQconsumeInput(connection_) == 0) {
        return lost("the transaction", in_time);
      }
    }
    return left == 0 ? Result<void>() : lost("the transaction");
  }

  /// The next result of what was sent; null: there are no more.
  Result<pg_result*> next_result(Deadline deadline) {
    while (PQisBusy(connection_) == 1) {
      const bool in_time = await(POLLIN, deadline);
      if (!in_time || PQconsumeInput(connection_) == 0) {
        return lost("the statement", in_time);
      }
    }
    return PQgetResult(connection_);
  }

  /// Closes, and says why.
  Error lost(const char* what, bool in_time = true) {
    std::string text = in_time ? PQerrorMessage(connection_) : std::string(what) + " did not end in time";
    close();
    return {in_time ? ErrorCode::unavailable : ErrorCode::timeout, statement_error("", std::move(text)).message()};
  }

  PGconn* connection_;
  const std::string preamble_;
};

}  // namespace

// To the first address at which a server answers, whatever it says.
Result<std::unique_ptr<SqlConnection>> connect(const Settings& settings, const std::string& preamble,
                                               Deadline deadline) {
  ConnectionInfo info = connection_info(settings);
  const std::string name = settings.config.tls ? settings.config.tls->server_name : "";
  auto read = options_in(info.front().second);
  if (!read["hostaddr"].empty()) {
    add(info, "host", name);
  }
  std::vector<ServerPlace> servers = servers_of(std::move(read));
  if (settings.tunnel) {
    SLUICE_TRY(socket, settings.tunnel(deadline));
    // libpq takes the folder and the port, and makes the file's name of them.
    const auto port = parse_number<std::uint16_t>(socket->substr(socket->rfind('.') + 1));
    servers = {{socket->substr(0, socket->rfind('/')), port.value_or(0)}};
  }
  const auto ask = [&](const ServerPlace& server, Deadline its) -> Result<std::unique_ptr<SqlConnection>> {
    if (server.host.empty() || server.host.find_first_of("/@") == 0) {
      return PostgresConnection::open(at(info, server, ""), preamble, its);
    }
    const auto addresses = addresses_of(server.host, kClock, its);
    if (!addresses) {
      return Error(ErrorCode::unavailable, addresses.error().message());
    }
    const ServerPlace expected{name.empty() ? server.host : name, server.port};
    return first_reached(*addresses, kClock, its, [&](const std::string& address, Deadline until) {
      return PostgresConnection::open(at(info, expected, address), preamble, until);
    });
  };
  return first_reached(servers, kClock, deadline, ask);
}

}  // namespace sluice::queue::outbox::postgres
