#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/stores/outbox/settings.hpp"

namespace sluice::queue::outbox::postgres {

/// libpq's keywords and their values, in its order: later ones win. The first one is the URL, without user and
/// password.
using ConnectionInfo = std::vector<std::pair<std::string, std::string>>;

/// What libpq is told: the URL, and over it what the settings say. Opens the tunnel where there is one.
Result<ConnectionInfo> connection_info(const ConnectSettings& settings, Deadline deadline);

/// Where a server answers.
struct ServerPlace {
  std::string host;
  std::uint32_t port = 0;
};

/// Where the URL says that it does; libpq's defaults for what it leaves out.
ServerPlace server_of(const std::string& url);

}  // namespace sluice::queue::outbox::postgres
