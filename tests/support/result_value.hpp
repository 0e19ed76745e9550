#pragma once

#include <boost/assert/source_location.hpp>
#include <stdexcept>

#include "base/error.hpp"

namespace sluice {

/// Lets tests write `.value()`, which throws what the error says.
[[noreturn]] inline void throw_exception_from_error(const Error& error, const boost::source_location& /*where*/) {
  throw std::runtime_error(error.message());
}

}  // namespace sluice
