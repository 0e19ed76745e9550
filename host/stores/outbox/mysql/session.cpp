#include "host/stores/outbox/mysql/session.hpp"

#include <mysql.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>

#include "host/stores/outbox/mysql/tls_probe.hpp"

namespace sluice::queue::outbox::mysql {

namespace {

short events_of(int status) {
  return static_cast<short>(((status & MYSQL_WAIT_READ) != 0 ? POLLIN : 0) |
                            ((status & MYSQL_WAIT_WRITE) != 0 ? POLLOUT : 0) |
                            ((status & MYSQL_WAIT_EXCEPT) != 0 ? POLLPRI : 0));
}

int status_of(short events) {
  const bool failed = (events & (POLLERR | POLLHUP | POLLNVAL)) != 0;
  return ((events & POLLIN) != 0 || failed ? MYSQL_WAIT_READ : 0) |
         ((events & POLLOUT) != 0 || failed ? MYSQL_WAIT_WRITE : 0) | ((events & POLLPRI) != 0 ? MYSQL_WAIT_EXCEPT : 0);
}

/// libmariadb has one set-up for the process, which must not happen in two threads at once.
void set_up_library() {
  static const int kDone = mysql_library_init(0, nullptr, nullptr);
  static_cast<void>(kDone);
}

const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

}  // namespace

Session::Session(st_mysql* mysql, std::string place, const Clock& clock)
    : mysql_(mysql), place_(std::move(place)), clock_(clock) {}

Session::~Session() { close(); }

void Session::close() {
  over_ = true;
  if (mysql_ == nullptr) {
    return;
  }
  // A polite farewell may block; the server takes the end of the connection for one.
  const auto socket = mysql_get_socket(mysql_);
  if (socket >= 0) {
    ::shutdown(socket, SHUT_RDWR);
  }
  mysql_close(mysql_);
  mysql_ = nullptr;
}

Result<std::unique_ptr<Session>> Session::open(const ConnectSettings& settings, const ServerAddress& address,
                                               const Clock& clock, Deadline deadline) {
  set_up_library();
  std::string socket = address.socket;
  if (settings.tunnel != nullptr) {
    SLUICE_TRY(private_socket, settings.tunnel->socket(deadline));
    socket = *private_socket;
  }
  st_mysql* mysql = mysql_init(nullptr);
  if (mysql == nullptr) {
    return Error(ErrorCode::internal, "libmariadb gives no session");
  }
  std::unique_ptr<Session> session(new Session(mysql, address.place(), clock));
  session->configure(settings, address);
  SLUICE_PASS_ON(session->expect_server(settings, address, socket, deadline));
  SLUICE_PASS_ON(session->connect(address, socket, deadline));
  SLUICE_PASS_ON(session->settle_in(settings, deadline));
  return session;
}

void Session::configure(const ConnectSettings& settings, const ServerAddress& address) {
  const my_bool no = 0;
  const unsigned int off = 0;
  mysql_options(mysql_, MYSQL_OPT_NONBLOCK, nullptr);
  mysql_options(mysql_, MYSQL_OPT_RECONNECT, &no);
  mysql_options(mysql_, MYSQL_OPT_LOCAL_INFILE, &off);
  mysql_options(mysql_, MYSQL_SET_CHARSET_NAME, "utf8mb4");
  mysql_options4(mysql_, MYSQL_OPT_CONNECT_ATTR_ADD, "program_name", settings.application.c_str());
  // Otherwise "localhost" would be the socket of whatever server this machine has.
  const unsigned int protocol =
      address.socket.empty() && settings.tunnel == nullptr ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
  mysql_options(mysql_, MYSQL_OPT_PROTOCOL, &protocol);
}

Result<void> Session::expect_server(const ConnectSettings& settings, const ServerAddress& address,
                                    const std::string& socket, Deadline deadline) {
  if (address.tls == TlsUse::none) {
    return {};
  }
  const TlsSettings& tls = settings.tls;
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

Result<void> Session::connect(const ServerAddress& address, const std::string& socket, Deadline deadline) {
  MYSQL* connected = nullptr;
  const bool local = !socket.empty();
  int status = mysql_real_connect_start(&connected, mysql_, local ? nullptr : address.host.c_str(),
                                        address.user.c_str(), address.password.c_str(), address.database.c_str(),
                                        local ? 0 : address.port, or_null(socket), CLIENT_FOUND_ROWS);
  const bool in_time = drive(
      status, [&](int events) { return mysql_real_connect_cont(&connected, mysql_, events); }, deadline);
  return connected == nullptr || !in_time ? Result<void>(failed(in_time)) : Result<void>();
}

Result<void> Session::settle_in(const ConnectSettings& settings, Deadline deadline) {
  const auto lease = std::max<std::int64_t>(2, std::chrono::ceil<std::chrono::seconds>(settings.lease).count());
  const std::string seconds = std::to_string(lease);
  // A session of which nothing is heard for the lease ends, and with it its locks; without a strict mode a text that is
  // too long for last_error is cut.
  const auto done =
      run("SET SESSION time_zone = '+00:00', sql_mode = 'NO_ENGINE_SUBSTITUTION', wait_timeout = " + seconds +
              ", net_read_timeout = " + seconds + ", innodb_lock_wait_timeout = 2",
          deadline);
  SLUICE_PASS_ON(done);
  const auto level = run("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", deadline);
  return level.has_error() ? Result<void>(level.error()) : Result<void>();
}

bool Session::drive(int status, const std::function<int(int)>& go_on, Deadline deadline) {
  bool in_time = true;
  while (status != 0) {
    const auto socket = mysql_get_socket(mysql_);
    pollfd watched{socket, events_of(status), 0};
    const Duration left = deadline.left(clock_.steady_now());
    if (left == Duration::zero()) {
      // Nothing that is under way can be given up, but it fails once its socket is closed.
      in_time = false;
      ::shutdown(socket, SHUT_RDWR);
      status = go_on(MYSQL_WAIT_READ | MYSQL_WAIT_WRITE);
      continue;
    }
    const auto milliseconds =
        std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, std::chrono::minutes(1)));
    if (::poll(&watched, 1, static_cast<int>(milliseconds.count())) > 0) {
      status = go_on(status_of(watched.revents));
    }
  }
  return in_time;
}

