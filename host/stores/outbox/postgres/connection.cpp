#include "host/stores/outbox/postgres/connection.hpp"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <utility>

#include "host/stores/outbox/postgres/conninfo.hpp"
#include "host/stores/outbox/postgres/errors.hpp"

namespace sluice::queue::outbox::postgres {
namespace {

SteadyTime machine_now() { return std::chrono::time_point_cast<Duration>(std::chrono::steady_clock::now()); }

// How long poll(2) may sleep; 0: not at all.
int milliseconds_until(Deadline deadline) {
  const Duration left = deadline.left(machine_now());
  const auto most = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::min<Duration>(left, std::chrono::hours(1)) + std::chrono::microseconds(999));
  return static_cast<int>(most.count());
}

bool is_error(const PGresult* result) {
  const ExecStatusType status = PQresultStatus(result);
  return status == PGRES_FATAL_ERROR || status == PGRES_BAD_RESPONSE || status == PGRES_NONFATAL_ERROR;
}

Error error_of(const PGresult* result) {
  const char* state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  const char* text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
  return statement_error(state == nullptr ? "" : state, text == nullptr ? PQresultErrorMessage(result) : text);
}

// The server said so and goes on; anything else ends the session.
bool goes_on(const Error& error, const PGconn* connection) {
  return PQstatus(connection) == CONNECTION_OK && error.code() != ErrorCode::unavailable;
}

std::vector<const char*> pointers(const std::vector<Parameter>& parameters) {
  std::vector<const char*> all;
  all.reserve(parameters.size());
  for (const Parameter& parameter : parameters) {
    all.push_back(parameter ? parameter->c_str() : nullptr);
  }
  return all;
}

bool send(PGconn* connection, const Statement& statement) {
  const auto values = pointers(statement.parameters);
  return PQsendQueryParams(connection, statement.sql.c_str(), static_cast<int>(values.size()), nullptr, values.data(),
                           nullptr, nullptr, 0) == 1;
}

}  // namespace

void Answer::Clear::operator()(pg_result* result) const { PQclear(result); }
int Answer::rows() const { return PQntuples(result_.get()); }
bool Answer::is_null(int row, int column) const { return PQgetisnull(result_.get(), row, column) == 1; }
std::string_view Answer::text(int row, int column) const {
  return {PQgetvalue(result_.get(), row, column), static_cast<std::size_t>(PQgetlength(result_.get(), row, column))};
}
std::int64_t Answer::number(int row, int column) const {
  const std::string_view digits = text(row, column);
  std::int64_t number = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return number;
}
std::optional<std::int64_t> Answer::number_or_null(int row, int column) const {
  return is_null(row, column) ? std::nullopt : std::optional(number(row, column));
}

Connection::~Connection() {
  if (connection_ != nullptr) {
    PQfinish(connection_);
  }
}

int Connection::server_version() const { return PQserverVersion(connection_); }
int Connection::server_process() const { return PQbackendPID(connection_); }

Result<std::unique_ptr<Connection>> Connection::open(const ConnectSettings& settings, Deadline deadline) {
  SLUICE_TRY(info, connection_info(settings, deadline));
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : *info) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  keys.push_back(nullptr);
  values.push_back(nullptr);
  PGconn* const raw = PQconnectStartParams(keys.data(), values.data(), 1);
  if (raw == nullptr) {
    return Error(ErrorCode::unavailable, "no memory for a connection");
  }
  std::unique_ptr<Connection> connection(new Connection(raw));
  PQsetNoticeProcessor(
      raw, [](void*, const char*) {}, nullptr);
  PostgresPollingStatusType status = PQstatus(raw) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (status == PGRES_POLLING_READING || status == PGRES_POLLING_WRITING) {
    const bool to_read = status == PGRES_POLLING_READING;
    if (connection->await(to_read, -1, deadline, nullptr) == Step::late) {
      return Error(ErrorCode::unavailable, "the server did not answer in time");
    }
    status = PQconnectPoll(raw);
  }
  if (status != PGRES_POLLING_OK) {
    return connect_error(PQerrorMessage(raw), *info);
  }
  PQsetnonblocking(raw, 1);
  return connection;
}

