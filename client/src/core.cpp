#include "client/src/core.hpp"

#include <utility>

namespace sluice::client::detail {

std::vector<Result<std::string>> Core::send(std::vector<queue::NewMessage> messages, Deadline deadline) const {
  std::vector<Result<std::string>> results;
  results.reserve(messages.size());
  std::vector<std::size_t> places;
  std::vector<queue::NewMessage> sound;
  sound.reserve(messages.size());
  for (queue::NewMessage& message : messages) {
    if (message.id.empty()) {
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
  const auto sent = store().send(settings_.queue, sound, deadline);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (sent[i].status == queue::SendStatus::duplicate_id) {
      results[places[i]] = Error(ErrorKind::id_duplicated, sent[i].error.message());
    } else if (sent[i].status == queue::SendStatus::failed) {
      results[places[i]] = error(sent[i].error, Asked::write_content);
    }
  }
  return results;
}

Result<void> Core::change(queue::Change change) const {
  const auto changed = store().change(settings_.queue, std::span(&change, 1), deadline()).front();
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
  auto stored = store().get(settings_.queue, id, deadline());
  if (!stored) {
    return error(stored.error(), Asked::read);
  }
  return to_public(std::move(*stored));
}

}  // namespace sluice::client::detail