Error Session::failed(bool in_time) {
  fault_ = {mysql_errno(mysql_), mysql_error(mysql_)};
  if (!in_time) {
    close();
    return {ErrorCode::timeout, place_ + ": no answer in time"};
  }
  Error error = error_of(fault_, place_);
  if (ends_session(fault_) || error.code() == ErrorCode::unavailable) {
    close();
  }
  return error;
}

Result<std::uint64_t> Session::run(const std::string& statement, const TakeRow& take, Deadline deadline) {
  if (mysql_ == nullptr) {
    return Error(ErrorCode::unavailable, place_ + ": the session has ended");
  }
  fault_ = {};
  int answer = 0;
  const int status = mysql_real_query_start(&answer, mysql_, statement.data(), statement.size());
  const bool in_time = drive(
      status, [&](int events) { return mysql_real_query_cont(&answer, mysql_, events); }, deadline);
  if (answer != 0 || !in_time) {
    return failed(in_time);
  }
  if (mysql_field_count(mysql_) != 0) {
    SLUICE_PASS_ON(read_rows(take, deadline));
    return 0;
  }
  return mysql_affected_rows(mysql_);
}

Result<void> Session::read_rows(const TakeRow& take, Deadline deadline) {
  MYSQL_RES* result = mysql_use_result(mysql_);
  if (result == nullptr) {
    return failed(true);
  }
  const unsigned int fields = mysql_num_fields(result);
  bool in_time = true;
  bool taking = true;
  while (in_time) {
    MYSQL_ROW row = nullptr;
    const int status = mysql_fetch_row_start(&row, result);
    in_time = drive(
        status, [&](int events) { return mysql_fetch_row_cont(&row, result, events); }, deadline);
    if (row == nullptr || !in_time) {
      break;
    }
    if (!taking) {
      continue;
    }
    const unsigned long* lengths = mysql_fetch_lengths(result);
    Cells cells;
    cells.reserve(fields);
    for (unsigned int i = 0; i < fields; ++i) {
      cells.push_back(row[i] == nullptr ? Cell() : Cell(std::string(row[i], lengths[i])));
    }
    taking = take(std::move(cells));
  }
  const bool broken = !in_time || mysql_errno(mysql_) != 0;
  const Fault fault{mysql_errno(mysql_), mysql_error(mysql_)};
  mysql_free_result(result);
  if (!broken) {
    return {};
  }
  fault_ = fault;
  Error error = in_time ? error_of(fault, place_) : Error(ErrorCode::timeout, place_ + ": no answer in time");
  if (!in_time || ends_session(fault) || error.code() == ErrorCode::unavailable) {
    close();
  }
  return error;
}

Result<std::uint64_t> Session::run(const std::string& statement, Deadline deadline) {
  return run(
      statement, [](Cells&&) { return false; }, deadline);
}

Result<std::vector<Cells>> Session::rows(const std::string& statement, Deadline deadline) {
  std::vector<Cells> all;
  const auto done = run(
      statement,
      [&all](Cells&& row) {
        all.push_back(std::move(row));
        return true;
      },
      deadline);
  return done.has_error() ? Result<std::vector<Cells>>(done.error()) : Result<std::vector<Cells>>(std::move(all));
}

}  // namespace sluice::queue::outbox::mysql
