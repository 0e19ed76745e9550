#pragma once

#include <map>
#include <sluice/handler.hpp>
#include <string>
#include <string_view>
#include <vector>

// A build that tests whether tests notice brings its own.
#ifndef SLUICE_GUARD
#define SLUICE_GUARD(name) true
#endif

/// Variables by name: what of a child's environment is the same for all messages.
using Variables = std::map<std::string, std::string>;

/// What of the host's own environment a command gets. AWS_* holds the host's keys, or the way to them.
enum class Inherited { nothing, all_but_aws, everything };

/// What is inherited, without what could be taken for a message's, and `extra` on top. Throws std::invalid_argument
/// when a name in `extra` cannot be a variable's.
Variables base_environment(Inherited inherited, const Variables& extra);

/// "NAME=value" for each of `base` and for what the message says: SLUICE_MESSAGE_ID, SLUICE_QUEUE, SLUICE_ATTEMPT,
/// SLUICE_MAX_ATTEMPTS, SLUICE_CONTENT_TYPE, SLUICE_GROUP and SLUICE_ATTR_<NAME>. The message wins.
std::vector<std::string> message_environment(const Variables& base, const sluice::Message& message);

/// SLUICE_ATTR_ and the name in upper case, with '_' for everything that is neither a letter nor a digit.
std::string attribute_variable(std::string_view name);
