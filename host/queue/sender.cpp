#include "host/queue/sender.hpp"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/ranges.hpp"

namespace sluice::queue {

SendResult left_behind(std::string id) {
  return {.status = SendStatus::failed,
          .id = std::move(id),
          .error = {ErrorCode::unavailable,
                    "it was not sent, as the message before it in its group was not, or may not have been"},
          .left = true};
}

std::vector<std::vector<std::size_t>> rounds_of(std::span<const NewMessage> messages) {
  std::unordered_map<std::string_view, std::size_t> next;
  std::vector<std::vector<std::size_t>> rounds;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const std::size_t round = messages[i].group.empty() ? 0 : next[messages[i].group]++;
    rounds.resize(std::max(rounds.size(), round + 1));
    rounds[round].push_back(i);
  }
  return rounds;
}

std::vector<SendResult> Sender::send_in_order(std::span<const NewMessage> messages, Deadline deadline) {
  std::vector<SendResult> results(messages.size(), left_behind({}));
  std::set<std::string_view> stopped;
  for (std::vector<std::size_t>& places : rounds_of(messages)) {
    std::erase_if(places, [&](std::size_t place) { return stopped.contains(messages[place].group); });
    const auto round = mapped(places, [&](std::size_t place) { return messages[place]; });
    auto sent = round.empty() ? std::vector<SendResult>() : send(round, deadline);
    for (std::size_t k = 0; k < sent.size(); ++k) {
      const std::string& group = messages[places[k]].group;
      if (sent[k].status == SendStatus::failed && !group.empty()) {
        stopped.insert(group);
      }
      results[places[k]] = std::move(sent[k]);
    }
  }
  return results;
}

}  // namespace sluice::queue
