#include "client/src/core.hpp"

#include <utility>

#include "host/stores/dedup_sender.hpp"

namespace sluice::client::detail {
namespace {

template <typename Side>
sluice::Result<void> take(sluice::Result<std::unique_ptr<Side>> opened, std::unique_ptr<Side>& side) {
  if (!opened) {
    return opened.error();
  }
  side = std::move(*opened);
  return {};
}

}  // namespace

Result<QueueClient> Core::client(const Seams& seams, Settings settings, std::unique_ptr<Backing> backing) {
  auto core = std::make_shared<Core>(seams, std::move(settings), std::move(backing));
  if (const auto opened = core->open(); !opened) {
    return core->error(opened.error(), Asked::read);
  }
  return QueueClient(std::move(core));
}

sluice::Result<void> Core::open() {
  const std::string& queue = settings_.queue;
  auto opened = take(seams_.queues.open_source({queue, queue::Half::standard}), standard_);
  opened = opened ? take(seams_.queues.open_source({queue, queue::Half::dlq}), dlq_) : opened;
  opened = opened ? take(seams_.queues.open_sender(queue), sender_) : opened;
  opened = opened ? take(seams_.queues.open_operator(queue), operator_) : opened;
  if (opened) {
    sender_ =
        queue::deduplicating(std::move(sender_), {settings_.options.dedup_by_content, settings_.options.dedup_window});
    standard_arrivals_ = std::make_unique<queue::Arrivals>(*standard_, clock());
    dlq_arrivals_ = std::make_unique<queue::Arrivals>(*dlq_, clock());
  }
  return opened;
}

std::vector<Result<std::string>> Core::send(std::vector<queue::NewMessage> messages, Deadline deadline) const {
  std::vector<Result<std::string>> results;
  results.reserve(messages.size());
  std::vector<std::size_t> places;
  std::vector<queue::NewMessage> sound;
  sound.reserve(messages.size());
  for (queue::NewMessage& message : messages) {
    if (message.id.empty() && !settings_.store_makes_ids) {
      results.emplace_back(Error(ErrorKind::id_not_provided));
      continue;
    }
    if (std::string wrong = objection(message.body, message.content_type); !wrong.empty()) {
      results.emplace_back(Error(ErrorKind::marshaling_attribute, std::move(wrong)));
      continue;
    }
    places.push_back(results.size());
    results.emplace_back(message.id);
    sound.push_back(std::move(message));
  }
  if (sound.empty()) {
    return results;
  }
  const auto sent = sender().send(sound, deadline);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (sent[i].status == queue::SendStatus::duplicate_id) {
      results[places[i]] = Error(ErrorKind::id_duplicated, sent[i].error.message());
    } else if (sent[i].status == queue::SendStatus::failed) {
      results[places[i]] = error(sent[i].error, Asked::write_content);
    } else {  // a deduplicated one has the id of the first, and a store may have made it
      results[places[i]] = sent[i].id;
    }
  }
  return results;
}

Result<void> Core::change(queue::Change change) const {
  const auto changed = oper().change(std::span(&change, 1), deadline()).front();
  switch (changed.status) {
    case queue::ChangeStatus::applied:
      return {};
    case queue::ChangeStatus::not_found:
      return Error(ErrorKind::id_not_found, changed.error.message());
    case queue::ChangeStatus::conflict:
      return Error(ErrorKind::conditional_check_failed, changed.error.message());
    case queue::ChangeStatus::failed:
      break;
  }
  return error(changed.error, Asked::read);
}

Result<Message> Core::look(const std::string& id) const {
  auto stored = oper().get(id, deadline());
  if (!stored) {
    return error(stored.error(), Asked::read);
  }
  return to_public(std::move(*stored));
}

}  // namespace sluice::client::detail
