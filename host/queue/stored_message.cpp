#include "host/queue/stored_message.hpp"

namespace sluice::queue {

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

}  // namespace sluice::queue
