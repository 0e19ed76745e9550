#include "host/queue/store.hpp"

#include <algorithm>
#include <utility>

#include "host/queue/half_removal.hpp"

namespace sluice::queue {

namespace {

constexpr std::size_t kPurgePage = 500;

Result<void> outcome(const std::vector<ChangeResult>& results) {
  const ChangeResult& result = results.front();
  if (result.status == ChangeStatus::applied) {
    return {};
  }
  return result.error;
}

Result<void> change_one(Store& store, const std::string& queue, Change change, Deadline deadline) {
  return outcome(store.change(queue, std::span(&change, 1), deadline));
}

}  // namespace

std::string_view to_string(MessageState state) {
  switch (state) {
    case MessageState::ready:
      return "ready";
    case MessageState::in_flight:
      return "in_flight";
    case MessageState::delayed:
      break;
  }
  return "delayed";
}

Result<void> Store::remove(const std::string& queue, const std::string& id, Deadline deadline) {
  return change_one(*this, queue, {.id = id, .action = ChangeAction::remove}, deadline);
}

Result<void> Store::dead_letter(const std::string& queue, const std::string& id, const Failure& failure,
                                Deadline deadline) {
  return change_one(*this, queue, {.id = id, .action = ChangeAction::dead_letter, .failure = failure}, deadline);
}

Result<void> Store::redrive(const std::string& queue, const std::string& id, Deadline deadline) {
  return change_one(*this, queue, {.id = id, .action = ChangeAction::redrive}, deadline);
}

Result<BulkResult> Store::purge(const QueueAddress& address, const BulkProgress& progress, Deadline deadline) {
  BulkResult result;
  ListRequest request{.address = address, .limit = kPurgePage, .cursor = {}, .content = false};
  while (true) {
    const auto page = list(request, deadline);
    if (!page) {
      return page.error();
    }
    std::vector<Change> changes;
    changes.reserve(page->messages.size());
    for (const StoredMessage& found : page->messages) {
      changes.push_back({.id = found.message.id, .action = ChangeAction::remove, .version = found.version});
    }
    const bool any = !changes.empty();
    for (const ChangeResult& removed : remove_from_half(*this, address, std::move(changes), deadline)) {
      if (removed.status == ChangeStatus::failed) {
        return removed.error;
      }
      ++(removed.status == ChangeStatus::applied ? result.done : result.skipped);
    }
    request.cursor = page->next;
    if (request.cursor.empty() || (any && progress && !progress(result.done))) {
      return result;
    }
  }
}

}  // namespace sluice::queue
