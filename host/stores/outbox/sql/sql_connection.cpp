#include "host/stores/outbox/sql/sql_connection.hpp"

#include <charconv>

#include "host/stores/outbox/reconnect.hpp"

namespace sluice::queue::outbox::sql {
namespace {

constexpr int kTries = 4;

}  // namespace

std::int64_t number_of(const Cell& cell) {
  std::int64_t number = 0;
  if (cell) {
    std::from_chars(cell->data(), cell->data() + cell->size(), number);
  }
  return number;
}

bool flag_of(const Cell& cell) { return cell == "t" || cell == "1"; }

std::string text_of(Cell&& cell) { return cell ? *std::move(cell) : std::string(); }

Result<void> in_transaction(SqlConnection& connection, const std::function<Result<void>()>& work, Deadline deadline) {
  for (int attempt = 1;; ++attempt) {
    SLUICE_PASS_ON(connection.begin(deadline));
    const auto worked = work();
    if (worked) {
      const auto committed = connection.end(true, deadline);
      if (committed || !ends_session(committed.error().code())) {
        return committed;
      }
      // The server may have done it before it was gone.
      return Error(ErrorCode::unknown_outcome, committed.error().message());
    }
    // Where the session is over the server rolls back itself.
    if (ends_session(worked.error().code()) || connection.end(false, deadline).has_error() ||
        worked.error().code() != ErrorCode::throttled || attempt == kTries) {
      return worked;
    }
  }
}

}  // namespace sluice::queue::outbox::sql
