#include "host/stores/outbox/postgres/mark_writer.hpp"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

namespace sluice::queue::outbox::postgres {
namespace {

// What was not written and is still to be marked, somebody else has locked.
Result<void> tell_pending(Connection& connection, const TableSql& sql, std::span<const Mark> marks,
                          std::vector<MarkStatus>& statuses, Deadline deadline) {
  std::vector<std::int64_t> missing;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (statuses[i] != MarkStatus::written) {
      missing.push_back(marks[i].id);
    }
  }
  const auto pending = connection.run(sql.still_pending(missing), deadline);
  if (!pending) {
    // What the transaction wrote is committed; of the rest nothing is known.
    return Error(pending.error().code() == ErrorCode::unavailable ? ErrorCode::unknown_outcome : pending.error().code(),
                 pending.error().message());
  }
  std::unordered_map<std::int64_t, std::uint32_t> retries;
  for (int row = 0; row < pending->rows(); ++row) {
    retries[pending->number(row, 0)] = static_cast<std::uint32_t>(pending->number(row, 1));
  }
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const auto found = statuses[i] == MarkStatus::written ? retries.end() : retries.find(marks[i].id);
    if (found != retries.end() && marks[i].only_if.value_or(found->second) == found->second) {
      statuses[i] = MarkStatus::locked;
    }
  }
  return {};
}

}  // namespace

Result<std::vector<MarkStatus>> write_marks(Connection& connection, const TableSql& sql, std::span<const Mark> marks,
                                            const Fence* fence, Deadline deadline) {
  std::vector<Mark> sent;
  std::vector<Mark> failed;
  for (const Mark& mark : marks) {
    (mark.kind == MarkKind::sent ? sent : failed).push_back(mark);
  }
  std::vector<Statement> statements;
  if (fence != nullptr) {
    statements.push_back(fence->side.announce(fence->space, fence->member));
  }
  if (!sent.empty()) {
    statements.push_back(sql.mark_sent(sent, fence));
  }
  if (!failed.empty()) {
    statements.push_back(sql.mark_failed(failed, fence));
  }
  SLUICE_TRY(answers, connection.run_together(statements, deadline));
  if (fence != nullptr && answers->front().rows() == 0) {
    return name_is_gone();
  }
  std::unordered_set<std::int64_t> written;
  for (std::size_t i = fence == nullptr ? 0 : 1; i < answers->size(); ++i) {
    for (int row = 0; row < (*answers)[i].rows(); ++row) {
      written.insert((*answers)[i].number(row, 0));
    }
  }
  std::vector<MarkStatus> statuses;
  statuses.reserve(marks.size());
  std::transform(marks.begin(), marks.end(), std::back_inserter(statuses),
                 [&](const Mark& mark) { return written.contains(mark.id) ? MarkStatus::written : MarkStatus::gone; });
  if (written.size() < marks.size()) {
    SLUICE_PASS_ON(tell_pending(connection, sql, marks, statuses, deadline));
  }
  return statuses;
}

}  // namespace sluice::queue::outbox::postgres
