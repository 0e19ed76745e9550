#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "host/stores/outbox/postgres/conninfo.hpp"

namespace sluice::queue::outbox::postgres {

/// What a failed statement means for callers, by its SQLSTATE; `text` is the server's message.
Error statement_error(std::string_view sqlstate, std::string text);
/// What a failed connection means, by libpq's message; nothing of the password is shown.
Error connect_error(const std::string& text, const ConnectionInfo& info);

}  // namespace sluice::queue::outbox::postgres