Connection::Step Connection::await(bool to_read, int wake, Deadline deadline, bool* woken) {
  std::array<pollfd, 2> descriptors{
      {{PQsocket(connection_), static_cast<short>(to_read ? POLLIN : POLLOUT | POLLIN), 0}, {wake, POLLIN, 0}}};
  while (true) {
    const int ready = ::poll(descriptors.data(), wake < 0 ? 1 : 2, milliseconds_until(deadline));
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    if (ready < 0) {
      return Step::broken;
    }
    if (woken != nullptr) {
      *woken = wake >= 0 && descriptors[1].revents != 0;
    }
    return ready == 0 && deadline.passed(machine_now()) ? Step::late : Step::done;
  }
}

Error Connection::lost(const char* what, bool late) {
  std::string text = late ? std::string(what) + " did not end in time" : std::string(PQerrorMessage(connection_));
  PQfinish(std::exchange(connection_, nullptr));
  return {late ? ErrorCode::timeout : ErrorCode::unavailable, statement_error("", std::move(text)).message()};
}

Error Connection::drop_with(Error error) {
  PQfinish(std::exchange(connection_, nullptr));
  return error;
}

Connection::Step Connection::flush(Deadline deadline) {
  while (true) {
    const int left = PQflush(connection_);
    if (left <= 0) {
      return left == 0 ? Step::done : Step::broken;
    }
    if (const Step step = await(false, -1, deadline, nullptr); step != Step::done) {
      return step;
    }
    if (PQconsumeInput(connection_) == 0) {
      return Step::broken;
    }
  }
}

Connection::Step Connection::await_result(Deadline deadline) {
  while (PQisBusy(connection_) == 1) {
    if (const Step step = await(true, -1, deadline, nullptr); step != Step::done) {
      return step;
    }
    if (PQconsumeInput(connection_) == 0) {
      return Step::broken;
    }
  }
  return Step::done;
}

Result<pg_result*> Connection::next_result(Deadline deadline) {
  if (const Step step = await_result(deadline); step != Step::done) {
    return lost("the statement", step == Step::late);
  }
  return PQgetResult(connection_);
}

Result<Answer> Connection::run_alone(const Statement& statement, Deadline deadline) {
  if (connection_ == nullptr) {
    return Error(ErrorCode::unavailable, "the connection is closed");
  }
  const bool sent = send(connection_, statement);
  const Step step = sent ? flush(deadline) : Step::broken;
  if (step != Step::done) {
    return lost("the statement", step == Step::late);
  }
  std::optional<Answer> answer;
  std::optional<Error> error;
  while (true) {
    const auto result = next_result(deadline);
    if (!result) {
      return error ? *error : result.error();
    }
    if (*result == nullptr) {
      break;
    }
    Answer one(*result);
    if (is_error(*result)) {
      error = error_of(*result);
    } else {
      answer = std::move(one);
    }
  }
  if (error) {
    return goes_on(*error, connection_) ? *error : drop_with(*error);
  }
  return *std::move(answer);
}

Result<std::vector<Answer>> Connection::run_pipeline(std::span<const Statement> statements, Deadline deadline) {
  if (connection_ == nullptr) {
    return Error(ErrorCode::unavailable, "the connection is closed");
  }
  bool sent = PQenterPipelineMode(connection_) == 1;
  for (const Statement& statement : statements) {
    sent = sent && send(connection_, statement);
  }
  sent = sent && PQpipelineSync(connection_) == 1;
  const Step step = sent ? flush(deadline) : Step::broken;
  if (step != Step::done) {
    return Error(ErrorCode::unknown_outcome, lost("the transaction", step == Step::late).message());
  }
  std::vector<Answer> answers;
  std::optional<Error> error;
  // Each statement's results end with a null pointer; after the last statement comes the end of the pipeline.
  while (true) {
    const auto result = next_result(deadline);
    if (!result) {
      return Error(ErrorCode::unknown_outcome, error ? error->message() : result.error().message());
    }
    if (*result == nullptr) {
      continue;
    }
    Answer one(*result);
    const ExecStatusType status = PQresultStatus(*result);
    if (status == PGRES_PIPELINE_SYNC) {
      break;
    }
    if (is_error(*result) && !error) {
      error = error_of(*result);
      if (PQstatus(connection_) != CONNECTION_OK) {
        // The server was going away while it worked: whether it had committed before, nobody knows.
        return drop_with(Error(ErrorCode::unknown_outcome, error->message()));
      }
    }
    answers.push_back(std::move(one));
  }
  PQexitPipelineMode(connection_);
  if (error) {
    return goes_on(*error, connection_) ? *error : drop_with(*error);
  }
  return answers;
}

