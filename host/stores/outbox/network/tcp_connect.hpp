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
/// The same for whom the deadline is no error: nothing is ready then.
Result<void> wait_until(std::span<pollfd> watched, const Clock& clock, Deadline deadline);

/// A TCP connection that does not block, to the first address of the machine that answers. Errors say why not:
/// no such name, refused, no route, no answer.
Result<Descriptor> connect_tcp(const std::string& host, std::uint32_t port, const Clock& clock, Deadline deadline);

}  // namespace sluice::queue::outbox
