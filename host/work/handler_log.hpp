#pragma once

#include "host/observe/log.hpp"
#include "host/plugin/handler_instance.hpp"

namespace sluice::work {

/// What handlers write, as lines of the host's log with their job and message. `log` outlives it.
plugin::HandlerLog handler_log(observe::Log& log);

}  // namespace sluice::work
