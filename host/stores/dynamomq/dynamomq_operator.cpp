#include "host/stores/dynamomq/dynamomq_operator.hpp"

#include <utility>

#include "host/queue/message.hpp"
#include "host/stores/dynamomq/changer.hpp"
#include "host/stores/dynamomq/editor.hpp"
#include "host/stores/dynamomq/record_writer.hpp"

namespace sluice::queue::dynamomq {

Result<StoredMessage> DynamoMqOperator::get(const std::string& id, Deadline deadline) {
  return inspector_.get(id, deadline);
}

Result<ListPage> DynamoMqOperator::list(const ListRequest& request, Deadline deadline) {
  return inspector_.list(request, deadline);
}

Result<QueueStats> DynamoMqOperator::stats(const StatsRequest& request, Deadline deadline) {
  return inspector_.stats(request, deadline);
}

Result<QueueOverview> DynamoMqOperator::overview(const OverviewRequest& request, Deadline deadline) {
  return inspector_.overview(request, deadline);
}

std::vector<ChangeResult> DynamoMqOperator::change(std::span<const Change> changes, Deadline deadline) {
  if (const auto sure = parts_.clock.be_sure(queue_.place, table::kTimeTolerance, deadline); !sure) {
    return {changes.size(), ChangeResult{ChangeStatus::failed, 0, sure.error()}};
  }
  std::vector<Changer::Due> due;
  auto results = Changer(parts_, queue_.place).change(changes, deadline, due);
  for (const Change& change : changes) {
    if (change.action == ChangeAction::remove) {
      queue_.forget(change.id);
    } else {
      queue_.changed(change.id, later(parts_.clock.wall_now(), change.after));
    }
  }
  for (auto& [half, record] : due) {
    queue_.state_of(half).lane.keep(std::move(record));
  }
  doorbell_.ring_changed(queue_.place.queue, changes, results);
  return results;
}

Result<StoredMessage> DynamoMqOperator::edit(const std::string& id, std::int64_t version,
                                             std::span<const ContentEdit> edits, Deadline deadline) {
  auto edited = Editor(parts_, queue_.place).edit(id, version, edits, deadline);
  queue_.changed(id, parts_.clock.wall_now());
  return edited;
}

std::vector<PutResult> DynamoMqOperator::put(std::span<const StoredMessage> records, PutMode mode, Deadline deadline) {
  auto results = RecordWriter(parts_, queue_.place).put(records, mode, deadline);
  for (const StoredMessage& record : records) {
    queue_.put(record);
  }
  doorbell_.ring_put(queue_.place.queue, results);
  return results;
}

}  // namespace sluice::queue::dynamomq
