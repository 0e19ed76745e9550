#pragma once

#include <poll.h>

#include <cstdint>
#include <span>
#include <string>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/descriptor.hpp"
#include "base/error.hpp"

namespace sluice::queue::outbox {

/// poll(2) until something is ready; an error of the code `timeout` when the deadline passes first.
Result<void> poll_until(std::span<pollfd> watched, const Clock& clock, Deadline deadline);

/// Tries places one after the other, each for its part of the time, until something answers at one. The error tells of
/// all that have been tried.
template <typename Places, typename Attempt>
auto first_reached(const Places& places, const Clock& clock, Deadline deadline, Attempt attempt)
    -> decltype(attempt(*places.begin(), deadline)) {
  std::size_t left = places.size();
  ErrorCode code = ErrorCode::unavailable;
  std::string failures;
  for (const auto& place : places) {
    const SteadyTime now = clock.steady_now();
    auto reached = attempt(place, deadline.is_never() ? deadline : Deadline::at(now + deadline.left(now) / left--));
    if (reached || (reached.error().code() != ErrorCode::unavailable && reached.error().code() != ErrorCode::timeout)) {
      return reached;
    }
    code = reached.error().code();
    failures += (failures.empty() ? "" : "; ") + reached.error().message();
  }
  return Error(code, failures);
}

/// A TCP connection that does not block, to the first address of the machine that answers. Errors say why not:
/// no such name, refused, no route, no answer.
Result<Descriptor> connect_tcp(const std::string& host, std::uint32_t port, const Clock& clock, Deadline deadline);

}  // namespace sluice::queue::outbox
