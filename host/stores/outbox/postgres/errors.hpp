#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace sluice::queue::outbox::postgres {

/// What a failed statement means for callers, by its SQLSTATE; `text` is the server's message.
Error statement_error(std::string_view sqlstate, std::string text);
/// What a failed connection means, by libpq's message, from which `url` and `password` are taken out.
Error connect_error(std::string text, const std::string& url, const std::string& password);

}  // namespace sluice::queue::outbox::postgres
