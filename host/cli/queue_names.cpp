#include "host/cli/queue_names.hpp"

#include <algorithm>

#include "host/cli/host_file.hpp"
#include "host/cli/queue_place.hpp"

namespace sluice::cli {

std::optional<std::string> misspelt_queue(const Arguments& arguments) {
  const bool asks_file = names_host_file(arguments) || default_host_file();
  if (arguments.get("queue").empty() || names_table(arguments) || !asks_file) {
    return std::nullopt;
  }
  const auto host = load_host_file(arguments);
  if (host.has_error()) {
    return std::nullopt;
  }
  const std::string queue = arguments.get("queue");
  const auto known = known_queues(*host);
  const auto meant = config::nearest(queue, known);
  if (!meant || std::find(known.begin(), known.end(), queue) != known.end()) {
    return std::nullopt;
  }
  return "neither " + host->file + " nor its jobs name a queue \"" + queue + "\"; did you mean \"" + *meant + "\"?";
}

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name;
  }
  return text;
}

}  // namespace sluice::cli
