#pragma once

#include <string>

#include "base/error.hpp"

namespace sluice::queue::outbox::mysql {

/// What a server or its client library said. A value; nothing went wrong while `code` is 0.
struct Fault {
  unsigned int code = 0;
  std::string text;
};

/// For a person: what is wrong at that place, and the mend where there is one.
Error error_of(const Fault& fault, const std::string& place);

/// True when the connection has ended, so that its locks are gone.
bool ends_session(const Fault& fault);
/// True for a deadlock and for a lock that somebody else held for too long: the transaction may be tried again.
bool may_be_tried_again(const Fault& fault);

}  // namespace sluice::queue::outbox::mysql
