#include "host/stores/outbox/row_edit.hpp"

#include <algorithm>

namespace sluice::queue::outbox {

using Value = RowEdit::Value;

RowEdit edit_of(const RowChange& change, std::uint32_t retry_limit) {
  RowEdit edit{.only_if = change.only_if};
  switch (change.action) {
    case RowAction::redrive:
    case RowAction::reset:
      edit.dead_only = change.action == RowAction::redrive;
      edit.tries = edit.due = edit.reason = Value::clear;
      break;
    case RowAction::delay:
      edit.due = Value::set;
      edit.after = change.after;
      break;
    case RowAction::dead_letter:
      edit.gives_up = true;
      edit.tries = Value::set;
      edit.retries = retry_limit;
      edit.at_least = true;
      edit.due = Value::clear;
      edit.reason = change.error.empty() ? Value::keep : Value::set;
      edit.error = change.error;
      break;
    case RowAction::discard:
      edit.sent = true;
      break;
    case RowAction::remove:
      edit.erase = true;
      break;
  }
  return edit;
}

RowEdit edit_of(const Mark& mark) {
  if (mark.kind == MarkKind::sent) {
    return {.only_if = mark.only_if, .sent = true, .reason = Value::clear};
  }
  return {.only_if = mark.only_if,
          .gives_up = mark.kind == MarkKind::dead,
          .tries = Value::set,
          .retries = mark.retries,
          .due = mark.kind == MarkKind::retry ? Value::set : Value::clear,
          .after = mark.wait,
          .reason = mark.error.empty() ? Value::clear : Value::set,
          .error = mark.error};
}

bool takes_effect(const RowEdit& edit, std::uint32_t retries, bool dead) {
  return (dead || !edit.dead_only) && edit.only_if.value_or(retries) == retries;
}

std::optional<std::uint32_t> retries_after(const RowEdit& edit, std::uint32_t retries) {
  switch (edit.tries) {
    case Value::keep:
      return retries;
    case Value::clear:
      return std::nullopt;
    case Value::set:
      break;
  }
  return edit.at_least ? std::max(edit.retries, retries) : edit.retries;
}

// What is still to be published and was not written, a transaction of somebody else's has.
MarkStatus status_of_unwritten(const Mark& mark, std::optional<std::uint32_t> retries) {
  return retries && mark.only_if.value_or(*retries) == *retries ? MarkStatus::locked : MarkStatus::gone;
}

}  // namespace sluice::queue::outbox
