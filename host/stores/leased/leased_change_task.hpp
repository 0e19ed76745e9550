#pragma once

#include <optional>
#include <string>
#include <utility>

#include "dynamo/client.hpp"
#include "host/stores/leased/leased_changer.hpp"

namespace sluice::queue::leased {

/// One change on its way. It has come to its end when `open` is false.
struct LeasedChanger::Task {
  const Change* change = nullptr;
  ChangeResult* result = nullptr;
  bool open = true;
  dynamo::Item item{};                // as it was read
  std::optional<Place> old_place{};   // of a dead letter that holds its group back: where it lay before
  bool in_doubt = false;              // the last try may have taken effect all the same
  bool without_failure = false;       // there is no room for the reason
  std::string nonce{};                // of the last try
  std::optional<OwnerFence> fence{};  // its write holds only as long as that holds

  /// The transaction was refused because of what is there by now, which another look will tell.
  static bool may_go_better(const dynamo::Error& error) {
    return error.kind == dynamo::ErrorKind::conditional_check_failed ||
           error.exception_name == "TransactionInProgressException";
  }
  bool removes() const { return change->action == ChangeAction::remove; }
  bool in_place() const { return removes() || change->action == ChangeAction::set_visibility; }
  void end(ChangeResult ended) {
    *result = std::move(ended);
    open = false;
  }
};

}  // namespace sluice::queue::leased
