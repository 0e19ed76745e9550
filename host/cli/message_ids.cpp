#include "host/cli/message_ids.hpp"

#include <algorithm>

namespace sluice::cli {

Flag id_flag() {
  return {.name = "id", .value = "ID", .help = "a message, as the plain word ID; may be repeated", .repeated = true};
}

std::vector<std::string> message_ids(const Arguments& arguments) {
  // The first of each stays where it is.
  std::vector<std::string> once;
  for (std::string& id : arguments.all("id")) {
    if (std::find(once.begin(), once.end(), id) == once.end()) {
      once.push_back(std::move(id));
    }
  }
  return once;
}

OrExit<std::string> the_message_id(const Arguments& arguments) {
  auto ids = message_ids(arguments);
  if (ids.empty()) {
    return Exit::usage("which message? Write its id");
  }
  if (ids.size() > 1) {
    return Exit::usage("one message at a time; leave out " + ids[1]);
  }
  return std::move(ids.front());
}

}  // namespace sluice::cli