Result<bool> Connection::stream_alone(const Statement& statement, const std::function<bool(const Answer&)>& each,
                                      Deadline deadline) {
  if (connection_ == nullptr) {
    return Error(ErrorCode::unavailable, "the connection is closed");
  }
  const bool sent = send(connection_, statement) && PQsetSingleRowMode(connection_) == 1;
  const Step step = sent ? flush(deadline) : Step::broken;
  if (step != Step::done) {
    return lost("the statement", step == Step::late);
  }
  bool enough = false;
  std::optional<Error> error;
  while (true) {
    const auto result = next_result(deadline);
    if (!result) {
      return error ? *error : result.error();
    }
    if (*result == nullptr) {
      break;
    }
    const Answer one(*result);
    if (is_error(*result)) {
      error = enough ? error : error_of(*result);  // after `enough` it is what was asked for
    } else if (PQresultStatus(*result) == PGRES_SINGLE_TUPLE && !enough && !each(one)) {
      enough = true;
      std::array<char, 256> complaint{};
      PGcancel* const cancel = PQgetCancel(connection_);
      PQcancel(cancel, complaint.data(), complaint.size());
      PQfreeCancel(cancel);
    }
  }
  if (error) {
    return goes_on(*error, connection_) ? *error : drop_with(*error);
  }
  return !enough;
}

Result<Answer> Connection::run(const Statement& statement, Deadline deadline) {
  if (!preamble_) {
    return run_alone(statement, deadline);
  }
  const std::array both{*preamble_, statement};
  auto answers = run_pipeline(both, deadline);
  if (answers) {
    return std::move(answers->back());
  }
  const Error& error = answers.error();
  return error.code() == ErrorCode::unknown_outcome ? Error(ErrorCode::unavailable, error.message()) : error;
}

Result<std::vector<Answer>> Connection::run_together(std::span<const Statement> statements, Deadline deadline) {
  if (!preamble_) {
    return run_pipeline(statements, deadline);
  }
  std::vector<Statement> all{*preamble_};
  all.insert(all.end(), statements.begin(), statements.end());
  auto answers = run_pipeline(all, deadline);
  if (answers) {
    answers->erase(answers->begin());
  }
  return answers;
}

Result<bool> Connection::stream(const Statement& statement, const std::function<bool(const Answer&)>& each,
                                Deadline deadline) {
  if (!preamble_) {
    return stream_alone(statement, each, deadline);
  }
  const std::array begin{Statement{"BEGIN"}, *preamble_};
  if (const auto begun = run_pipeline(begin, deadline); !begun) {
    return Error(ErrorCode::unavailable, begun.error().message());
  }
  auto streamed = stream_alone(statement, each, deadline);
  // After an error, and after a query that was told to stop, this is a rollback: nothing was to be written.
  if (const auto ended = connection_ == nullptr ? Result<Answer>(Answer(nullptr)) : run_alone({"COMMIT"}, deadline);
      !ended && streamed) {
    return ended.error();
  }
  return streamed;
}

Result<std::vector<std::string>> Connection::wait(int wake, Deadline deadline) {
  std::vector<std::string> payloads;
  while (connection_ != nullptr) {
    if (PQconsumeInput(connection_) == 0) {
      return lost("the wait", false);
    }
    while (PGnotify* const notify = PQnotifies(connection_)) {
      payloads.emplace_back(notify->extra == nullptr ? "" : notify->extra);
      PQfreemem(notify);
    }
    if (!payloads.empty()) {
      return payloads;
    }
    bool woken = false;
    const Step step = await(true, wake, deadline, &woken);
    if (step == Step::broken) {
      return lost("the wait", false);
    }
    if (woken || step == Step::late) {
      return payloads;
    }
  }
  return Error(ErrorCode::unavailable, "the connection is closed");
}

}  // namespace sluice::queue::outbox::postgres
