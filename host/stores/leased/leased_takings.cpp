// How a LeasedChanger changes messages in place that are its own only as long as their shards are: in transactions that
// look at who owns these. Whoever was frozen before such a write, for however long, writes nothing then.

#include <algorithm>
#include <utility>

#include "host/queue/message.hpp"
#include "host/stores/leased/leased_actions.hpp"
#include "host/stores/leased/leased_change_task.hpp"
#include "host/stores/table/item_values.hpp"
#include "host/stores/table/statements.hpp"

namespace sluice::queue::leased {
namespace {

constexpr std::size_t kTogether = dynamo::kMostActions / 2;  // with as many fences
// DynamoDB's limit is 4 MB for all items of a transaction, those that are only changed or removed included.
constexpr std::size_t kMostBytes = 3'000'000;

bool stands_in_the_way(const dynamo::CancellationReason& reason) {
  return !reason.code.empty() && reason.code != "None";
}

}  // namespace

void LeasedChanger::write_fenced(const std::vector<Task*>& tasks, WallTime now, Deadline deadline) const {
  for (auto first = tasks.begin(); first != tasks.end();) {
    std::vector<Task*> lot;
    for (std::size_t bytes = 0; first != tasks.end() && lot.size() < kTogether; ++first) {
      bytes += table::item_bytes((*first)->item);
      if (!lot.empty() && bytes > kMostBytes) {
        break;
      }
      lot.push_back(*first);
    }
    dynamo::TransactWriteRequest request{.actions = {}, .token = transaction_token(queue_.place, parts_.random)};
    std::vector<OwnerFence> fences;
    for (const Task* task : lot) {
      if (std::find(fences.begin(), fences.end(), *task->fence) == fences.end()) {
        fences.push_back(*task->fence);
        request.actions.push_back(owner_check(queue_.place.table, fences.back()));
      }
    }
    for (const Task* task : lot) {
      request.actions.push_back(table::action_of(in_place(*task, now)));
    }
    note_fenced(lot, fences, parts_.store.client.transact_each(std::span(&request, 1), deadline).front());
  }
}

void LeasedChanger::note_fenced(const std::vector<Task*>& tasks, const std::vector<OwnerFence>& fences,
                                const dynamo::TransactResult& result) const {
  for (Task* task : tasks) {
    if (!result.error) {
      task->end({ChangeStatus::applied, next_version(version_of(task->item)), {}});
      continue;
    }
    const auto fence = static_cast<std::size_t>(std::find(fences.begin(), fences.end(), *task->fence) - fences.begin());
    if (fence < result.reasons.size() && stands_in_the_way(result.reasons[fence])) {
      task->end({ChangeStatus::conflict, 0, changed_since(queue_.place.queue, task->change->id)});
    } else if (result.error->outcome_unknown) {
      task->in_doubt = true;
    } else if (!Task::may_go_better(*result.error)) {
      task->end({ChangeStatus::failed, 0, table::store_error(queue_.place, *result.error)});
    }
  }
}

}  // namespace sluice::queue::leased
