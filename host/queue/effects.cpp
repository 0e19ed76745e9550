#include "host/queue/effects.hpp"

namespace sluice::queue {

std::string_view to_string(ItemAction action) {
  switch (action) {
    case ItemAction::put:
      return "put";
    case ItemAction::update:
      return "update";
    case ItemAction::remove:
      return "delete";
    case ItemAction::check:
      break;
  }
  return "check";
}

}  // namespace sluice::queue
