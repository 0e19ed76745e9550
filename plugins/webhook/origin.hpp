#pragma once

#include <string>

// A build that tests whether tests notice brings its own.
#ifndef SLUICE_GUARD
#define SLUICE_GUARD(name) true
#endif

/// Scheme, host and port of an address, such as "https://example.com:443"; empty when it is none. Two addresses of the
/// same origin are the same server as far as anybody can tell.
std::string origin_of(const std::string& url);
