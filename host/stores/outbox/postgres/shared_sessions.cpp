#include "host/stores/outbox/postgres/sessions.hpp"

namespace sluice::queue::outbox::postgres {
namespace {

// Whoever else uses the pool may have been given what would have shown it.
constexpr int kLooks = 3;

const Statement kProcess{"SELECT pg_backend_pid()"};

/// Which process answers the one connection while the other one, which asked last, has one to itself.
struct Processes {
  std::int64_t of_one = 0;
  std::int64_t of_other = 0;
};

Result<Processes> look(Connection& one, Connection& other, Deadline deadline) {
  const auto begun = other.run({"BEGIN"}, deadline);
  const auto theirs = begun ? other.run(kProcess, deadline) : Result<Answer>(begun.error());
  SLUICE_TRY(ours, theirs ? one.run(kProcess, deadline) : Result<Answer>(theirs.error()));
  SLUICE_PASS_ON(other.run({"ROLLBACK"}, deadline));
  return Processes{ours->number(0, 0), theirs->number(0, 0)};
}

}  // namespace

// A server tells its process when it lets somebody in; a pool tells something of its own.
Result<bool> sessions_are_shared(Connection& connection, const ConnectSettings& settings, Deadline deadline) {
  SLUICE_TRY(process, connection.run(kProcess, deadline));
  const std::int64_t own = process->number(0, 0);
  if (own == connection.server_process()) {
    return false;
  }
  SLUICE_TRY(other, Connection::open(settings, deadline));
  for (int i = 0; i < kLooks; ++i) {
    SLUICE_TRY(seen, look(connection, **other, deadline));
    if (seen->of_one != own || seen->of_other == own) {
      return true;
    }
  }
  return false;
}

Error shared_sessions(ErrorCode code) {
  return {code,
          "the server's sessions are dealt out to several clients, as PgBouncer does with pool_mode = transaction, so "
          "that locks of a session keep nobody away; set coordination = \"table\" in [outbox.NAME], or connect "
          "directly, or through a pool with pool_mode = session and server_reset_query = DISCARD ALL"};
}

}  // namespace sluice::queue::outbox::postgres
