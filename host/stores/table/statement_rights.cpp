#include "host/stores/table/statement_rights.hpp"

#include <utility>

namespace sluice::queue::table {
namespace {

constexpr std::array<std::string_view, RecordWrite::kKinds> kStatementActions{
    "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate", "dynamodb:PartiQLDelete"};
constexpr std::array<std::string_view, RecordWrite::kKinds> kRequestActions{"dynamodb:PutItem", "dynamodb:UpdateItem",
                                                                            "dynamodb:DeleteItem"};

constexpr std::size_t index_of(RecordWrite::Kind kind) { return static_cast<std::size_t>(kind); }

std::string warning(std::string_view table) {
  std::string actions;
  for (const std::string_view action : kStatementActions) {
    actions += (actions.empty() ? "" : ", ") + std::string(action);
  }
  return "table '" + std::string(table) +
         "': the role may not execute PartiQL statements, so that every write is a request of its own: about 3 "
         "requests "
         "a message, where batches of 25 need 0.13; the capacity used is the same. To have batches, allow " +
         actions + " on the table and keep what its policy allows now";
}

}  // namespace

std::string_view statement_action(RecordWrite::Kind kind) { return kStatementActions.at(index_of(kind)); }

std::string_view request_action(RecordWrite::Kind kind) { return kRequestActions.at(index_of(kind)); }

bool lacks_right(const dynamo::Error& error) {
  return error.kind == dynamo::ErrorKind::access_denied && error.exception_name.starts_with("AccessDenied");
}

bool StatementRights::denied(std::string_view table, RecordWrite::Kind kind, SteadyTime now) const {
  const MutexLock lock(mutex_);
  const auto known = tables_.find(table);
  if (known == tables_.end()) {
    return false;
  }
  const auto& refused_at = known->second.refused_at.at(index_of(kind));
  return refused_at && now - *refused_at < kAskAgain;
}

void StatementRights::refused(std::string_view table, RecordWrite::Kind kind, SteadyTime now) {
  const MutexLock lock(mutex_);
  tables_[std::string(table)].refused_at.at(index_of(kind)) = now;
}

void StatementRights::note_singles(std::string_view table, std::size_t writes) {
  // One alone costs the same either way, and a command that makes just that should not speak of it each time.
  if (writes < 2 || !warn_) {
    return;
  }
  {
    const MutexLock lock(mutex_);
    if (std::exchange(tables_[std::string(table)].warned, true)) {
      return;
    }
  }
  warn_(warning(table));
}

}  // namespace sluice::queue::table
