#pragma once

#include <string>

#include "base/clock.hpp"
#include "base/deadline.hpp"
#include "base/error.hpp"
#include "host/stores/outbox/mysql/url.hpp"
#include "host/stores/outbox/settings.hpp"

namespace sluice::queue::outbox::mysql {

/// Asks a server for its certificate, on a connection of its own that ends after the handshake, and checks that an
/// authority which is trusted has made it for `name`: libmariadb compares it with the host that it is connected to and
/// with no other name. The fingerprint of that certificate (SHA-1, in digits, as libmariadb takes it), so that the
/// session that follows can be held to it. `socket`: a Unix socket in place of the address.
Result<std::string> fingerprint_of_server(const ServerAddress& address, const std::string& socket,
                                          const TlsSettings& tls, const std::string& name, const Clock& clock,
                                          Deadline deadline);

}  // namespace sluice::queue::outbox::mysql
