#pragma once

#include <memory>

#include "host/stores/outbox/database.hpp"

namespace sluice::queue::outbox {

/// An outbox table of PostgreSQL, 12 or newer. Connects when a session is opened.
std::unique_ptr<Database> make_postgres_database(const Settings& settings);

}  // namespace sluice::queue::outbox
