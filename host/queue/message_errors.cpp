#include "host/queue/message_errors.hpp"

#include <string_view>

namespace sluice::queue {

namespace {

Error conflict(const std::string& queue, const std::string& id, std::string_view why) {
  return {ErrorCode::conflict, "message \"" + id + "\" of queue \"" + queue + "\" " + std::string(why)};
}

}  // namespace

Error no_message(const std::string& queue, const std::string& id) {
  return {ErrorCode::not_found, "no message \"" + id + "\" in queue \"" + queue + "\""};
}

Error changed_since(const std::string& queue, const std::string& id) {
  return conflict(queue, id, "was changed in between; look at it again");
}

Error changed_all_the_time(const std::string& queue, const std::string& id) {
  return conflict(queue, id, "is changed by others all the time; try again");
}

Error not_in_dlq(const std::string& queue, const std::string& id) { return conflict(queue, id, "is not in the DLQ"); }

Error in_flight_in_dlq(const std::string& queue, const std::string& id) {
  return conflict(queue, id, "is being worked on in the DLQ; try again when that has ended");
}

Error in_flight_limit(const std::string& queue, std::uint64_t limit) {
  return {ErrorCode::over_limit,
          "queue " + queue + " has " + std::to_string(limit) +
              " messages in flight, as many as its max_in_flight allows; settle some, or raise it"};
}

}  // namespace sluice::queue
