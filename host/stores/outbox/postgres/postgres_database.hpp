#pragma once

#include <memory>

#include "base/clock.hpp"
#include "base/random.hpp"
#include "host/stores/outbox/database.hpp"

namespace sluice::queue::outbox {

/// An outbox table of PostgreSQL, 12 or newer. Connects when a session is opened. The references must outlive it.
std::unique_ptr<Database> make_postgres_database(const Settings& settings, const Clock& clock, Random& random);

}  // namespace sluice::queue::outbox
