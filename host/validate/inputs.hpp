#pragma once

#include <string>
#include <vector>

#include "base/random.hpp"
#include "config/config.hpp"
#include "host/queue/message.hpp"
#include "sluice/abi.h"

namespace sluice::validate {

/// A message to try a handler with. A value.
struct OddMessage {
  std::string what;  ///< such as "an empty body"
  queue::Message message;
};

/// What nobody expects and a queue may hold all the same; the first one is as plain as can be.
std::vector<OddMessage> odd_messages();
/// Everything about it is by chance. Its body has 64 KiB at most.
OddMessage random_message(Random& random, std::size_t number);

/// A value of an option. A value.
struct OddValue {
  std::string what;  ///< such as "1 MiB of text"
  config::OptionValue value;
};

/// Values of a type that a job file can have and hardly any handler expects.
std::vector<OddValue> odd_values(sluice_option_type type);
/// A value for an option that a job must set, by its type and what its name says.
config::OptionValue made_up_value(const sluice_option& option);

}  // namespace sluice::validate
