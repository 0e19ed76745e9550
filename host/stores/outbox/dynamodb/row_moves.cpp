#include "host/stores/outbox/dynamodb/row_moves.hpp"

#include <algorithm>
#include <array>

namespace sluice::queue::outbox {

using dynamo::AttributeValue;

std::string still_tried(const Columns& columns, std::optional<std::uint32_t> retries,
                        std::map<std::string, std::string>& names, dynamo::Item& values) {
  names.emplace("#id", columns.id);
  std::string condition = "attribute_exists(#id)";
  if (!retries) {
    return condition;
  }
  names.emplace("#tries", columns.retry_count);
  if (*retries == 0) {
    values.emplace(":tried", AttributeValue::number(0));
    values.emplace(":null", "NULL");
    return condition + " AND (attribute_not_exists(#tries) OR #tries = :tried OR attribute_type(#tries, :null))";
  }
  values.emplace(":tried", AttributeValue::number(*retries));
  return condition + " AND #tries = :tried";
}

RowMove::RowMove(OutboxPlace& place, const dynamo::Item& row) : place_(place), row_(row) {}

Result<RowMove::Outcome> RowMove::to_dead_letters(std::uint32_t retries, const std::string& error, Deadline deadline) {
  const Columns& columns = place_.columns();
  dynamo::Item item = row_;
  item.insert_or_assign(columns.retry_count, AttributeValue::number(retries));
  item.erase(columns.retry_at);
  if (!columns.last_error.empty() && !error.empty()) {
    item.insert_or_assign(columns.last_error, error);
  }
  const Row row = place_.rows().row_of(row_, {});
  return move(dead_partition_of(row.part), std::move(item), deadline);
}

Result<RowMove::Outcome> RowMove::to_pending(Deadline deadline) {
  const Columns& columns = place_.columns();
  dynamo::Item item = row_;
  item.erase(columns.retry_count);
  item.erase(columns.retry_at);
  if (!columns.last_error.empty()) {
    item.erase(columns.last_error);
  }
  const Row row = place_.rows().row_of(row_, {});
  return move(partition_of(row.part), std::move(item), deadline);
}

Result<RowMove::Outcome> RowMove::move(const std::string& partition, dynamo::Item item, Deadline deadline) {
  const Columns& columns = place_.columns();
  const Row row = place_.rows().row_of(row_, {});
  const auto* from = dynamo::find<std::string>(row_, kBucket);
  if (from == nullptr || *from == partition) {
    return Outcome::gone;
  }
  dynamo::TransactAction removal;
  removal.kind = dynamo::TransactAction::Kind::remove;
  removal.table = place_.table().table;
  removal.item_or_key = key_of(columns, *from, row.id);
  removal.condition = still_tried(columns, row.retries, removal.names, removal.values);
  item.insert_or_assign(std::string(kBucket), partition);
  dynamo::TransactAction arrival;
  arrival.table = place_.table().table;
  arrival.item_or_key = std::move(item);
  arrival.condition = "attribute_not_exists(#id)";
  arrival.names.emplace("#id", columns.id);
  const dynamo::TransactWriteRequest request{.actions = {std::move(removal), std::move(arrival)}, .token = {}};
  const auto results = place_.client().transact_each(std::span(&request, 1), deadline);
  if (!results.front().error) {
    return Outcome::done;
  }
  const auto& reasons = results.front().reasons;
  const auto conflicts = [](const dynamo::CancellationReason& reason) { return reason.code == "TransactionConflict"; };
  if (std::any_of(reasons.begin(), reasons.end(), conflicts)) {
    return Outcome::in_the_way;
  }
  const auto refused = [](const dynamo::CancellationReason& reason) { return reason.code == "ConditionalCheckFailed"; };
  if (std::any_of(reasons.begin(), reasons.end(), refused)) {
    return Outcome::gone;
  }
  return place_.error_of(*results.front().error);
}

}  // namespace sluice::queue::outbox
